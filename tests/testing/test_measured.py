# SPDX-License-Identifier: Apache-2.0
"""Figures as attributes: names, comparisons, and the text of a failure."""

from types import SimpleNamespace

import pytest
from results.synthetic import Flow, Probe, Recipe, make

import hourglass
from hourglass.errors import InputError
from hourglass.testing import Gbit, Mbit, ms, ns, percent, s, us
from hourglass.testing.measured import Measured, Run, explained

TWO = Recipe(
    flows=[Flow("upload::1"), Flow("upload::2", bytes_at=lambda t: int(t * 500_000))],
    probes=[Probe("icmp", lambda seq: 20_000_000), Probe("udp", lambda seq: 30_000_000)],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    recording = hourglass.load(make(tmp_path_factory.mktemp("runs") / "two", TWO))
    return Run(recording, SimpleNamespace(name="two", check={}), recording.path)


def test_attributes_find_figures_by_any_unambiguous_name(run):
    for figure in (run.ping.icmp.p99, run.ping["icmp"].p99,
                   run.figure("ping.icmp.p99")):  # fmt: skip
        assert (figure.name, figure.value, figure.unit) == ("ping.icmp.p99", 20, "ms")
    for figure in (run.upload, run.totals.upload, run.totals.upload_mbps, run.figure("totals.upload_mbps")):
        assert (figure.name, figure.value) == ("totals.upload_mbps", 12)
    assert [figure_.value for figure_ in run.flows.goodput.members] == [8, 4]
    assert run.flows["upload::2"].goodput_mbps.value == 4
    assert float(run.fairness) == pytest.approx(0.9)
    assert "icmp" in dir(run.ping)


def test_comparisons_are_exact_and_in_any_unit_that_fits(run):
    p99 = run.ping.icmp.p99
    assert p99 == 20 * ms
    assert p99 <= 20 * ms
    assert p99 >= 0.02 * s
    assert not p99 < 20 * ms
    assert p99 < 20.0001 * ms
    assert p99 > 19_999 * us
    assert p99 != 20_000_001 * ns
    assert 10 * ms < p99 < 21 * ms
    assert run.upload > 11.9 * Mbit
    assert run.upload < 1 * Gbit
    assert run.drops.client.eth0.qdisc == 14
    assert run.drops.client.eth0.qdisc_skbs == 7
    assert p99 < 0.7 * run.ping.udp.p99
    assert run.ping.udp.p99 / p99 == 1.5
    assert p99 / ms == 20


def test_a_figure_with_several_values_is_compared_with_each(run):
    assert run.ping.p99 <= 30 * ms
    assert not run.ping.p99 < 30 * ms
    assert 19 * ms < run.ping.p99
    with pytest.raises(ValueError, match=r"2 figures; name one of them: ping.icmp.p99, ping.udp.p99"):
        _ = run.ping.p99.value


@pytest.mark.parametrize("other", [20, 20.0, 20 * Mbit, 20 * percent, "20ms", None, True, float("nan")])
def test_a_unit_that_does_not_fit_is_a_mistake_and_no_verdict(run, other):
    with pytest.raises(TypeError, match=r"ping.icmp.p99 is in ms: .* does not fit; units: ns, us, ms, s"):
        _ = run.ping.icmp.p99 < other


def test_an_unknown_figure_never_passes(tmp_path):
    recording = hourglass.load(make(tmp_path / "run", Recipe(probes=[Probe("icmp", lambda seq: None)])))
    run = Run(recording, SimpleNamespace(name="two", check={}), tmp_path / "kept")
    for compare in (lambda: run.ping.p99 < 20 * ms, lambda: not run.ping.p99 > 20 * ms, lambda: run.ping.p99.value):
        with pytest.raises(AssertionError, match=r"ping.icmp.p99 is unknown: no samples, 51 lost") as caught:
            compare()
        assert f"hourglass report {tmp_path / 'kept'}" in str(caught.value)


def test_an_unknown_name_lists_the_known_ones(run):
    with pytest.raises(AttributeError, match=r'no figure \'ping.icmp.p98\'. Did you mean "ping.icmp.p99"\?'):
        _ = run.ping.icmp.p98
    with pytest.raises(AttributeError, match="It has: icmp, udp"):
        _ = run.ping.tcp
    with pytest.raises(KeyError, match="no figure"):
        _ = run.flows["upload::3"]
    with pytest.raises(InputError, match='Did you mean "p99"'):
        run.figure("ping.icmp.p98")
    with pytest.raises(InputError, match=r'this run lacks this figure. Did you mean "ping.icmp.p99"'):
        run.figure("ping.icpm.p99")
    assert not hasattr(run, "_private")


def test_a_figure_alone_is_no_assertion(run):
    with pytest.raises(TypeError, match="not a truth value"):
        bool(run.ping.icmp.p99)


def test_a_failure_has_value_bound_run_and_the_report_command(run):
    footer = [f"run: two, Linux 6.1.192, seed 1, digest {run.recording.info.digest[:12]}",
            f"look at it: hourglass report {run.directory}"]  # fmt: skip
    assert explained("<", run.ping.icmp.p99, 5 * ms) == ["ping.icmp.p99 is 20 ms, not < 5 ms", *footer]
    assert explained(">", 5 * ms, run.ping.icmp.p99) == ["ping.icmp.p99 is 20 ms, not < 5 ms", *footer]
    assert explained("<", run.ping.p99, 25 * ms) == [
        "1 of 2 figures are not < 25 ms", "ping.udp.p99 is 30 ms", *footer]  # fmt: skip
    assert explained("in", run.ping.p99, []) is None
    assert explained("<", 1, 2) is None
    assert isinstance(run.ping.p99, Measured)
    assert repr(run.ping.p99) == "ping.icmp.p99 = 20 ms, ping.udp.p99 = 30 ms"


def test_bounds_of_the_language_are_asserted_together(run):
    run.check("ping.icmp.p99 < 25ms", "totals.upload_mbps 10..15mbit")
    with pytest.raises(AssertionError) as caught:
        run.check("ping.p99 < 25ms", "ping.tcp.p99 < 1s")
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 3 bounds missed"
    assert lines[1] == "ping.udp.p99 < 25ms: 30 ms, missed"
    assert lines[2].startswith("ping.tcp.p99 < 1s: -, missed: this run lacks this figure")
    with pytest.raises(InputError, match="has no bound"):
        run.check()
