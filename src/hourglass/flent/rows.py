# SPDX-License-Identifier: Apache-2.0
"""Converts points of a Flent file to rows of the record tables. Points have s since the test's start, rows have ns."""

from collections.abc import Iterator, Sequence

from hourglass.flent.document import Point
from hourglass.results.series import NS_PER_MS, NS_PER_S

SOCKETS = {"tcp_cwnd": ("snd_cwnd", 1.0), "tcp_rtt": ("rtt", 1e3), "tcp_rtt_var": ("rttvar", 1e3),
           "tcp_pacing_rate": ("pacing_rate", 1e6 / 8), "tcp_delivery_rate": ("delivery_rate", 1e6 / 8)}  # fmt: skip
"""Keys of points from ss → the column of table `tcp`, and the factor to its unit."""

Timed = tuple[float, Point]
Row = dict[str, int | bool | None]


def received(stream: int, points: Sequence[Timed], start_s: float) -> Iterator[Row]:
    """Yield rows of table `tcp`: the received bytes of a flow that starts at `start_s`."""
    total, last_s, first = 0.0, start_s, True
    for t_s, point in points:
        duration_s = point.dur or max(0.0, t_s - last_s)
        if first or t_s - duration_s > last_s + 1e-9:
            yield _received(stream, t_s - duration_s, total)
        total += (point.val or 0.0) * 1e6 / 8 * duration_s
        yield _received(stream, t_s, total)
        last_s, first = t_s, False


def _received(stream: int, t_s: float, total: float) -> Row:
    return {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": False, "bytes_received": round(total)}


def sent(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `tcp`: ss's values of a flow's sender."""
    for t_s, point in points:
        columns = ((ours, getattr(point, key), unit) for key, (ours, unit) in SOCKETS.items())
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": True} | {
            ours: round(value * unit) for ours, value, unit in columns if value is not None
        }


def answers(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `ping`, one per packet. A gap in the numbers becomes lost packets, spread over the gap."""
    last_ns, last = 0, -1
    for position, (t_s, point) in enumerate(points):
        seq = position if point.seq is None else point.seq
        t_ns = round(t_s * NS_PER_S)
        if position and seq > last + 1:
            spacing_ns = (t_ns - last_ns) // (seq - last)
            for lost in range(last + 1, seq):
                yield {"t_ns": last_ns + spacing_ns * (lost - last), "stream": stream, "seq": lost}
        last_ns, last = t_ns, seq
        rtt_ns = None if point.lost else _ns(point.val)
        yield {"t_ns": t_ns, "stream": stream, "seq": seq, "rtt_ns": rtt_ns, "owd_up_ns": _ns(point.owd_up),
               "owd_down_ns": _ns(point.owd_down)}  # fmt: skip


def voice(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `datagram`: the packets of a VoIP stream."""
    for t_s, point in points:
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "seq": point.seq, "owd_ns": _ns(point.owd_up),
               "refused": False}  # fmt: skip


def fetches(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `fetch`. Points have the time of completion."""
    for seq, (t_s, point) in enumerate(points):
        done_ns = _ns(point.val)
        yield {"t_ns": round(t_s * NS_PER_S) - (done_ns or 0), "stream": stream, "seq": seq, "bytes": point.bytes or 0,
               "done_ns": done_ns}  # fmt: skip


def _ns(ms: float | None) -> int | None:
    return None if ms is None else round(ms * NS_PER_MS)
