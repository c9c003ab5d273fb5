# SPDX-License-Identifier: Apache-2.0
"""Each figure that Hourglass shows of a Flent file equals stock Flent's, or is unknown.

The files are those of Flent's test suite, and fabricated ones for each of Flent's tests in each version of the format.
"""

import gzip
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hourglass
from hourglass.errors import InputError
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window, ping_ms, whole_run
from hourglass.results.traffic import delays_ms
from tests.flent.fabricated import FORMATS, PARAMETERS, SETTINGS, Format, kind, selected, write
from tests.flent.stock import Stock, example_files

NAMES = """
bursts bursts_11e cisco_5tcpup cisco_5tcpup_2udpflood command-output cpu_stress cubic_bbr cubic_cdg cubic_dctcp
cubic_ledbat cubic_ledbat_1 cubic_reno cubic_westwood dslreports_8dn http http-1down http-1up http-rrul
iterated_bidirectional ledbat_cubic_1 mqtt_read ping power_usage qdisc-stats reno_cubic_westwood_cdg
reno_cubic_westwood_ledbat reno_cubic_westwood_lp rrul rrul46 rrul46compete rrul_100_up rrul_50_down rrul_50_up rrul_be
rrul_be_iperf rrul_be_nflows rrul_cs8 rrul_icmp rrul_noclassification rrul_prio rrul_torrent rrul_up rrul_var rtt_fair
rtt_fair4be rtt_fair6be rtt_fair_up rtt_fair_var rtt_fair_var_down rtt_fair_var_mixed rtt_fair_var_up sctp_vs_tcp
tcp_12down tcp_12up tcp_1down tcp_1up tcp_1up_noping tcp_2down tcp_2up tcp_2up_delay tcp_2up_square
tcp_2up_square_westwood tcp_4down tcp_4up tcp_4up_squarewave tcp_6down tcp_6up tcp_8down tcp_8up tcp_bidirectional
tcp_download tcp_ndown tcp_nup tcp_upload tcp_upload_1000 tcp_upload_prio udp_flood udp_flood_var_up
udp_flood_var_up_stagger voip voip-1up voip-rrul
"""
TESTS = NAMES.split()
WHEEL_ONLY = {"dashtest", "tcp_50up"}
"""Remains of older releases in the wheel. The source lacks them."""

NOT_SHOWN = {
    "iperf_csv": "a UDP flood: the file has its rate alone, no packets",
    "netperf_demo": "SCTP: flows here are TCP",
    "silent_process": "a burst of packets without a measurement",
    "command_output": "the output of any command",
    "mosquitto_sub": "values of any sensor",
    "stress_ng": "load of the processor",
    "tc": "counters of queues",
    "dash_js": "a video player's bit rate",
    "null": "a name for another series' values",
}
"""Programs without series in Hourglass, with the reason."""

EXAMPLES = """
test-http-1up test-http test-rrul-icmp test-rrul test-rrul_be-socket_stats test-rtt-fair test-tcp_1up_noping-cpu_stats
test-tcp_nup test-voip-1up test-voip-rrul
"""

Number = float | None

EDGE_S = 1e-6
"""Our window contains its ends, stock Flent's does not."""


@dataclass(frozen=True)
class Tolerance:
    """The largest difference from stock Flent's figure: relative, or absolute."""

    rel: float = 1e-5
    abs: float = 1e-6


EXACT = Tolerance()
"""The figures of Hourglass have six digits."""
GOODPUT = Tolerance(rel=1e-4)
"""The tolerance for fabricated files: their intervals cover a flow completely."""
STEPS = Tolerance(rel=0.02)
"""The tolerance for files without points: stock Flent averages the steps, Hourglass weights each by its time."""
MOS = Tolerance(rel=0.02)
"""Stock Flent divides the lost packets by the delivered ones, Hourglass by the sent ones."""


@dataclass(frozen=True)
class Check:
    """A figure of Hourglass and the question whose answer it must equal. `count`: the answer's number of samples."""

    label: str
    value: Number
    question: tuple[str, str, tuple[float, float] | None]
    tolerance: Tolerance = EXACT
    count: bool = False

    def deviation(self, stock_value: Number, samples: int) -> str | None:
        """Return the difference as text, or None if the figures agree."""
        expected = samples if self.count else stock_value
        if self.value is None and expected is None:
            return None
        limits = self.tolerance
        if None not in (self.value, expected) and self.value == pytest.approx(expected, rel=limits.rel, abs=limits.abs):
            return None
        return f"{self.label}: Hourglass {self.value}, stock {expected}"


@pytest.fixture(scope="session")
def stock() -> Iterator[Stock]:
    """Yield stock Flent. Skips the test if it cannot be installed, unless CI is set."""
    process = Stock()
    yield process
    process.close()


def plain_name(name: str, kind_of: str) -> str:
    """Return a name of a series without what differs between ours and Flent's: case, separators, defaults."""
    text = re.sub(r"::|\s+", " ", name.lower().removeprefix("ping (ms)")).strip()
    if kind_of == "fetch":
        return text.replace("http latency", "http")
    if kind_of != "flow":
        return text
    match = re.fullmatch(r"(?:tcp )?(upload|download)? ?(?:stream )?(?:be (?=.))?(.*)", text)
    assert match
    return f"{match[1] or 'upload'} {match[2] or '1'}"


def streams_of(run: Recording) -> dict[tuple[str, str], Any]:
    """Return our figures by kind and plain name."""
    summary = run.summary
    streams: dict[tuple[str, str], Any] = {}
    groups: dict[str, Any] = {"flow": summary.flows, "voice": summary.datagrams, "fetch": summary.fetches}
    for kind_of, figures in groups.items():
        for part in figures:
            streams[kind_of, plain_name(part.id, kind_of)] = part
    for name, part in summary.ping_ms.items():
        streams["ping", plain_name(name, "ping")] = part
    assert len(streams) == sum(map(len, groups.values())) + len(summary.ping_ms), "two series have one name"
    return streams


def share(values: Any) -> Number:
    """Return the share of lost packets (NaN)."""
    return float(np.isnan(values).mean()) if values.size else None


class File:
    """A file, the series of its test, and its figures of both sides. `goodput`: the tolerance of goodputs."""

    def __init__(self, path: Path, series: dict[str, Any], goodput: Tolerance, irtt: bool) -> None:
        self.run = hourglass.load(path)
        self.series, self.goodput, self.irtt = series, goodput, irtt
        window = loaded_window(self.run)
        self.cutoff = (
            None if window == whole_run(self.run) else (window.start_ns / 1e9 - EDGE_S, window.end_ns / 1e9 + EDGE_S)
        )
        self.streams = streams_of(self.run)

    def checks(self, name: str, kind_of: str) -> list[Check]:
        """Return the checks of a series of stock Flent's, which is one of our streams."""
        figures = self.streams[kind_of, plain_name(name, kind_of)]
        if kind_of == "flow":
            return [Check(f"{name} goodput", figures.goodput_mbps, (name, "mean", None), self.goodput)]
        if kind_of == "ping":
            return [*self._statistics(name, name, figures), *self._ping_loss(name, figures)]
        if kind_of == "fetch":
            return self._statistics(name, name, figures.done_ms, began=True)
        return self._voice(name, figures)

    def _statistics(self, label: str, series: str, figures: Any, began: bool = False) -> list[Check]:
        """Return the checks of samples. `began`: here samples count when they began. In stock Flent they count when
        they ended, so one that ended at the window's start counts only there."""
        cutoff = (self.cutoff[0] + 2 * EDGE_S, self.cutoff[1]) if began and self.cutoff else self.cutoff
        reducers = {"mean": "raw_mean", "p50": "raw_median", "p99": "raw_pct99"}
        return [
            *(Check(f"{label} {figure}", getattr(figures, figure), (series, reducer, cutoff))
              for figure, reducer in reducers.items()),
            Check(f"{label} n", figures.n, (series, "raw_mean", cutoff), count=True),
        ]  # fmt: skip

    def _ping_loss(self, name: str, figures: Any) -> list[Check]:
        """Return the check of the loss. Stock Flent's reducer does not support names with "::"."""
        (ping,) = [p for p in self.run.pings if plain_name(p.name, "ping") == plain_name(name, "ping")]
        lost = None if figures.lost is None else share(ping_ms(self.run, ping).values)
        return [] if "::" in name else [Check(f"{name} loss", lost, (name, "raw_seq_loss", None))]

    def _voice(self, name: str, figures: Any) -> list[Check]:
        (stream,) = self.run.datagrams
        delay = f"{name}::owd_up" if self.irtt else name
        return [
            *self._statistics(name, delay, figures.owd_ms),
            Check(f"{name} MOS", figures.mos, (name, "mos", self.cutoff), MOS),
            Check(f"{name} loss", share(delays_ms(self.run, stream).values), (name, "raw_seq_loss", None)),
        ]

    def totals(self, computed: list[str]) -> list[Check]:
        """Return the checks of the sums and Jain's indices that stock Flent computes. A direction without flows has no
        check, since its sum is 0 here."""
        totals = self.run.summary.totals
        values = {"TCP upload sum": totals.upload_mbps or None, "TCP download sum": totals.download_mbps or None,
                "TCP upload fairness": totals.upload_fairness,
                "TCP download fairness": totals.download_fairness}  # fmt: skip
        return [Check(name, values[name], (name, "mean", None), self.goodput) for name in computed if name in values]


def deviations(stock: Stock, path: Path, series: dict[str, Any], goodput: Tolerance, **request: Any) -> list[str]:
    """Return where our figures of a file differ from stock Flent's."""
    irtt, computed = request.pop("irtt"), request.pop("computed")
    try:
        file = File(path, series, goodput, irtt)
    except InputError as error:
        return [f"refused: {str(error).partition(str(path))[2]}"]
    kinds = {name: kind_of for name, keys in series.items() if (kind_of := kind(keys))}
    presence = [Check(name, None, (name, "mean", None)) for name in kinds]
    listed = [name for name, kind_of in kinds.items() if (kind_of, plain_name(name, kind_of)) in file.streams]
    checks = [check for name in listed for check in file.checks(name, kinds[name])] + file.totals(computed)
    questions = [check.question for check in presence + checks]
    answers = stock.ask(path=str(path), zone=request.pop("zone", "UTC"), questions=questions, **request)
    measured = {check.label for check, (value, _) in zip(presence, answers, strict=False) if value is not None}
    expected = {(kinds[name], plain_name(name, kinds[name])) for name in measured}
    rows = zip(checks, answers[len(presence) :], strict=True)
    return [
        *(f"{name}: not shown" for name in sorted(measured - set(listed))),
        *(f"{' '.join(key)}: shown, but stock has no such measurement"
          for key in sorted(file.streams.keys() - expected)),
        *(text for check, (value, samples) in rows if _series(check) in {*measured, *computed}
          and (text := check.deviation(value, samples))),
    ]  # fmt: skip


def _series(check: Check) -> str:
    return check.question[0].removesuffix("::owd_up")


def describe(stock: Stock, name: str) -> Any:
    """Return stock Flent's description of a test with several hosts and streams."""
    return stock.ask(test=name, settings=SETTINGS, parameters=PARAMETERS)


def fabricated_deviations(stock: Stock, folder: Path, name: str, form: Format, zone: str = "UTC") -> list[str]:
    """Write a file of the test in the format, and return its deviations. Without points, stock Flent's sum is too low:
    at each step it adds only the flows that have a value there."""
    test, path = describe(stock, name), folder / f"{name}-{form.name}.flent.gz"
    write(path, name, test, form)
    return deviations(
        stock, path, selected(test), GOODPUT if form.points else STEPS, irtt=form.irtt, zone=zone,
        computed=test["computed"] if form.points else [], settings=SETTINGS, parameters=PARAMETERS,
    )  # fmt: skip


def agree(deviations: list[str]) -> None:
    """Fail with all deviations."""
    assert not deviations, "\n".join(["our figures differ from stock Flent's:", *deviations])


def test_the_tests_are_those_of_stock_flent(stock: Stock) -> None:
    assert set(stock.ask()) - WHEEL_ONLY == set(TESTS)
    for name in TESTS:
        test = describe(stock, name)
        for series, keys in test["series"].items():
            assert kind(keys) or series in test["computed"] or NOT_SHOWN[keys["runner"]], series


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("name", TESTS)
def test_every_figure_of_a_fabricated_file_is_that_of_stock_flent(
    stock: Stock, tmp_path: Path, name: str, form: Format
) -> None:
    agree(fabricated_deviations(stock, tmp_path, name, form))


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set this process's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"], indirect=True)
def test_the_figures_are_the_same_in_every_time_zone(stock: Stock, tmp_path: Path, zone: str) -> None:
    (form,) = [form for form in FORMATS if form.version == 2]
    agree(fabricated_deviations(stock, tmp_path, "rrul", form, zone))


def content_of(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("name", EXAMPLES.split())
def test_every_figure_of_a_real_file_is_that_of_stock_flent(stock: Stock, name: str) -> None:
    path = example_files()[name]
    content = content_of(path)
    meta = content["metadata"]
    settings = {"LENGTH": meta["LENGTH"], "HOSTS": meta["HOSTS"]}
    streams = sum(re.fullmatch(r"TCP upload::\d+", series) is not None for series in content["results"])
    test = stock.ask(test=meta["NAME"], settings=settings, parameters={"upload_streams": str(streams)})
    series = {series: keys for series, keys in test["series"].items() if series in content["raw_values"]}
    assert any(map(kind, series.values()))
    irtt = any("owd_up" in point for points in content["raw_values"].values() for point in points[:9])
    computed = [series for series in test["computed"] if series in content["results"]]
    agree(deviations(stock, path, series, EXACT, irtt=irtt, computed=computed))


def test_the_real_files_are_all_examples(stock: Stock) -> None:
    assert set(example_files()) == set(EXAMPLES.split())


@pytest.mark.parametrize(
    ("key", "series"), [("val", "TCP upload"), ("val", "Ping (ms) ICMP"), ("seq", "Ping (ms) ICMP")]
)
def test_another_value_in_a_file_is_a_deviation(stock: Stock, tmp_path: Path, key: str, series: str) -> None:
    """Compare the figures of a file with stock Flent's of another one, whose last value differs."""
    test, path = describe(stock, "tcp_upload"), tmp_path / "file.flent.gz"
    write(path, "tcp_upload", test, FORMATS[0])
    file = File(path, selected(test), GOODPUT, irtt=True)
    content = content_of(path)
    points = [point for point in content["raw_values"][series] if key in point]
    points[len(points) // 2][key] += 900
    content["metadata"]["SERIES_META"] = {}
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    checks = file.checks(series, "flow" if series == "TCP upload" else "ping")
    answers = stock.ask(path=str(path), zone="UTC", questions=[check.question for check in checks])
    assert any(check.deviation(*answer) for check, answer in zip(checks, answers, strict=True))
