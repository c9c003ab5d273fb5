# SPDX-License-Identifier: Apache-2.0
"""The samples that one connection's packets give, at one point of the path.

The round trip through the capture's point has two parts. *Ahead*: a data packet passes, and later its acknowledgement
(Karn's rule: not of data that was sent twice). *Behind*: an acknowledgement passes, and later the first data packet
that echoes its timestamp (pping, Nichols 2013). The sum of both is the RTT. The handshake gives a sample of each.

A data packet that ends no later than an earlier one was retransmitted, before or after this point: it counts as one
loss. Reordering and spurious retransmissions count too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hourglass.estimation.packet_file import ACK, SYN, TcpPacket
from hourglass.results.stats import Floats

Times = npt.NDArray[np.int64]
DEFAULT_MSS = 1460
IPV4, IPV6, TCP, TIMESTAMPS = 20, 40, 20, 12
CABLE = 38
"""Ethernet's bytes around an IP packet: header, FCS, preamble and gap."""


@dataclass(frozen=True)
class TcpSamples:
    """Samples of one connection's data direction. `ahead` and `behind`: times of round trips and their s; `data`: times
    of data packets and their payload; `acked`: times of acknowledgements and the bytes that they add; `lost`: times of
    data packets that came twice or late; `segment`: the payload of a full packet; `frame`: its bytes on a cable."""

    sender: bytes
    receiver: bytes

    ahead: tuple[Times, Floats]
    behind: tuple[Times, Floats]
    data: tuple[Times, Times]
    acked: tuple[Times, Times]
    lost: Times
    segment: int
    frame: int


def connections(packets: Sequence[TcpPacket]) -> list[TcpSamples]:
    """Return the samples of all connections that carry data, the largest first."""
    groups: dict[tuple[object, object], list[TcpPacket]] = {}
    for packet in packets:
        first, second = sorted((packet.source, packet.target))
        groups.setdefault((first, second), []).append(packet)
    samples = [_samples(group) for group in groups.values() if any(packet.payload for packet in group)]
    return sorted(samples, key=lambda each: -int(each.data[1].sum()))


def _samples(packets: list[TcpPacket]) -> TcpSamples:
    sent: dict[object, int] = {}
    for packet in packets:
        sent[packet.source] = sent.get(packet.source, 0) + packet.payload
    sender = max(sent, key=lambda source: sent[source])
    data = [packet for packet in packets if packet.source == sender]
    acks = [packet for packet in packets if packet.source != sender and packet.flags & ACK]
    origin = data[0].seq
    t_data, ends, sizes, lost = _sent(data, origin)
    t_acks, added, reached = _acknowledged(acks, origin)
    ahead = _ahead(t_data, ends, lost, t_acks, reached)
    behind = _behind(acks, data)
    mss = min([packet.mss for packet in packets if packet.mss] or [DEFAULT_MSS])
    option = TIMESTAMPS if any(packet.timestamps for packet in data) else 0
    source, target = data[0].source[0], data[0].target[0]
    header = IPV6 if len(source) == 16 else IPV4
    return TcpSamples(
        source, target, ahead, behind, (t_data, sizes), (t_acks, added), t_data[lost], mss - option,
        mss + header + TCP + CABLE,
    )  # fmt: skip


def _relative(number: int, origin: int, near: int) -> int:
    """Return a sequence number without wrapping, next to `near`."""
    return near + ((number - origin - near + 2**31) % 2**32 - 2**31)


def _sent(data: list[TcpPacket], origin: int) -> tuple[Times, Times, Times, npt.NDArray[np.bool_]]:
    """Return time, end and payload of each data packet, and if it is a repeated one."""
    rows, most = [], 0
    for packet in data:
        size = packet.payload + (1 if packet.flags & SYN else 0)
        if size:
            end = _relative(packet.seq, origin, most) + size
            rows.append((packet.t_ns, end, packet.payload, end <= most))
            most = max(most, end)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return columns[0], columns[1], columns[2], columns[3].astype(bool)


def _acknowledged(acks: list[TcpPacket], origin: int) -> tuple[Times, Times, Times]:
    """Return time, added bytes and the reached sequence number of each acknowledgement with progress."""
    rows, most = [], 0
    for packet in acks:
        reached = _relative(packet.ack, origin, most)
        if reached > most:
            rows.append((packet.t_ns, reached - most, reached))
            most = reached
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def _ahead(
    t_data: Times, ends: Times, lost: npt.NDArray[np.bool_], t_acks: Times, reached: Times
) -> tuple[Times, Floats]:
    """Return the round trips of the newest data that each acknowledgement covers."""
    repeated = set(ends[lost].tolist())
    first = {int(end): int(t) for t, end, again in zip(t_data, ends, lost, strict=True) if not again}
    rows = [
        (t, (t - first[number]) / 1e9)
        for t, number in zip(t_acks.tolist(), reached.tolist(), strict=True)
        if number in first and number not in repeated and t >= first[number]
    ]
    return np.array([t for t, _ in rows], dtype=np.int64), np.array([rtt for _, rtt in rows])


def _behind(acks: list[TcpPacket], data: list[TcpPacket]) -> tuple[Times, Floats]:
    """Return the round trips from an acknowledgement to the data packet that first echoes its timestamp."""
    waiting: dict[int, int] = {}
    rows: list[tuple[int, float]] = []
    for packet in sorted([*acks, *data], key=lambda each: each.t_ns):
        if packet.timestamps is None:
            continue
        value, echo = packet.timestamps
        if acks and packet.source == acks[0].source:
            waiting.setdefault(value, packet.t_ns)
        elif (start := waiting.get(echo, -1)) >= 0:
            rows.append((packet.t_ns, (packet.t_ns - start) / 1e9))
            waiting[echo] = -1  # only its first echo
    return np.array([t for t, _ in rows], dtype=np.int64), np.array([rtt for _, rtt in rows])
