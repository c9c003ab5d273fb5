# SPDX-License-Identifier: Apache-2.0
"""Figures that a summary has not: of spans of a test, of a run beside another, of what follows an event.

The test's own flows are those of its client; its rivals are the flows of `test.competing`. Times that a row gives
(`from`, `to`, `at`) are seconds after the load's beginning, rates (`mbps`) Mbit/s of the line.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from hourglass.contract.plan import Flow
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, payload_at, ping_ms
from hourglass.results.stats import Floats, fairness
from hourglass.scenario.blame import refusal
from hourglass.suites import bbr

Better = Literal["more", "less", ""]

PAYLOAD = 1448 / 1514
"""Of a full frame with timestamps, as links' shapers and policers count it, the share that is payload."""
NEAR = 0.9
"""A new rate is reached with this share of it: "time to 90 %"."""
BIN_S = 0.1
DRAINED = 1.1
DRAINED_MS = 1.0
"""A queue is what it will be when a ping waits no longer than so much above what pings wait in the end."""


@dataclass(frozen=True)
class Seen:
    """What a measure is taken of: a run, what the row gives, the run it is compared with."""

    run: Recording
    given: Mapping[str, Any]
    beside: Recording | None = None

    def at(self, key: str, default: float = 0.0) -> int:
        """A time that the row gives, in ns of test time."""
        return round((self.run.test.delay_s + float(self.given.get(key, default))) * NS_PER_S)

    @property
    def within(self) -> bool:
        """Whether the times that the row gives are within the load."""
        return all(self.given.get(key, 0) <= self.run.test.length_s for key in ("from", "at", "to"))

    @property
    def window(self) -> Window:
        """From `from` to `to`; the whole load."""
        return Window(self.at("from"), self.at("to", self.run.test.length_s))

    @property
    def own(self) -> list[Flow]:
        return own_flows(self.run)

    @property
    def rivals(self) -> list[Flow]:
        return [flow for flow in self.run.flows if flow not in self.own]


def own_flows(run: Recording) -> list[Flow]:
    """The flows of the test's client."""
    return [flow for flow in run.flows if flow.client == run.test.client]


def mbps(run: Recording, flows: list[Flow], window: Window) -> float:
    """Goodput of some flows together."""
    edges = np.array([window.start_ns, window.end_ns], dtype=np.float64)
    return sum(float(np.diff(payload_at(run, flow, edges))[0]) for flow in flows) * 8 / 1e6 / window.length_s


def samples(run: Recording, flows: list[Flow], window: Window) -> pl.DataFrame:
    """What the senders of some flows told in a window."""
    names = [flow.name for flow in flows]
    return run.tcp.filter(pl.col("stream").is_in(names) & pl.col("sender") & window.holds()).sort("stream", "t_ns")


def grown(run: Recording, flows: list[Flow], window: Window, column: str) -> float:
    """How much a counter of the senders grew in a window, all flows together."""
    table = samples(run, flows, window).drop_nulls(column).group_by("stream")
    ends = table.agg((pl.col(column).cast(pl.Int64).last() - pl.col(column).cast(pl.Int64).first()).alias("n"))
    return float(ends["n"].sum())


def rtt_ms(run: Recording, flows: list[Flow], window: Window) -> float | None:
    """The median of the senders' smoothed RTT."""
    table = samples(run, flows, window).filter(pl.col("rtt") > 0)
    found = table["rtt"].cast(pl.Float64).median()
    return found / 1000 if isinstance(found, float) else None


def waits_ms(seen: Seen, window: Window) -> tuple[Floats, Floats]:
    """(ns, ms) of the pings of a window: how much longer than the quickest of the run each was."""
    if not seen.run.pings:
        return np.empty(0), np.empty(0)
    found = ping_ms(seen.run, seen.run.pings[0])
    t_ns, values = found.t_s * NS_PER_S, found.values
    known = np.isfinite(values)
    base = float(values[known].min()) if known.any() else 0.0
    kept = known & (t_ns >= window.start_ns) & (t_ns < window.end_ns)
    return t_ns[kept], values[kept] - base


def _goodput(seen: Seen) -> float:
    return mbps(seen.run, seen.own, seen.window)


def _utilisation(seen: Seen) -> float:
    return 100 * mbps(seen.run, list(seen.run.flows), seen.window) / float(seen.given["mbps"])


def _share(seen: Seen) -> float | None:
    total = mbps(seen.run, list(seen.run.flows), seen.window)
    return _goodput(seen) / total if total > 0 else None


def _ratio(seen: Seen) -> float | None:
    rivals = mbps(seen.run, seen.rivals, seen.window)
    return _goodput(seen) / rivals if rivals > 0 else None


def _jain(seen: Seen) -> float | None:
    return fairness([mbps(seen.run, [flow], seen.window) for flow in seen.run.flows])


def _harm_rate(seen: Seen) -> float | None:
    assert seen.beside is not None
    solo = mbps(seen.beside, own_flows(seen.beside), seen.window)
    return max(0.0, 1 - mbps(seen.run, seen.rivals, seen.window) / solo) if solo > 0 else None


def _more_is_harm(solo: float | None, shared: float | None) -> float | None:
    """Harm of what is better less: (y - x) / y, with x alone and y beside the other."""
    if solo is None or shared is None:
        return None
    return max(0.0, (shared - solo) / shared) if shared > 0 else 0.0


def _harm_latency(seen: Seen) -> float | None:
    assert seen.beside is not None
    alone = rtt_ms(seen.beside, own_flows(seen.beside), seen.window)
    return _more_is_harm(alone, rtt_ms(seen.run, seen.rivals, seen.window))


def _harm_loss(seen: Seen) -> float | None:
    assert seen.beside is not None
    alone = _resent(seen.beside, own_flows(seen.beside), seen.window)
    return _more_is_harm(alone, _resent(seen.run, seen.rivals, seen.window))


def _resent(run: Recording, flows: list[Flow], window: Window) -> float | None:
    """Segments sent again, in % of all that were sent."""
    sent = grown(run, flows, window, "data_segs_out")
    return 100 * grown(run, flows, window, "total_retrans") / sent if sent else None


def _retransmitted(seen: Seen) -> float | None:
    return _resent(seen.run, seen.own, seen.window)


def _spurious(seen: Seen) -> float | None:
    sent = grown(seen.run, seen.own, seen.window, "data_segs_out")
    return 100 * grown(seen.run, seen.own, seen.window, "dsack_dups") / sent if sent else None


def _queue(seen: Seen) -> float | None:
    _, waits = waits_ms(seen, seen.window)
    return float(np.median(waits)) if waits.size else None


def _queue_peak(seen: Seen) -> float | None:
    _, waits = waits_ms(seen, seen.window)
    return float(waits.max()) if waits.size else None


def _drain(seen: Seen) -> float | None:
    """From the longest wait after `at` until pings wait no longer than in the last third before `to`; it counts from
    `at`."""
    window = Window(seen.at("at"), seen.at("to", seen.run.test.length_s))
    t_ns, waits = waits_ms(seen, window)
    settled = waits[t_ns >= window.end_ns - (window.end_ns - window.start_ns) / 3]
    if not settled.size:
        return None
    there = waits <= max(DRAINED * float(np.median(settled)), float(np.median(settled)) + DRAINED_MS)
    peak = int(waits.argmax())
    after = np.flatnonzero(there[peak:])
    return float(t_ns[peak + after[0]] - window.start_ns) / NS_PER_S if after.size else None


def _time_to_rate(seen: Seen) -> float | None:
    """After `at`, until a tenth of a second has 90 % of what the line of `mbps` can carry."""
    start, end = seen.at("at"), seen.at("to", seen.run.test.length_s)
    edges = np.arange(start, end + 1, BIN_S * NS_PER_S)
    rates = np.diff(sum(payload_at(seen.run, flow, edges) for flow in seen.run.flows)) * 8 / 1e6 / BIN_S
    there = np.flatnonzero(rates >= NEAR * PAYLOAD * float(seen.given["mbps"]))
    return float((there[0] + 1) * BIN_S) if there.size else None


def _silence(seen: Seen) -> float | None:
    """After `at`, until the first payload arrives."""
    start, end = seen.at("at"), seen.at("to", seen.run.test.length_s)
    firsts = []
    for flow in seen.run.flows:
        t_ns, received = seen.run.sockets.payload(flow)
        before = received[t_ns <= start]
        later = t_ns[(t_ns > start) & (t_ns <= end) & (received > (before[-1] if before.size else 0))]
        firsts += [float(later[0])] if later.size else []
    return (min(firsts) - start) / NS_PER_S if firsts else None


def _sent(seen: Seen) -> float:
    return grown(seen.run, seen.own, seen.window, "data_segs_out")


def _timeouts(seen: Seen) -> float | None:
    """Spells of `retransmits` > 0: timeouts in a row are one."""
    table = samples(seen.run, seen.own, seen.window)
    if table["retransmits"].null_count() == table.height:
        return None
    begins = (pl.col("retransmits") > 0) & (pl.col("retransmits").shift(1).over("stream").fill_null(0) == 0)
    return float(table.select(begins.sum()).item())


def _least_cwnd(seen: Seen) -> float | None:
    found = samples(seen.run, seen.own, seen.window)["snd_cwnd"].min()
    return float(found) if isinstance(found, int) else None


@dataclass(frozen=True)
class Measure:
    """`of`: the figure, None where the run has none. `keys`: what a row gives; those of `needs` it has to."""

    says: str
    unit: str
    better: Better
    of: Callable[[Seen], float | None]
    keys: tuple[str, ...] = ("from", "to")
    needs: tuple[str, ...] = ()
    compares: bool = False

    def check(self, where: str, given: Mapping[str, Any]) -> None:
        """Raises `InputError` for what a row gives and this does not take, and for what it lacks."""
        for key, value in given.items():
            if key not in (*self.keys, *self.needs):
                raise refusal(f"{where}.{key}", value, f"unknown key. Keys: {', '.join((*self.needs, *self.keys))}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise refusal(f"{where}.{key}", value, "a number, at least 0")
            if key == "mbps" and value == 0:
                raise refusal(f"{where}.{key}", value, "Mbit/s, above 0")
        begin = "at" if "at" in self.needs else "from"
        if "to" in given and given["to"] <= given.get(begin, 0):
            raise refusal(f"{where}.to", given["to"], f"a time after `{begin}` = {given.get(begin, 0)}")
        for key in self.needs:
            if key not in given:
                raise refusal(f"{where}.{key}", None, "is missing")


def _of_bbr(of: Callable[[Recording, list[Flow]], float | None]) -> Callable[[Seen], float | None]:
    return lambda seen: of(seen.run, seen.own)


def _of_rate(of: Callable[[Recording, list[Flow], float], float | None]) -> Callable[[Seen], float | None]:
    return lambda seen: of(seen.run, seen.own, PAYLOAD * float(seen.given["mbps"]))


MEASURES: dict[str, Measure] = {
    "goodput": Measure("goodput", "Mbit/s", "more", _goodput),
    "utilisation": Measure("payload, share of the line's rate", "%", "more", _utilisation, needs=("mbps",)),
    "share": Measure("share of the line", "", "", _share),
    "ratio": Measure("rate, times the rival's", "", "", _ratio),
    "jain": Measure("Jain's index", "", "more", _jain),
    "harm_rate": Measure("harm to the rival's rate", "", "less", _harm_rate, compares=True),
    "harm_latency": Measure("harm to the rival's RTT", "", "less", _harm_latency, compares=True),
    "harm_loss": Measure("harm to the rival's loss", "", "less", _harm_loss, compares=True),
    "retransmitted": Measure("retransmitted", "%", "less", _retransmitted),
    "spurious": Measure("sent twice in vain (DSACK)", "%", "less", _spurious),
    "queue": Measure("standing queue", "ms", "less", _queue),
    "queue_peak": Measure("queue at most", "ms", "less", _queue_peak),
    "time_to_rate": Measure("until 90 % of the rate", "s", "less", _time_to_rate, ("to",), ("at", "mbps")),
    "drain": Measure("until the queue is as it stays", "s", "less", _drain, ("to",), ("at",)),
    "silence": Measure("until payload arrives again", "s", "less", _silence, ("to",), ("at",)),
    "sent": Measure("segments sent", "segments", "less", _sent),
    "timeouts": Measure("timeouts", "", "less", _timeouts),
    "least_cwnd": Measure("window at least", "segments", "", _least_cwnd),
    "bbr_bw_error": Measure("max_bw at the end of STARTUP, off by", "%", "less", _of_rate(bbr.bw_error), (), ("mbps",)),
    "bbr_startup": Measure("STARTUP lasts", "s", "less", _of_bbr(bbr.startup_s), ()),
    "bbr_drain_excess": Measure(
        "in flight above Inflight(1.0) at the end of DRAIN", "segments", "less", _of_bbr(bbr.drain_excess), ()
    ),
    "bbr_longterm": Measure(
        "inflight_longterm at the end of STARTUP", "BDP", "", _of_rate(bbr.longterm_bdp), (), ("mbps",)
    ),
    "bbr_cruise_excess": Measure(
        "in flight above its bounds when CRUISE begins", "segments", "less", _of_bbr(bbr.cruise_excess), ()
    ),
    "bbr_longterm_kept": Measure("inflight_longterm kept by a probe", "", "", _of_bbr(bbr.longterm_kept), ()),
    "bbr_probe_rtt": Measure("PROBE_RTT lasts", "ms", "", _of_bbr(bbr.probe_rtt_ms), ()),
    "bbr_probe_rtt_cwnd": Measure("window in PROBE_RTT", "segments", "", _of_bbr(bbr.probe_rtt_cwnd), ()),
    "bbr_probe_rtt_interval": Measure("from one PROBE_RTT to the next", "s", "", _of_bbr(bbr.probe_rtt_interval_s), ()),
    "bbr_probe_rtts": Measure("times that PROBE_RTT was entered", "", "", _of_bbr(bbr.probe_rtts), ()),
    "bbr_left_startup": Measure("STARTUP was left", "", "", _of_bbr(bbr.left_startup), ()),
    "bbr_after_probe_rtt": Measure(
        "first PROBE_RTT was left to STARTUP", "", "", _of_bbr(bbr.back_to_startup), ()
    ),
    "bbr_cwnd_bdp": Measure("window at most, BDPs", "", "", _of_rate(bbr.cwnd_bdp), (), ("mbps",)),
    "bbr_bw": Measure(
        "max_bw, share of what the line carries", "", "",
        lambda seen: bbr.bw_at(seen.run, seen.own, seen.at("at"), PAYLOAD * float(seen.given["mbps"])),
        (), ("at", "mbps"),
    ),
}  # fmt: skip
"""By name."""
