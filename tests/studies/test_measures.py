# SPDX-License-Identifier: Apache-2.0
"""Measures of recordings that are made by formula: each figure is known beforehand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hourglass.contract.plan import Plan
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.studies.measures import MEASURES, PAYLOAD, MeasureContext
from tests.results import synthetic
from tests.results.synthetic import MS, Flow, Probe, Recipe, S

MBPS = 125_000
"""Bytes per second of 1 Mbit/s."""


def recording(path: Path, recipe: Recipe, rival: bool = False) -> Recording:
    """Return a run whose flows begin at 2 s. With `rival`, the second flow is another client's."""
    synthetic.make(path, recipe)
    if rival:
        plan = Plan.model_validate_json((path / "plan.json").read_bytes())
        other = plan.streams[1].model_copy(update={"client": "rival", "sender": "rival"})
        streams = [plan.streams[0], other, *plan.streams[2:]]
        paths = [*plan.paths, plan.paths[0].model_copy(update={"client": "rival"})]
        changes = {"streams": streams, "nodes": [*plan.nodes, "rival"], "paths": paths}
        (path / "plan.json").write_bytes(plan.model_copy(update=changes).to_json())
    return open_run(path)


def measure(
    name: str, run: Recording, parameters: Mapping[str, Any] | None = None, alone: Recording | None = None
) -> float:
    value = MEASURES[name].of(MeasureContext(run, parameters or {}, alone))
    assert value is not None
    return value


def steps(*pairs: tuple[float, float]) -> Callable[[float], int]:
    """Return a function of the bytes that are delivered by a time. Each pair is a time and the rate in Mbit/s from then
    on."""

    def bytes_at(t: float) -> int:
        ends = [start for start, _ in pairs[1:]] + [float("inf")]
        return round(
            sum(MBPS * mbps * max(0.0, min(t, end) - start) for (start, mbps), end in zip(pairs, ends, strict=True))
        )

    return bytes_at


@pytest.fixture(scope="module")
def two_flows(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return a run of 30 Mbit/s with an RTT of 20 ms, and of a rival with 10 Mbit/s and 40 ms."""
    flows = [
        Flow("one", bytes_at=steps((0, 30)), rtt_us=lambda t: 20_000),
        Flow("two", bytes_at=steps((0, 10)), rtt_us=lambda t: 40_000),
    ]
    return recording(tmp_path_factory.mktemp("two") / "run", Recipe(flows=flows), rival=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return a run of the rival alone, with 40 Mbit/s and 10 ms."""
    flow = Flow("two", bytes_at=steps((0, 40)), rtt_us=lambda t: 10_000)
    return recording(tmp_path_factory.mktemp("alone") / "run", Recipe(flows=[flow]))


def test_shares_of_a_line(two_flows: Recording) -> None:
    assert measure("goodput", two_flows) == pytest.approx(30, rel=1e-6)
    assert measure("share", two_flows) == pytest.approx(0.75)
    assert measure("ratio", two_flows) == pytest.approx(3)
    assert measure("utilisation", two_flows, {"mbps": 50}) == pytest.approx(80)
    assert measure("jain", two_flows) == pytest.approx(40**2 / (2 * (30**2 + 10**2)))


def test_harm_is_the_loss_relative_to_the_victim_alone(two_flows: Recording, alone: Recording) -> None:
    assert measure("harm_rate", two_flows, alone=alone) == pytest.approx(1 - 10 / 40)
    assert measure("harm_latency", two_flows, alone=alone) == pytest.approx((40 - 10) / 40)
    assert measure("harm_rate", two_flows, alone=two_flows) == pytest.approx(1 - 10 / 30)


def test_a_gain_is_no_harm(two_flows: Recording, tmp_path: Path) -> None:
    slow = recording(tmp_path / "run", Recipe(flows=[Flow("two", bytes_at=steps((0, 5)), rtt_us=lambda t: 90_000)]))
    assert measure("harm_rate", two_flows, alone=slow) == 0
    assert measure("harm_latency", two_flows, alone=slow) == 0


def test_a_window_is_cut_out(tmp_path: Path) -> None:
    run = recording(tmp_path / "run", Recipe(flows=[Flow(bytes_at=steps((0, 10), (4, 20)))]))
    assert measure("goodput", run, {"from": 4}) == pytest.approx(20)
    assert measure("goodput", run, {"from": 2, "to": 6}) == pytest.approx(15)


def test_the_time_to_a_rate_is_that_of_the_first_tenth_with_nine_tenths(tmp_path: Path) -> None:
    full = 100 * PAYLOAD
    run = recording(
        tmp_path / "run", Recipe(flows=[Flow(bytes_at=steps((0, 10), (4.5, 0.89 * full), (6, 0.91 * full)))])
    )
    assert measure("time_to_rate", run, {"at": 4, "mbps": 100}) == pytest.approx(2.1)
    assert MEASURES["time_to_rate"].of(MeasureContext(run, {"at": 4, "mbps": 200})) is None


def test_silence_lasts_until_payload_comes_again(tmp_path: Path) -> None:
    run = recording(tmp_path / "run", Recipe(flows=[Flow(bytes_at=steps((0, 10), (3, 0), (5.25, 10)))]))
    assert measure("silence", run, {"at": 4}) == pytest.approx(1.26)


def test_queues_are_the_wait_of_pings_above_the_minimum(tmp_path: Path) -> None:
    """Pings are 200 ms apart. They take 10 ms, and 30 ms from 4 s of the load on. From 6 s on each takes 2 ms less,
    down to 20 ms."""

    def rtt_ns(seq: int) -> int:
        t = seq * 0.2 - 2
        if t < 4:
            return 10 * MS
        return 30 * MS if t < 6 else max(20, 30 - 2 * round((t - 6) / 0.2)) * MS

    run = recording(tmp_path / "run", Recipe(length=18, probes=[Probe(rtt_ns=rtt_ns)]))
    assert measure("queue", run, {"from": 4.1, "to": 5.9}) == pytest.approx(20)
    assert measure("queue_peak", run, {"from": 0}) == pytest.approx(20)
    assert measure("queue_peak", run, {"from": 9}) == pytest.approx(10)
    # the end's median is 10 ms above the quickest; 11 ms are near enough: the ping of 20 ms, the sixth from 6 s on
    assert measure("drain", run, {"at": 4}) == pytest.approx(3.0, abs=1e-6)


def test_counters_grow_within_the_window(tmp_path: Path) -> None:
    def tcp(recipe: Recipe) -> list[dict[str, Any]]:
        rows = synthetic.tcp_rows(recipe)
        for row in rows:
            t = row["t_ns"] / S - recipe.delay
            row |= {"data_segs_out": round(1000 * t), "dsack_dups": round(5 * t), "snd_cwnd": 7 if 3 < t < 4 else 9}
            row |= {"retransmits": 2 if 2 <= t < 2.5 or 6 <= t < 6.2 else 0}
        return [{"table": "tcp", "rows": rows}]

    run = recording(tmp_path / "run", Recipe(flows=[Flow(retrans_at=lambda t: round(20 * t))], further=tcp))
    assert measure("sent", run, {"from": 2, "to": 6}) == 4000
    assert measure("retransmitted", run, {"from": 2}) == pytest.approx(2)
    assert measure("spurious", run) == pytest.approx(0.5)
    assert measure("timeouts", run) == 2
    assert measure("timeouts", run, {"from": 5}) == 1
    assert measure("least_cwnd", run) == 7
    assert measure("least_cwnd", run, {"from": 5}) == 9


GAINS = {
    "STARTUP": (739, 739), "DRAIN": (88, 739), "PROBE_BW": (256, 512), "PROBE_RTT": (256, 256),
}  # fmt: skip
RATE = 10 * PAYLOAD
MSS = 1448


def bbr(
    path: Path,
    spells: list[tuple[float, str]],
    private_rows: Callable[[Recipe], list[dict[str, Any]]] = lambda _: [],
    **fields: Callable[[float], int],
) -> Recording:
    """Return a run of a BBR flow with 10 Mbit/s and 40 ms. `spells`: the seconds of the load at which phases begin.
    `private_rows`: the records of its private state."""

    def tcp(recipe: Recipe) -> list[dict[str, Any]]:
        rows = [row for row in synthetic.tcp_rows(recipe) if row["sender"]]
        for row in rows:
            t = row["t_ns"] / S - recipe.delay
            phase = [name for start, name in spells if start <= t + 1e-9][-1]
            row |= {"bbr_pacing_gain": GAINS[phase][0], "bbr_cwnd_gain": GAINS[phase][1], "snd_mss": MSS}
            row |= {"bbr_bw": round(RATE * MBPS), "bbr_min_rtt": 40_000, "unacked": 30, "sacked": 0, "lost": 0}
            row |= {"snd_cwnd": 4 if phase == "PROBE_RTT" else 80}
            row |= {name: make(t) for name, make in fields.items()}
        return [{"table": "tcp", "rows": rows}, *private_rows(recipe)]

    return recording(path, Recipe(length=30, flows=[Flow(cc="bbr")], further=tcp))


PHASES = [(0.0, "STARTUP"), (0.5, "DRAIN"), (0.7, "PROBE_BW"), (10.0, "PROBE_RTT"), (10.25, "PROBE_BW"),
          (20.2, "PROBE_RTT"), (20.5, "PROBE_BW")]  # fmt: skip


def test_the_phases_of_bbr_are_timed(tmp_path: Path) -> None:
    run = bbr(tmp_path / "run", PHASES, bbr_bw=lambda t: round(RATE * MBPS * (0.97 if t < 15 else 1)))
    assert measure("bbr_startup", run) == pytest.approx(0.5)
    assert measure("bbr_bw_error", run, {"mbps": 10}) == pytest.approx(3, abs=1e-3)
    assert measure("bbr_probe_rtt", run) == pytest.approx(250)
    assert measure("bbr_probe_rtt_interval", run) == pytest.approx(10)
    assert measure("bbr_probe_rtt_cwnd", run) == 4
    assert measure("bbr_probe_rtts", run) == 2
    assert measure("bbr_left_startup", run) == 1
    assert measure("bbr_bw", run, {"at": 10, "mbps": 10}) == pytest.approx(0.97)
    assert measure("bbr_bw", run, {"at": 16, "mbps": 10}) == pytest.approx(1)
    bdp = RATE * 1e6 / 8 * 0.04
    assert measure("bbr_cwnd_bdp", run, {"mbps": 10}) == pytest.approx(80 * MSS / bdp)


def test_data_in_flight_after_drain_are_compared_with_inflight(tmp_path: Path) -> None:
    """10 Mbit/s are 33.0 segments in 40 ms. Three quanta of two segments are allowed in addition."""
    bdp = RATE * 1e6 / 8 * 0.04 / MSS
    for number, (unacked, excess) in enumerate(((30, 0.0), (39, 0.0), (50, 50 - bdp - 6))):
        run = bbr(tmp_path / f"run{number}", PHASES, unacked=lambda t, unacked=unacked: unacked)  # type: ignore[misc]
        assert measure("bbr_drain_excess", run) == pytest.approx(excess, abs=1e-3)


def test_the_state_of_bbr3_is_compared_with_its_bounds(tmp_path: Path) -> None:
    """After STARTUP and DRAIN, DOWN and CRUISE alternate each second. The long-term bound is cut at 10 s and at 20 s.
    0.85 of it is 34 and then 27.2 segments, with 36 in flight; Inflight(1.0) is 39."""

    def phase(t: float) -> int:
        return 0 if t < 0.5 else 1 if t < 0.7 else 2 + int(t) % 2

    def longterm(t: float) -> int:
        return 2**32 - 1 if t < 0.5 else 40 if t < 10 else 40 if t < 20 else 32

    def cc(recipe: Recipe) -> list[dict[str, Any]]:
        rows = []
        for row in (row for row in synthetic.tcp_rows(recipe) if row["sender"]):
            t = row["t_ns"] / S - recipe.delay
            values = {"phase": phase(t), "inflight_longterm": longterm(t), "probes_too_high": int(t >= 10) + (t >= 20)}
            keys = {key: row[key] for key in ("t_ns", "stream", "sender")}
            rows += [keys | {"name": name, "value": value} for name, value in values.items()]
        return [{"table": "cc", "rows": rows}]

    plain = bbr(tmp_path / "plain", PHASES)
    run = bbr(tmp_path / "run", PHASES, cc, unacked=lambda t: 36)
    names = {"bbr_longterm": {"mbps": 10}, "bbr_cruise_excess": {}, "bbr_longterm_kept": {}}
    assert [MEASURES[name].of(MeasureContext(plain, parameters)) for name, parameters in names.items()] == [None] * 3
    assert measure("bbr_longterm", run, {"mbps": 10}) == pytest.approx(40 * MSS / (RATE * 1e6 / 8 * 0.04))
    assert measure("bbr_cruise_excess", run) == pytest.approx(36 - 0.85 * 32 - 2)
    assert measure("bbr_longterm_kept", run) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("spells", "expected"),
    [
        ([(0.0, "STARTUP"), (10.0, "PROBE_RTT"), (10.2, "STARTUP")], 1.0),
        ([(0.0, "STARTUP"), (10.0, "PROBE_RTT"), (10.2, "PROBE_BW")], 0.0),
        (PHASES, None),
        ([(0.0, "STARTUP"), (29.9, "PROBE_RTT")], None),
    ],
)
def test_probe_rtt_in_startup(tmp_path: Path, spells: list[tuple[float, str]], expected: float | None) -> None:
    assert MEASURES["bbr_after_probe_rtt"].of(MeasureContext(bbr(tmp_path / "run", spells), {})) == expected


def test_a_startup_that_its_timer_alone_interrupts_was_not_left(tmp_path: Path) -> None:
    run = bbr(tmp_path / "run", [(0.0, "STARTUP"), (10.0, "PROBE_RTT"), (10.2, "STARTUP")])
    assert (measure("bbr_left_startup", run), measure("bbr_probe_rtts", run)) == (0, 1)


@pytest.mark.parametrize("name", [name for name in MEASURES if name.startswith("bbr")])
def test_another_congestion_control_has_no_phases(name: str, alone: Recording) -> None:
    parameters = dict.fromkeys(MEASURES[name].needs, 1.0)
    assert MEASURES[name].of(MeasureContext(alone, parameters)) is None


def test_a_run_without_pings_has_no_queue(tmp_path: Path) -> None:
    run = recording(tmp_path / "run", replace(Recipe(), probes=[]))
    assert all(MEASURES[name].of(MeasureContext(run, {"at": 0})) is None for name in ("queue", "queue_peak", "drain"))


@pytest.mark.parametrize("parameters", [{"from": 50.0}, {"to": 100.0}, {"at": 31.0}])
def test_a_time_outside_the_load_has_no_figure(two_flows: Recording, parameters: dict[str, float]) -> None:
    assert not MeasureContext(two_flows, parameters).in_load
    at_the_end = MeasureContext(two_flows, dict.fromkeys(parameters, two_flows.test.length_s))
    assert at_the_end.in_load == ("from" not in parameters), "no time is left from the end on"
