# SPDX-License-Identifier: Apache-2.0
"""Points of a Flent file as rows of our record tables. Times are s since the test's begin, rows' are ns."""

from collections.abc import Iterator, Sequence

from hourglass.flent.form import Point
from hourglass.results.series import NS_PER_MS, NS_PER_S

SOCKETS = {"tcp_cwnd": ("snd_cwnd", 1.0), "tcp_rtt": ("rtt", 1e3), "tcp_rtt_var": ("rttvar", 1e3),
           "tcp_pacing_rate": ("pacing_rate", 1e6 / 8), "tcp_delivery_rate": ("delivery_rate", 1e6 / 8)}  # fmt: skip
"""Keys of points from ss → our column and what one of Flent's units is in it."""

Timed = tuple[float, Point]
Row = dict[str, int | bool | None]


def received(stream: int, points: Sequence[Timed], begins_s: float) -> Iterator[Row]:
    """Table `tcp`: the bytes that a flow's receiver has, which begins at `begins_s`."""
    total, last_s, first = 0.0, begins_s, True
    for t_s, point in points:
        lasted_s = point.dur or max(0.0, t_s - last_s)
        if first or t_s - lasted_s > last_s + 1e-9:
            yield _received(stream, t_s - lasted_s, total)
        total += (point.val or 0.0) * 1e6 / 8 * lasted_s
        yield _received(stream, t_s, total)
        last_s, first = t_s, False


def _received(stream: int, t_s: float, total: float) -> Row:
    return {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": False, "bytes_received": round(total)}


def sent(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Table `tcp`: what ss told of a flow's sender."""
    for t_s, point in points:
        told = ((ours, getattr(point, key), unit) for key, (ours, unit) in SOCKETS.items())
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": True} | {
            ours: round(value * unit) for ours, value, unit in told if value is not None
        }


def answers(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Table `ping`, a row per packet. A gap in the numbers is as many lost ones, spread over the gap."""
    last_ns, last = 0, -1
    for place, (t_s, point) in enumerate(points):
        seq = place if point.seq is None else point.seq
        t_ns = round(t_s * NS_PER_S)
        if place and seq > last + 1:
            apart = (t_ns - last_ns) // (seq - last)
            for lost in range(last + 1, seq):
                yield {"t_ns": last_ns + apart * (lost - last), "stream": stream, "seq": lost}
        last_ns, last = t_ns, seq
        rtt_ns = None if point.lost else _ns(point.val)
        yield {"t_ns": t_ns, "stream": stream, "seq": seq, "rtt_ns": rtt_ns, "owd_up_ns": _ns(point.owd_up),
               "owd_down_ns": _ns(point.owd_down)}  # fmt: skip


def voice(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Table `datagram`: the packets of a VoIP stream."""
    for t_s, point in points:
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "seq": point.seq, "owd_ns": _ns(point.owd_up),
               "refused": False}  # fmt: skip


def fetches(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Table `fetch`; points are at the time of completion."""
    for seq, (t_s, point) in enumerate(points):
        done_ns = _ns(point.val)
        yield {"t_ns": round(t_s * NS_PER_S) - (done_ns or 0), "stream": stream, "seq": seq, "bytes": point.bytes or 0,
               "done_ns": done_ns}  # fmt: skip


def _ns(ms: float | None) -> int | None:
    return None if ms is None else round(ms * NS_PER_MS)
