# SPDX-License-Identifier: Apache-2.0
"""The loads of a run: who sends to whom over which hops, and how full each hop is.

A hop is *full* if it carries nearly its rate and packets nearly always wait for it, or if its queue overflows or marks.
A hop in the air is full if the channel is busy, frames nearly always wait, or they wait longer than the target of
mac80211's CoDel. The waits are those of the layer table.
"""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal

import polars as pl

from hourglass.contract.plan import Hop
from hourglass.contract.summary import RadioFigures
from hourglass.qdisc_line import FRAME_BYTES, QdiscLine
from hourglass.results.anatomy import window_sums
from hourglass.results.connections import Connection
from hourglass.results.cpus import cpus
from hourglass.results.hop_states import HopStates
from hourglass.results.lint.context import device_name, line_of, rate_text
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, Window, loaded_window, window_ends
from hourglass.results.wifi import wifi

Way = Literal["up", "down"]
Ends = tuple[str, str, Way]
"""Sender, receiver and direction of a load."""

FRAME_OVERHEAD = 24
"""Preamble, FCS and gap of a frame, which the line carries and a NIC does not count."""
CARRIES = 0.85
"""The share of its rate from which a cable is used up: ACKs, probing and drains of a congestion control need the
rest."""
WAITS = 0.5
"""The share of samples with a queue above which a hop that carries its rate is full."""
ALWAYS = 0.9
"""The share of samples with a queue from which a hop is full, even if its rate varies or others use it."""
LONG_FRAMES = 2
"""A wait in full frames that is a queue, not the frame in front."""
OVERFLOW_CARRIES = 0.3
"""The share of its rate from which an overflowing queue limits its flows."""
MAC80211_TARGET_MS = 20
"""CoDel's target in mac80211's queues (net/mac80211/tx.c)."""
AIR_BUSY = 0.8
"""The share of time in which a full channel is busy: backoff and interframe spaces are the rest."""
LEAST_BYTES = 0.01
"""The share of the bytes of the largest connection of programs from which another is a load."""
QUEUES = ("qdisc", "txq", "ring", "contention", "retry", "shaper")
"""The layers in which a packet waits for a hop."""
AQM_COUNTERS = ("ecn_mark", "ecn_marks", "marked", "ce_mark", "drop_mark")


@dataclass(frozen=True)
class HopLoad:
    """A hop of a load within the window. `carried_bps`: from the Ethernet header
    on. `utilisation`: of its rate. `waiting`: the share of samples with a queue.
    `backlog_bytes`, `backlog_skbs`: medians. `wait_ms`: the mean wait of the load's packets for it. `drops`, `marks`:
    by its queues; `lost`: by the medium at random. None: unknown."""

    hop: Hop
    carried_bps: float | None
    utilisation: float | None
    waiting: float | None
    backlog_bytes: float | None
    backlog_skbs: float | None
    wait_ms: float | None
    drops: int
    marks: int
    policed: int
    lost: int
    radio: RadioFigures | None
    delays: bool
    """netem delays packets here: its queue is no backlog."""

    @property
    def name(self) -> str:
        """Return node and device."""
        return device_name(self.hop)

    @property
    def varies(self) -> bool:
        """Tell if its rate is not constant, or shared with other links."""
        words = " ".join(self.hop.impairments)
        return any(word in words for word in ("trace", "outage", "half duplex", "medium"))

    @property
    def congested(self) -> int:
        """Return the packets that its queues dropped or marked."""
        return self.drops + self.marks + self.policed

    @property
    def full(self) -> bool:
        """Tell if the hop is used up."""
        if self.hop.medium == "air":
            busy = self.radio is not None and (self.radio.busy_percent or 0) >= 100 * AIR_BUSY
            stands = (self.waiting or 0) >= WAITS and (self.wait_ms or 0) >= MAC80211_TARGET_MS
            return busy or stands or (self.waiting or 0) >= AIR_BUSY
        carried = self.utilisation or 0
        if self.delays or self.waiting is None:
            return carried >= CARRIES
        if carried >= CARRIES and (self.waiting >= WAITS or self.after_line or self.waits_long):
            return True
        if self.congested > self.lost and carried >= OVERFLOW_CARRIES:
            return True
        return self.waiting >= ALWAYS and (self.varies or carried >= WAITS)

    @property
    def is_steady(self) -> bool:
        """Tell if it is full most of the time, not only when its queue overflows."""
        carries = self.hop.medium == "air" or (self.utilisation or 0) >= CARRIES
        return carries or (self.waiting or 0) >= ALWAYS

    @property
    def waits_long(self) -> bool:
        """Tell if packets wait longer than some frames take. Samples do not see the frames in a NIC's own memory."""
        return (self.wait_ms or 0) >= LONG_FRAMES * 8000 * FRAME_BYTES / self.hop.rate_bps

    @property
    def after_line(self) -> bool:
        """Tell if its rate is that of a policer, a shaper behind the line, or an ingress qdisc: their queue is not at
        the device."""
        hop = self.hop
        device_rates = (hop.line_bps, hop.shaper_bps, line_of(hop).frame_bps)
        return hop.medium == "cable" and hop.rate_bps < min(rate for rate in device_rates if rate)

    @property
    def limit(self) -> str:
        """Return what decides its rate, with the rate."""
        hop = self.hop
        rate = rate_text(hop.rate_bps)
        if hop.medium == "air":
            return f"802.11 at a PHY rate of {rate_text(hop.line_bps)}"
        if hop.shaper_bps == hop.rate_bps:
            return f"HTB at {rate}"
        for line, place in ((hop.qdisc, ""), (hop.ingress or "", " for arriving packets")):
            qdisc = QdiscLine(line, hop.line_bps)
            if qdisc.rate_bps and hop.rate_bps == qdisc.frame_bps:
                total = rate_text(qdisc.rate_bps)
                above = "" if qdisc.rate_bps == qdisc.frame_bps else f" ({total} with what the link layer adds)"
                return f"{qdisc.kind}{place} at {rate}{above}"
        if hop.rate_bps < hop.line_bps:
            kind = "policer" if any(text.startswith("policer") for text in hop.impairments) else "shaper"
            return f"the link's {kind} at {rate}"
        return f"a line of {rate}"


@dataclass(frozen=True)
class Load:
    """Streams from one sender to one receiver. `way`: their direction as in the layer table. Without a path, `hops` is
    empty. `window`: its time; for programs' connections, that of their packets."""

    sender: str
    receiver: str
    way: Way
    streams: tuple[str, ...]
    flows: tuple[str, ...]
    hops: tuple[HopLoad, ...]
    window: Window
    has_programs: bool

    @property
    def nodes(self) -> set[str]:
        """Return the nodes of the path."""
        return {self.sender, self.receiver, *(hop.hop.node for hop in self.hops)}

    @property
    def name(self) -> str:
        """Return the two ends."""
        return f"{self.sender} to {self.receiver}"


class Loads:
    """The loads of a run, and the tables within the loaded window that rules read."""

    def __init__(self, run: Recording) -> None:
        self.run = run
        self._carriers = _carriers(run)
        carriers = [] if run.flows or run.datagrams else self._carriers
        self.window: Window = _union([_time(each) for each in carriers] or [loaded_window(run)])
        self._states = HopStates(run, self.window)
        self.cpus = cache(partial(cpus, run))
        """Return the figures of the nodes' CPUs in a window."""
        self._sums = cache(lambda window: pl.DataFrame() if run.layer_totals.is_empty() else window_sums(run, window))
        self._radios = cache(lambda window: run.summary.wifi if window == loaded_window(run) else wifi(run, window))

    @property
    def sums(self) -> pl.DataFrame:
        """The time of all packets by stream, direction, node and layer."""
        return self._sums(self.window)

    def window_of(self, flows: tuple[str, ...]) -> Window:
        """Return the time of the loads that have these flows."""
        return _union([load.window for load in self.listed if set(flows) & set(load.flows)] or [self.window])

    @cached_property
    def listed(self) -> list[Load]:
        """Return the loads: flows, one-way streams and programs' connections, by their ends."""
        loaded = loaded_window(self.run)
        by_ends: dict[Ends, list[tuple[str, bool, Window]]] = {}
        for flow in self.run.flows:
            receiver = flow.server if flow.upload else flow.client
            ends: Ends = (flow.sender, receiver, "up" if flow.upload else "down")
            by_ends.setdefault(ends, []).append((flow.name, True, loaded))
        for stream in self.run.datagrams:
            by_ends.setdefault((stream.client, stream.server, "up"), []).append((stream.name, False, loaded))
        for connection in self._carriers:
            if connection.upload:
                ends = (connection.node, connection.to_node, "up")
            else:
                ends = (connection.to_node, connection.node, "down")
            row = (connection.name, connection.protocol == "tcp", _time(connection))
            by_ends.setdefault(ends, []).append(row)
        loads = []
        programs = {connection.name for connection in self._carriers}
        for ends, rows in by_ends.items():
            names = [name for name, *_ in rows]
            window = _union([each for *_, each in rows])
            hops = tuple(self._hop(hop, ends[2], names, window) for hop in self.path(*ends))
            flows = tuple(name for name, is_tcp, _ in rows if is_tcp)
            loads.append(Load(*ends, tuple(names), flows, hops, window, bool(programs & set(names))))
        return loads

    def path(self, sender: str, receiver: str, way: Way) -> list[Hop]:
        """Return the hops in the direction of the data, each with the qdisc that sent most."""
        client, server = (sender, receiver) if way == "up" else (receiver, sender)
        for path in self.run.paths:
            if {path.client, path.server} == {client, server}:
                is_forward = (path.client == client) == (way == "up")
                return [self._states.of(hop)[0] for hop in (path.there if is_forward else path.back)]
        return []

    @cached_property
    def _ends(self) -> dict[str, tuple[str, str]]:
        """Return client and server of each stream."""
        ends = {stream.name: (stream.client, stream.server) for stream in self.run.streams}
        return ends | {each.name: (each.node, each.to_node) for each in self.run.connections}

    def hop_at(self, stream: str, way: Way, node: str) -> Hop | None:
        """Return the hop by which a stream's packets leave a node; None at their destination."""
        client, server = self._ends.get(stream, ("", ""))
        hops = self.path(*((client, server) if way == "up" else (server, client)), way)
        return next((hop for hop in hops if hop.node == node), None)

    def _hop(self, hop: Hop, way: Way, streams: list[str], window: Window) -> HopLoad:
        queue = self.of_device(self.run.queues, hop).filter(window.contains())
        waiting, size, skbs = _backlog(queue)
        if waiting is None:
            waiting, size, skbs = self._tc_backlog(hop, window)
        radio = self._radios(window).get(hop.node, {}).get(hop.device) if hop.medium == "air" else None
        link = self.run.summary.links.get(hop.node, {}).get(hop.device)
        policed = link.policed + link.shaper_full if link else 0
        dropped = self.run.summary.drops.get(hop.node, {}).get(hop.device)
        queue_drops = (dropped.qdisc if dropped.qdisc is not None else dropped.qdisc_skbs) if dropped else 0
        if hop.ingress and (ingress := self.run.summary.drops.get(hop.to_node, {}).get(f"ifb4{hop.to_device}")):
            queue_drops += ingress.qdisc or ingress.qdisc_skbs
        carried_bps, line_bps = self._carried(hop, window)
        return HopLoad(
            hop=hop,
            carried_bps=carried_bps,
            utilisation=_utilisation(hop, carried_bps, line_bps),
            waiting=waiting,
            backlog_bytes=size,
            backlog_skbs=skbs,
            wait_ms=self._wait_ms(hop, way, streams, window),
            drops=queue_drops,
            marks=self._marks(hop) + (link.marked if link else 0),
            policed=policed,
            lost=max(0, dropped.cable - policed) if dropped and hop.medium == "cable" else 0,
            radio=radio,
            delays=self.netem_ms(hop) > 0,
        )

    def of_device(self, table: pl.DataFrame, hop: Hop) -> pl.DataFrame:
        """Return the rows of a hop's device."""
        return table.filter((pl.col("node") == hop.node) & (pl.col("device") == hop.device))

    def _carried(self, hop: Hop, window: Window) -> tuple[float | None, float | None]:
        """Return the bits per second that left a device: without preambles and gaps, and with them."""
        ends = window_ends(self.of_device(self.run.devices, hop).sort("t_ns"), window)
        if ends is None:
            return None, None
        first, last = ends
        seconds, count = (last["t_ns"] - first["t_ns"]) / NS_PER_S, last["tx_bytes"] - first["tx_bytes"]
        if count < 0:  # its counters were reset
            return None, None
        return 8 * count / seconds, 8 * (count + FRAME_OVERHEAD * (last["tx_packets"] - first["tx_packets"])) / seconds

    def _tc_backlog(self, hop: Hop, window: Window) -> tuple[float | None, float | None, float | None]:
        """Return the backlog that tc counts, where the packet probe is missing."""
        rows = self.of_device(self.run.qdisc, hop).filter(window.contains() & (pl.col("parent") == "root"))
        rows = rows.filter(~pl.col("kind").str.ends_with(" class"))
        if rows.is_empty():
            return None, None, None
        size, skbs = (rows[name].cast(pl.Float64).median() for name in ("backlog", "qlen"))
        return float((rows["qlen"] > 0).cast(pl.Float64).mean() or 0), _float(size), _float(skbs)  # type: ignore[arg-type]

    def _marks(self, hop: Hop) -> int:
        by_place = self.run.summary.marks.get(hop.node, {}).get(hop.device, {})
        probed = sum(sum(streams.values()) for place, streams in by_place.items() if place in ("qdisc", "txq", "wire"))
        counters = self.run.summary.qdiscs.get(hop.node, {}).get(hop.device, {}).values()
        return max(probed, *(qdisc.get(name, 0) for qdisc in counters for name in AQM_COUNTERS), 0, 0)

    def netem_ms(self, hop: Hop) -> float:
        """Return the delay that netem adds at a device."""
        kinds = self.of_device(self.run.qdisc, hop)["kind"]
        if delay_us := line_of(hop).delay_us:
            return delay_us / 1000
        return hop.delay_ns / NS_PER_MS if "netem" in kinds.to_list() else 0.0

    def _wait_ms(self, hop: Hop, way: Way, streams: list[str], window: Window) -> float | None:
        """Return the mean wait of the data of streams for a hop, without netem's delay; None without the probe."""
        rows = self._sums(window)
        if rows.height:
            is_stream = pl.col("stream").cast(pl.String).is_in(streams)
            rows = rows.filter(is_stream & (pl.col("way") == way) & pl.col("data") & (pl.col("node") == hop.node))
        packets = int(rows["packets"].sum()) if rows.height else 0
        if not packets:
            return None
        waited = sum(int(rows[f"{layer}_ns"].sum()) for layer in QUEUES) / packets / NS_PER_MS
        return max(0.0, waited - self.netem_ms(hop))

    def median(self, hop: Hop, column: str) -> float | None:
        """Return the median of a column of the table `queue` at a device."""
        values = self.of_device(self.run.queues, hop).filter(self.window.contains())[column].drop_nulls()
        return _float(values.median())

    def bdp_bytes(self, hop: Hop, rtt_ms: float) -> float:
        """Return the bytes that a hop carries in a round trip, in full frames at least."""
        return max(FRAME_BYTES, hop.rate_bps * rtt_ms / 8000)


def _carriers(run: Recording) -> list[Connection]:
    """Return the programs' connections with much data, compared with the largest."""
    candidates = [connection for connection in run.connections if connection.bytes and connection.to_node]
    least = LEAST_BYTES * max((connection.bytes for connection in candidates), default=0)
    return [connection for connection in candidates if connection.bytes >= least]


def _time(connection: Connection) -> Window:
    return Window(connection.start_ns, connection.end_ns)


def _union(windows: list[Window]) -> Window:
    return Window(min(each.start_ns for each in windows), max(each.end_ns for each in windows))


def _utilisation(hop: Hop, carried_bps: float | None, line_bps: float | None) -> float | None:
    """Return the share of its rate that a cable carries: a line carries preambles and gaps, other limits do not."""
    if carried_bps is None or line_bps is None or hop.medium == "air":
        return None
    line = line_bps / hop.line_bps
    return max(line, carried_bps / hop.rate_bps) if hop.rate_bps < hop.line_bps else line


def _backlog(queue: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """Return the share of samples with a queue, and the medians of its bytes and skbs, above the NIC and in it."""
    if queue.is_empty():
        return None, None, None
    above = queue["qdisc_packets"].fill_null(0).cast(pl.Int64) + queue["txq_packets"].fill_null(0).cast(pl.Int64)
    size = sum(queue[name].fill_null(0).cast(pl.Int64) for name in ("qdisc_bytes", "txq_bytes", "ring_bytes"))
    total = above + queue["ring_skbs"].fill_null(0).cast(pl.Int64)
    assert isinstance(size, pl.Series)
    return _float((total > 0).cast(pl.Float64).mean()), _float(size.median()), _float(above.median())


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
