# SPDX-License-Identifier: Apache-2.0
"""Measures: figures that a summary lacks, of spans of a test, of two runs, of the time after an event.

The test's flows are those of its client; the rivals are the flows of `test.competing`. The parameters `from`, `to` and
`at` are seconds after the load's beginning; `mbps` is the line's rate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from hourglass.contract.plan import FlowStream
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, payload_at, ping_ms
from hourglass.results.stats import Floats, fairness
from hourglass.scenario.blame import refusal
from hourglass.studies import bbr

Better = Literal["more", "less", ""]

PAYLOAD = 1448 / 1514
"""The share of payload in a full frame with timestamps, as links' shapers and policers count it."""
NEAR = 0.9
"""The share of a new rate at which it counts as reached: "time to 90 %"."""
BIN_S = 0.1
DRAINED = 1.1
DRAINED_MS = 1.0
"""A queue is drained when a ping waits at most this much longer than pings wait in the end."""


@dataclass(frozen=True)
class MeasureContext:
    """The input of a measure: a run, the parameters, the run that it is compared with."""

    run: Recording
    parameters: Mapping[str, Any]
    alone: Recording | None = None

    def at(self, key: str, default: float = 0.0) -> int:
        """Return the time of a parameter in ns of test time."""
        return round((self.run.test.delay_s + float(self.parameters.get(key, default))) * NS_PER_S)

    @property
    def in_load(self) -> bool:
        """Tell if the times of the parameters are within the load, with time between them."""
        times = (self.parameters.get(key, 0) for key in ("from", "at", "to"))
        return self.window.length_s > 0 and all(time <= self.run.test.length_s for time in times)

    @property
    def capacity_mbps(self) -> float:
        """The payload that a line of `mbps` carries."""
        return PAYLOAD * float(self.parameters["mbps"])

    @property
    def window(self) -> Window:
        """The window between `from` and `to`; by default the load."""
        return Window(self.at("from"), self.at("to", self.run.test.length_s))

    @property
    def flows(self) -> list[FlowStream]:
        """The flows of the test's client."""
        return client_flows(self.run)

    @property
    def rivals(self) -> list[FlowStream]:
        """The flows of `test.competing`."""
        return [flow for flow in self.run.flows if flow not in self.flows]


def client_flows(run: Recording) -> list[FlowStream]:
    """Return the flows of the test's client."""
    return [flow for flow in run.flows if flow.client == run.test.client]


def mbps(run: Recording, flows: list[FlowStream], window: Window) -> float:
    """Return the goodput of some flows together."""
    edges = np.array([window.start_ns, window.end_ns], dtype=np.float64)
    return sum(float(np.diff(payload_at(run, flow, edges))[0]) for flow in flows) * 8 / 1e6 / window.length_s


def samples(run: Recording, flows: list[FlowStream], window: Window) -> pl.DataFrame:
    """Return the samples of some flows' senders in a window."""
    names = [flow.name for flow in flows]
    return run.tcp.filter(pl.col("stream").is_in(names) & pl.col("sender") & window.contains()).sort("stream", "t_ns")


def grown(run: Recording, flows: list[FlowStream], window: Window, column: str) -> float:
    """Return the growth of a counter of the senders in a window, all flows together."""
    table = samples(run, flows, window).drop_nulls(column).group_by("stream")
    ends = table.agg((pl.col(column).cast(pl.Int64).last() - pl.col(column).cast(pl.Int64).first()).alias("n"))
    return float(ends["n"].sum())


def rtt_ms(run: Recording, flows: list[FlowStream], window: Window) -> float | None:
    """Return the median of the senders' smoothed RTT."""
    table = samples(run, flows, window).filter(pl.col("rtt") > 0)
    rtt_us = table["rtt"].cast(pl.Float64).median()
    return rtt_us / 1000 if isinstance(rtt_us, float) else None


def waits_ms(context: MeasureContext, window: Window) -> tuple[Floats, Floats]:
    """Return (ns, ms) of the pings of a window: the excess of each over the shortest of the run."""
    if not context.run.pings:
        return np.empty(0), np.empty(0)
    series = ping_ms(context.run, context.run.pings[0])
    t_ns, values = series.t_s * NS_PER_S, series.values
    answered = np.isfinite(values)
    base = float(values[answered].min()) if answered.any() else 0.0
    inside = answered & (t_ns >= window.start_ns) & (t_ns < window.end_ns)
    return t_ns[inside], values[inside] - base


def _goodput(context: MeasureContext) -> float:
    return mbps(context.run, context.flows, context.window)


def _utilisation(context: MeasureContext) -> float:
    return 100 * mbps(context.run, list(context.run.flows), context.window) / float(context.parameters["mbps"])


def _share(context: MeasureContext) -> float | None:
    total = mbps(context.run, list(context.run.flows), context.window)
    return _goodput(context) / total if total > 0 else None


def _ratio(context: MeasureContext) -> float | None:
    rivals = mbps(context.run, context.rivals, context.window)
    return _goodput(context) / rivals if rivals > 0 else None


def _jain(context: MeasureContext) -> float | None:
    return fairness([mbps(context.run, [flow], context.window) for flow in context.run.flows])


def _harm_rate(context: MeasureContext) -> float | None:
    assert context.alone is not None
    solo = mbps(context.alone, client_flows(context.alone), context.window)
    return max(0.0, 1 - mbps(context.run, context.rivals, context.window) / solo) if solo > 0 else None


def _more_is_harm(solo: float | None, shared: float | None) -> float | None:
    """Return the harm to a figure of which less is better: (y - x) / y, with x alone and y shared."""
    if solo is None or shared is None:
        return None
    return max(0.0, (shared - solo) / shared) if shared > 0 else 0.0


def _harm_latency(context: MeasureContext) -> float | None:
    assert context.alone is not None
    alone = rtt_ms(context.alone, client_flows(context.alone), context.window)
    return _more_is_harm(alone, rtt_ms(context.run, context.rivals, context.window))


def _harm_loss(context: MeasureContext) -> float | None:
    assert context.alone is not None
    alone = _resent(context.alone, client_flows(context.alone), context.window)
    return _more_is_harm(alone, _resent(context.run, context.rivals, context.window))


def _resent(run: Recording, flows: list[FlowStream], window: Window) -> float | None:
    """Return the retransmitted segments in % of all sent segments."""
    sent = grown(run, flows, window, "data_segs_out")
    return 100 * grown(run, flows, window, "total_retrans") / sent if sent else None


def _retransmitted(context: MeasureContext) -> float | None:
    return _resent(context.run, context.flows, context.window)


def _dropped(context: MeasureContext) -> float | None:
    """Return the packets that were dropped anywhere, in % of those that the senders' devices sent, over the whole run.
    Devices count them, not the senders."""
    senders = {flow.sender for flow in context.run.flows}
    totals = context.run.devices.filter(pl.col("node").is_in(senders)).group_by("node", "device")
    sent = totals.agg((pl.col("tx_packets").max() - pl.col("tx_packets").min()).alias("n"))["n"].sum()
    devices = (drops for by_device in context.run.summary.drops.values() for drops in by_device.values())
    dropped = sum(drops.qdisc_skbs + drops.nic + drops.cable for drops in devices)
    return 100 * dropped / float(sent) if sent else None


def _spurious(context: MeasureContext) -> float | None:
    sent = grown(context.run, context.flows, context.window, "data_segs_out")
    return 100 * grown(context.run, context.flows, context.window, "dsack_dups") / sent if sent else None


def _queue(context: MeasureContext) -> float | None:
    _, waits = waits_ms(context, context.window)
    return float(np.median(waits)) if waits.size else None


def _queue_peak(context: MeasureContext) -> float | None:
    _, waits = waits_ms(context, context.window)
    return float(waits.max()) if waits.size else None


def _drain(context: MeasureContext) -> float | None:
    """Return the time from `at` until pings, after the longest wait, wait no longer than in the last third before
    `to`."""
    window = Window(context.at("at"), context.at("to", context.run.test.length_s))
    t_ns, waits = waits_ms(context, window)
    settled = waits[t_ns >= window.end_ns - (window.end_ns - window.start_ns) / 3]
    if not settled.size:
        return None
    drained = waits <= max(DRAINED * float(np.median(settled)), float(np.median(settled)) + DRAINED_MS)
    peak = int(waits.argmax())
    after = np.flatnonzero(drained[peak:])
    return float(t_ns[peak + after[0]] - window.start_ns) / NS_PER_S if after.size else None


def _time_to_rate(context: MeasureContext) -> float | None:
    """Return the time from `at` until a tenth of a second has 90 % of the capacity of a line of `mbps`."""
    start, end = context.at("at"), context.at("to", context.run.test.length_s)
    edges = np.arange(start, end + 1, BIN_S * NS_PER_S)
    rates = np.diff(sum(payload_at(context.run, flow, edges) for flow in context.run.flows)) * 8 / 1e6 / BIN_S
    reached = np.flatnonzero(rates >= NEAR * PAYLOAD * float(context.parameters["mbps"]))
    return float((reached[0] + 1) * BIN_S) if reached.size else None


def _silence(context: MeasureContext) -> float | None:
    """Return the time from `at` until the first payload arrives."""
    start, end = context.at("at"), context.at("to", context.run.test.length_s)
    firsts = []
    for flow in context.run.flows:
        t_ns, received = context.run.sockets.payload(flow)
        before = received[t_ns <= start]
        later = t_ns[(t_ns > start) & (t_ns <= end) & (received > (before[-1] if before.size else 0))]
        firsts += [float(later[0])] if later.size else []
    return (min(firsts) - start) / NS_PER_S if firsts else None


def _sent(context: MeasureContext) -> float:
    return grown(context.run, context.flows, context.window, "data_segs_out")


def _timeouts(context: MeasureContext) -> float | None:
    """Return the number of spells of `retransmits` > 0: successive timeouts are one."""
    table = samples(context.run, context.flows, context.window)
    if table["retransmits"].null_count() == table.height:
        return None
    begins = (pl.col("retransmits") > 0) & (pl.col("retransmits").shift(1).over("stream").fill_null(0) == 0)
    return float(table.select(begins.sum()).item())


def _least_cwnd(context: MeasureContext) -> float | None:
    least = samples(context.run, context.flows, context.window)["snd_cwnd"].min()
    return float(least) if isinstance(least, int) else None


@dataclass(frozen=True)
class StudyMeasure:
    """A measure. `of`: returns the figure, None if the run has none. `keys`: optional parameters; `needs`: required
    ones. `compares`: it needs a run alone."""

    label: str
    unit: str
    better: Better
    of: Callable[[MeasureContext], float | None]
    keys: tuple[str, ...] = ("from", "to")
    needs: tuple[str, ...] = ()
    compares: bool = False

    def check(self, where: str, parameters: Mapping[str, Any]) -> None:
        """Raise `InputError` for unknown, wrong or missing parameters."""
        for key, value in parameters.items():
            if key not in (*self.keys, *self.needs):
                raise refusal(f"{where}.{key}", value, f"unknown key. Keys: {', '.join((*self.needs, *self.keys))}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise refusal(f"{where}.{key}", value, "must be a number, at least 0")
            if key == "mbps" and value == 0:
                raise refusal(f"{where}.{key}", value, "must be Mbit/s, above 0")
        begin = "at" if "at" in self.needs else "from"
        if "to" in parameters and parameters["to"] <= parameters.get(begin, 0):
            raise refusal(
                f"{where}.to", parameters["to"], f"must be a time after `{begin}` = {parameters.get(begin, 0)}"
            )
        for key in self.needs:
            if key not in parameters:
                raise refusal(f"{where}.{key}", None, "is missing")


def _of_bbr(of: Callable[[Recording, list[FlowStream]], float | None]) -> Callable[[MeasureContext], float | None]:
    return lambda context: of(context.run, context.flows)


def _of_rate(
    of: Callable[[Recording, list[FlowStream], float], float | None],
) -> Callable[[MeasureContext], float | None]:
    return lambda context: of(context.run, context.flows, context.capacity_mbps)


MEASURES: dict[str, StudyMeasure] = {
    "goodput": StudyMeasure("goodput", "Mbit/s", "more", _goodput),
    "utilisation": StudyMeasure("payload, share of the line's rate", "%", "more", _utilisation, needs=("mbps",)),
    "share": StudyMeasure("share of the goodput", "", "", _share),
    "ratio": StudyMeasure("rate, times the rival's", "", "", _ratio),
    "jain": StudyMeasure("Jain's index", "", "more", _jain),
    "harm_rate": StudyMeasure("harm to the rival's rate", "", "less", _harm_rate, compares=True),
    "harm_latency": StudyMeasure("harm to the rival's RTT", "", "less", _harm_latency, compares=True),
    "harm_loss": StudyMeasure("harm to the rival's loss", "", "less", _harm_loss, compares=True),
    "retransmitted": StudyMeasure("retransmitted", "%", "less", _retransmitted),
    "dropped": StudyMeasure("dropped on the path", "%", "less", _dropped, ()),
    "spurious": StudyMeasure("sent twice in vain (DSACK)", "%", "less", _spurious),
    "queue": StudyMeasure("standing queue", "ms", "less", _queue),
    "queue_peak": StudyMeasure("queue at most", "ms", "less", _queue_peak),
    "time_to_rate": StudyMeasure("until 90 % of the rate", "s", "less", _time_to_rate, ("to",), ("at", "mbps")),
    "drain": StudyMeasure("until the queue is as it stays", "s", "less", _drain, ("to",), ("at",)),
    "silence": StudyMeasure("until payload arrives again", "s", "less", _silence, ("to",), ("at",)),
    "sent": StudyMeasure("segments sent", "segments", "less", _sent),
    "timeouts": StudyMeasure("timeouts", "", "less", _timeouts),
    "least_cwnd": StudyMeasure("window at least", "segments", "", _least_cwnd),
    "bbr_bw_error": StudyMeasure(
        "max_bw at the end of STARTUP, off by", "%", "less", _of_rate(bbr.bw_error), (), ("mbps",)
    ),
    "bbr_startup": StudyMeasure("STARTUP lasts", "s", "less", _of_bbr(bbr.startup_s), ()),
    "bbr_drain_excess": StudyMeasure(
        "in flight above Inflight(1.0) at the end of DRAIN", "segments", "less", _of_bbr(bbr.drain_excess), ()
    ),
    "bbr_longterm": StudyMeasure(
        "inflight_longterm at the end of STARTUP", "BDP", "", _of_rate(bbr.longterm_bdp), (), ("mbps",)
    ),
    "bbr_cruise_excess": StudyMeasure(
        "in flight above its bounds when CRUISE begins", "segments", "less", _of_bbr(bbr.cruise_excess), ()
    ),
    "bbr_longterm_kept": StudyMeasure("inflight_longterm kept by a probe", "", "", _of_bbr(bbr.longterm_share), ()),
    "bbr_probe_rtt": StudyMeasure("PROBE_RTT lasts", "ms", "", _of_bbr(bbr.probe_rtt_ms), ()),
    "bbr_probe_rtt_cwnd": StudyMeasure("window in PROBE_RTT", "segments", "", _of_bbr(bbr.probe_rtt_cwnd), ()),
    "bbr_probe_rtt_interval": StudyMeasure(
        "from one PROBE_RTT to the next", "s", "", _of_bbr(bbr.probe_rtt_interval_s), ()
    ),
    "bbr_probe_rtts": StudyMeasure("times that PROBE_RTT was entered", "", "", _of_bbr(bbr.probe_rtts), ()),
    "bbr_left_startup": StudyMeasure("STARTUP was left", "", "", _of_bbr(bbr.left_startup), ()),
    "bbr_after_probe_rtt": StudyMeasure(
        "first PROBE_RTT was left to STARTUP", "", "", _of_bbr(bbr.back_to_startup), ()
    ),
    "bbr_cwnd_bdp": StudyMeasure("window at most, BDPs", "", "", _of_rate(bbr.cwnd_bdp), (), ("mbps",)),
    "bbr_bw": StudyMeasure(
        "max_bw, share of what the line carries", "", "",
        lambda context: bbr.bw_at(context.run, context.flows, context.at("at"), context.capacity_mbps),
        (), ("at", "mbps"),
    ),
}  # fmt: skip
"""The measures by name."""
