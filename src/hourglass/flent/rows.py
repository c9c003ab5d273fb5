# SPDX-License-Identifier: Apache-2.0
"""Converts points of a Flent file to rows of the record tables."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hourglass.flent.measurement import Timed
from hourglass.results.series import NS_PER_MS, NS_PER_S

SOCKETS = {"tcp_cwnd": ("snd_cwnd", 1.0), "tcp_rtt": ("rtt", 1e3), "tcp_rtt_var": ("rttvar", 1e3),
           "tcp_pacing_rate": ("pacing_rate", 1e6 / 8), "tcp_delivery_rate": ("delivery_rate", 1e6 / 8)}  # fmt: skip
"""Keys of points from ss → the column of table `tcp`, and the factor to its unit."""

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


def payload_bytes(points: Sequence[Timed], start_s: float) -> int:
    """Return the received bytes of a flow."""
    return max((row["bytes_received"] or 0 for row in received(0, points, start_s)), default=0)


def _received(stream: int, t_s: float, total: float) -> Row:
    return {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": False, "bytes_received": round(total)}


def sent(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `tcp`: ss's values of a flow's sender."""
    for t_s, point in points:
        columns = ((column, getattr(point, key), unit) for key, (column, unit) in SOCKETS.items())
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": True} | {
            column: round(value * unit) for column, value, unit in columns if value is not None
        }


def answers(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `ping`, one per packet. Without packet numbers `seq` is null: losses are unknown."""
    for t_s, point in points:
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "seq": point.seq,
               "rtt_ns": None if point.lost else _ns(point.val), "owd_up_ns": _ns(point.owd_up),
               "owd_down_ns": _ns(point.owd_down)}  # fmt: skip
    for t_ns, seq in _missing(points):
        yield {"t_ns": t_ns, "stream": stream, "seq": seq}


def voice(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `datagram`: the packets of a VoIP stream. D-ITG's value is the one-way delay."""
    for t_s, point in points:
        owd = point.val if point.owd_up is None else point.owd_up
        yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "seq": point.seq,
               "owd_ns": None if point.lost else _ns(owd), "refused": False}  # fmt: skip
    for t_ns, seq in _missing(points):
        yield {"t_ns": t_ns, "stream": stream, "seq": seq, "refused": False}


def _missing(points: Sequence[Timed]) -> Iterator[tuple[int, int]]:
    """Yield time and number of the packets whose numbers are missing. Their times are spread over the gap."""
    numbered = sorted((point.seq, t_s) for t_s, point in points if point.seq is not None)
    for (before, before_s), (after, after_s) in pairwise(numbered):
        for seq in range(before + 1, after):
            yield round((before_s + (after_s - before_s) * (seq - before) / (after - before)) * NS_PER_S), seq


def fetches(stream: int, points: Sequence[Timed]) -> Iterator[Row]:
    """Yield rows of table `fetch`. Points have the time of completion."""
    for seq, (t_s, point) in enumerate(points):
        done_ns = _ns(point.val)
        yield {"t_ns": round(t_s * NS_PER_S) - (done_ns or 0), "stream": stream, "seq": seq, "bytes": point.bytes or 0,
               "done_ns": done_ns}  # fmt: skip


def _ns(ms: float | None) -> int | None:
    return None if ms is None else round(ms * NS_PER_MS)
