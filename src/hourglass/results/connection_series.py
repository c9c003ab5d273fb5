# SPDX-License-Identifier: Apache-2.0
"""Series of the connections that programs opened: goodput, TCP RTT and cwnd over time, of the direction with more
bytes.

Goodput of TCP is the growth of the receiver's in-order bytes. Without its samples, it is that of the bytes that the
sender saw acknowledged. At the end of the connection it is the bytes read. For datagrams it is the number of packets
that arrived, which the probe counts, times their mean payload. RTT and cwnd are those of the end that sent most.
"""

import numpy as np
import polars as pl

from hourglass.results.connections import CLOSED_EARLY_NS, Connection, largest
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, US_PER_MS, Series, floats, whole_run
from hourglass.results.stats import Floats

DRAWN = 8
"""The most connections in pictures and report: those with the most payload."""


def drawn(run: Recording) -> list[Connection]:
    """Return the connections that are drawn, in the order of their first packets."""
    chosen = largest(run.connections, DRAWN)
    return [connection for connection in run.connections if connection in chosen]


def left_out(run: Recording) -> str:
    """Return the note on the connections that a picture does not draw; "" if it draws all."""
    hidden = len(run.connections) - DRAWN
    return f"{DRAWN} of {len(run.connections)} connections, those with the most payload" if hidden > 0 else ""


def goodput_steps(run: Recording, connection: Connection) -> Series:
    """Return the goodput in each step of the test, from the connection's first packet to its last, Mbit/s; times are
    the steps' ends. The first value is 0, at the start of the first step."""
    step = round(run.test.step_s * NS_PER_S)
    window = whole_run(run)
    first, last = connection.start_ns // step * step, min(window.end_ns, -(-connection.end_ns // step) * step)
    edges_ns = np.append(np.arange(first, last, step, dtype=np.float64), float(last))
    if edges_ns.size < 2 or edges_ns[-1] == edges_ns[-2]:
        return Series(np.empty(0), np.empty(0))
    t_ns, received = _received(run, connection)
    grown = np.diff(np.interp(edges_ns, t_ns, received))
    return Series(edges_ns / NS_PER_S, np.concatenate([[0.0], grown * 8 * 1e3 / np.diff(edges_ns)]))


def tcp_rtt_ms(run: Recording, connection: Connection) -> Series:
    """Return the smoothed RTT at the end that sent most, ms. Zeros mean "not measured yet" and are left out."""
    rows = _end_samples(run, connection, connection.upload).filter(pl.col("rtt") > 0)
    return Series(_seconds(rows), floats(rows["rtt"]) / US_PER_MS)


def cwnd_segments(run: Recording, connection: Connection) -> Series:
    """Return the congestion window of the end that sent most, segments."""
    rows = _end_samples(run, connection, connection.upload).drop_nulls("snd_cwnd")
    return Series(_seconds(rows), floats(rows["snd_cwnd"]))


def closed_early(run: Recording) -> list[str]:
    """Return the drawn TCP connections whose sender closed its socket well before its last packet: it has no samples
    from then on."""
    ends = {
        connection.name: _end_samples(run, connection, connection.upload)["t_ns"].max()
        for connection in drawn(run)
        if connection.protocol != "udp"
    }
    sampled = [(connection, end) for connection in drawn(run) if isinstance(end := ends.get(connection.name), int)]
    return [connection.name for connection, end in sampled if end + CLOSED_EARLY_NS < connection.end_ns]


def _received(run: Recording, connection: Connection) -> tuple[Floats, Floats]:
    """Return (ns, bytes): payload that had arrived, 0 at the connection's start, all of it at its end."""
    total = float(connection.bytes_up if connection.upload else connection.bytes_down)
    t_ns, counts = np.empty(0), np.empty(0)
    for sender, column in ((False, "bytes_received"), (True, "bytes_acked")):
        rows = _end_samples(run, connection, sender == connection.upload).drop_nulls(column)
        if rows.height:
            t_ns, counts = floats(rows["t_ns"]), floats(rows[column])
            break
    else:
        t_ns, packets = _arrived(run, connection)
        counts = packets * (total / packets[-1]) if packets.size and packets[-1] else np.empty(0)
        t_ns = t_ns[: counts.size]
    inside = (t_ns > connection.start_ns) & (t_ns < connection.end_ns)
    levels = np.concatenate([[0.0], np.minimum(counts[inside], total), [total]])
    return np.concatenate([[connection.start_ns], t_ns[inside], [connection.end_ns]]), levels


def _arrived(run: Recording, connection: Connection) -> tuple[Floats, Floats]:
    """Return (ns, packets with data that had arrived) of the direction with more bytes."""
    way = "up" if connection.upload else "down"
    selection = (pl.col("stream") == connection.name) & pl.col("data") & (pl.col("way") == way)
    sums = run.layer_totals.filter(selection).group_by("t_ns").agg(pl.col("packets").max()).sort("t_ns")
    return floats(sums["t_ns"]), floats(sums["packets"])


def _end_samples(run: Recording, connection: Connection, client: bool) -> pl.DataFrame:
    """Return the samples of one end of a connection, by time."""
    return run.tcp.filter((pl.col("stream") == connection.name) & (pl.col("sender") == client)).sort("t_ns")


def _seconds(rows: pl.DataFrame) -> Floats:
    return floats(rows["t_ns"]) / NS_PER_S
