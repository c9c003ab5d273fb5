# SPDX-License-Identifier: Apache-2.0
"""`explain` on real runs: the README's first scenario with TSQ on and off, and changes that help."""

import json
from pathlib import Path

import pytest

import hourglass
from hourglass.cli.exit_status import guarded
from hourglass.results.explain import explanation_of
from hourglass.results.explain.latency import victims
from hourglass.results.explain.loads import Loads
from hourglass.studies.what_if import RunAdvice

from .conftest import Simulate


@pytest.mark.parametrize(
    ("tsq", "rule", "words"), [("default", "tsq", "two skbs"), ("off", "cwnd", "TCP Small Queues are off")]
)
def test_the_captions_reason_is_the_rule(simulate: Simulate, tsq: str, rule: str, words: str) -> None:
    """README: the throughput is the same, and the ping is high without TCP Small Queues."""
    explanation = explanation_of(simulate("L100M", "test.length=3", "test.delay=1", f"stack.tsq={tsq}"))
    assert (explanation.bottleneck.kind, explanation.bottleneck.where) == ("link", "client:eth0")
    assert explanation.parts[0].share > 0.99
    assert explanation.rule is not None
    assert explanation.rule.rule == rule
    assert words in explanation.rule.text


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("preset", "settings", "bottleneck", "rule"),
    [  # paper A: a remote queue, which TCP Small Queues do not limit; BBR's short queue; the AQM
        ("R100M", [], "router:eth1", "cwnd"),
        ("R100M", ["stack.cc=bbr"], "router:eth1", "pacing"),
        ("R10M", ["stack.qdisc=fq_codel"], "router:eth1", "aqm"),
        # paper A, figure 8: the size of TCP Small Queues decides
        ("wifi-ath9k", [], "client:wlan0", "tsq"),
        # paper B, figures 9, 3 and 6: TCP Small Queues; without them the window; below FQ-CoDel, the driver's queue
        ("wifi-ath9k-htc", ["test.upload_streams=1"], "client:wlan0", "tsq"),
        ("wifi-ath9k-htc", ["test.upload_streams=1", "stack.tsq=off", "test.length=4"], "client:wlan0", "cwnd"),
        ("wifi-ath9k-htc", ["test.name=tcp_download", "stack.qdisc=fq_codel"], "ap:wlan0", "hardware queue"),
    ],
)
def test_the_papers_reasons_are_named(
    simulate: Simulate, preset: str, settings: list[str], bottleneck: str, rule: str
) -> None:
    explanation = explanation_of(simulate(preset, "test.length=2", "test.delay=0.5", *settings))
    assert explanation.bottleneck.where == bottleneck
    assert explanation.rule is not None
    assert explanation.rule.rule == rule


def test_a_programs_load_is_judged_in_the_time_of_its_connections(simulate: Simulate) -> None:
    """iperf3 fills the cable for a third of the run; its control connection has little data."""
    app = {"name": "server", "node": "server", "command": ["iperf3", "-s"], "ready": {"listen": "tcp:5201"}}
    load = {"name": "load", "node": "client", "after": ["server"], "command": ["iperf3", "-c", "server", "-t", "2"]}
    scenario = {
        "testbed": {"preset": "L100M"},
        "test": {"name": "ping", "length": 6},
        "apps": {"packages": ["iperf3"]},
        "app": [app, load],
    }
    explanation = explanation_of(simulate(scenario))
    assert (explanation.bottleneck.kind, explanation.bottleneck.where) == ("link", "client:eth0")
    assert explanation.others == ()


@pytest.mark.slow
def test_shapers_move_the_queue_of_a_busy_cpu_to_qdiscs(tmp_path: Path) -> None:
    """A router's CPU limits both directions, so both of its devices get a shaper."""
    settings: dict[str, object] = {"test.name": "tcp_bidirectional", "test.length": 4, "test.delay": 0.5}
    settings |= {f"testbed.node.1.cpu.{work}": time for work, time in (("received", "80us"), ("sent", "50us"))}
    run = hourglass.run("LR1000M", tmp_path / "run", overrides=settings)
    advice = hourglass.explain(run, seeds=[1], out=tmp_path / "changes", jobs=2)
    assert explanation_of(run).bottleneck.where == "router"
    (shaped,) = [
        change for change in advice.changes if change.knob.place == "router" and "no-split" in change.knob.name
    ]
    assert {key.split(".")[3] for key in shaped.knob.settings} == {"eth0", "eth1"}
    assert shaped.p50 is not None
    assert shaped.p50.after < shaped.p50.before / 2


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> RunAdvice:
    folder = tmp_path_factory.mktemp("explain")
    settings = {"test.length": 6, "test.delay": 0.5}
    run = hourglass.run("R10M", folder / "run", overrides=settings)
    return hourglass.explain(run, seeds=[1], out=folder, jobs=2)


@pytest.mark.slow
def test_a_change_that_helps_is_the_best(advice: RunAdvice) -> None:
    assert advice.best is not None
    assert advice.best.knob.place == "router:eth1"
    assert advice.best.p50 is not None
    assert advice.best.goodput is not None
    assert advice.best.p50.after < advice.best.p50.before / 5
    assert advice.best.goodput.after > advice.best.goodput.before * 0.9
    assert {"stack.router.device.eth1.qdisc=fq_codel", "stack.cc=bbr"} <= {
        change.knob.name for change in advice.changes
    }


def test_advice_shows_itself_in_a_notebook(advice: RunAdvice) -> None:
    assert advice.table["change"].to_list() == [change.knob.name for change in advice.changes]
    html = advice._repr_html_()
    assert f"<li>{advice.sentences[0]}.</li>" in html
    assert advice.changes[0].knob.name in html


def test_the_command_prints_the_same(advice: RunAdvice, capsys: pytest.CaptureFixture[str]) -> None:
    folder = advice.run.path.parent
    arguments = ["explain", str(advice.run.path), "--seeds", "1", "--out", str(folder)]
    assert guarded([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["bottleneck"] == {"kind": "link", "where": "router:eth1"}
    assert advice.best is not None
    assert data["best"] == advice.best.knob.name
    assert data["commands"]["router"][0].startswith("tc qdisc replace dev eth1 parent 1:1 handle 10: ")
    assert guarded(arguments) == 0
    printed = capsys.readouterr().out
    assert "* The bottleneck is router:eth1, HTB at 10 Mbit/s" in printed
    assert f"best: {advice.best.knob.name}" in printed
    assert Path(folder, "runs").is_dir()


@pytest.mark.slow
def test_the_advice_for_the_home_is_confirmed_by_a_run(tmp_path: Path) -> None:
    """The best change, made with another seed, lowers the latency as much as the advice says."""
    settings = {"test.length": 6, "test.delay": 0.5}
    run = hourglass.run("home", tmp_path / "run", overrides=settings)
    best = hourglass.explain(run, seeds=[1], out=tmp_path / "changes", jobs=2).best
    assert best is not None
    assert best.p50 is not None
    changed = hourglass.run("home", tmp_path / "changed", overrides=settings | best.knob.settings, seed=7)
    felt = [max(victim.p50 for victim in victims(Loads(recording))) for recording in (run, changed)]
    assert felt[1] < felt[0] / 2
    assert felt[1] == pytest.approx(best.p50.after, rel=0.3)
