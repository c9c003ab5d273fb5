# SPDX-License-Identifier: Apache-2.0
"""Read TCP packets from pcap and pcapng files, of Ethernet, raw IP and Linux's "any" device (SLL, SLL2).

Fragments, tunnels and other protocols are skipped. The first 128 bytes of each frame suffice.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hourglass.errors import InputError

ETHERNET, RAW, RAW_BSD, SLL, SLL2 = 1, 101, 12, 113, 276
HEADERS = {ETHERNET: (14, 12), RAW: (0, None), RAW_BSD: (0, None), SLL: (16, 14), SLL2: (20, 0)}
"""By link type: the bytes before the IP header, and the place of its EtherType."""
VLANS = (0x8100, 0x88A8)
IPV4, IPV6, TCP = 0x0800, 0x86DD, 6
PCAP = {b"\xa1\xb2\xc3\xd4": 1000, b"\xa1\xb2\x3c\x4d": 1}
"""The first bytes of a pcap file (big endian) → ns of its time unit."""
SECTION = b"\x0a\x0d\x0d\x0a"
SYN, ACK = 2, 16
DAY_NS, MOST_DAYS = 86_400 * 10**9, 7

Place = tuple[bytes, int]
"""An address and a port."""


@dataclass(frozen=True, slots=True)
class TcpPacket:
    """A TCP packet. `options`: the timestamps (value, echo), None without them; `mss`: of a SYN."""

    t_ns: int
    source: Place
    target: Place
    seq: int
    ack: int
    flags: int
    payload: int
    timestamps: tuple[int, int] | None
    mss: int | None


def is_capture(path: Path) -> bool:
    """Tell if a file begins like a capture."""
    with path.open("rb") as file:
        head = file.read(4)
    return head in (SECTION, *PCAP, *(magic[::-1] for magic in PCAP))


def read_packets(path: Path) -> list[TcpPacket]:
    """Return the TCP packets of a capture, in the file's order. Raises `InputError`."""
    data = path.read_bytes()
    frames = _pcapng(data, path) if data.startswith(SECTION) else _pcap(data, path)
    try:
        packets = [packet for t_ns, kind, frame in frames if (packet := _tcp(t_ns, kind, frame)) is not None]
    except (struct.error, IndexError):
        raise InputError("FILE", str(path), "is a damaged capture") from None
    times = [packet.t_ns for packet in packets]
    if times and (days := (max(times) - min(times)) // DAY_NS) > MOST_DAYS:
        raise InputError("FILE", str(path), f"lasts {days} days by the times of its packets, at most {MOST_DAYS}")
    return packets


def _pcap(data: bytes, path: Path) -> Iterator[tuple[int, int, bytes]]:
    order = ">" if data[:4] in PCAP else "<"
    unit_ns = PCAP[data[:4] if order == ">" else data[3::-1]]
    kind = _checked_link_type(struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF, path)
    offset = 24
    while offset + 16 <= len(data):
        seconds, fraction, size, _ = struct.unpack_from(f"{order}IIII", data, offset)
        yield seconds * 10**9 + fraction * unit_ns, kind, data[offset + 16 : offset + 16 + size]
        offset += 16 + size


def _pcapng(data: bytes, path: Path) -> Iterator[tuple[int, int, bytes]]:
    order, offset = "<", 0
    interfaces: list[tuple[int, int]] = []  # link type, ticks per second
    while offset + 12 <= len(data):
        if data[offset : offset + 4] == SECTION:
            order = "<" if data[offset + 8 : offset + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        block, size = struct.unpack_from(f"{order}II", data, offset)
        if size < 12:
            raise InputError("FILE", str(path), "is not a valid pcapng file")
        body = data[offset + 8 : offset + size - 4]
        if block == 1:
            kind = _checked_link_type(struct.unpack_from(f"{order}H", body)[0], path)
            interfaces.append((kind, _ticks(body[8:], order)))
        elif block == 6 and len(body) >= 20:
            number, high, low, captured = struct.unpack_from(f"{order}IIII", body)
            kind, ticks = interfaces[number]
            yield (high << 32 | low) * 10**9 // ticks, kind, body[20 : 20 + captured]
        offset += size


def _ticks(options: bytes, order: str) -> int:
    """Return an interface's ticks per second (if_tsresol); 10^6 by default."""
    offset = 0
    while offset + 4 <= len(options):
        code, size = struct.unpack_from(f"{order}HH", options, offset)
        if code == 9:
            value = options[offset + 4]
            return int(2 ** (value & 127)) if value & 128 else int(10**value)
        offset += 4 + (size + 3 & ~3)
    return 10**6


def _checked_link_type(kind: int, path: Path) -> int:
    if kind not in HEADERS:
        raise InputError("FILE", str(path), f"has frames of link type {kind}; capture Ethernet, raw IP or `any`")
    return kind


def _tcp(t_ns: int, kind: int, frame: bytes) -> TcpPacket | None:
    start, place = HEADERS[kind]
    protocol = None
    if place is not None and len(frame) >= place + 2:
        protocol = int.from_bytes(frame[place : place + 2])
        while protocol in VLANS and kind == ETHERNET:
            protocol, start = int.from_bytes(frame[start + 2 : start + 4]), start + 4
    version = frame[start] >> 4 if len(frame) > start else 0
    if version == 4 and protocol in (None, IPV4) and len(frame) >= start + 20:
        header = (frame[start] & 15) * 4
        total = int.from_bytes(frame[start + 2 : start + 4])
        is_part = int.from_bytes(frame[start + 6 : start + 8]) & 0x3FFF
        if frame[start + 9] != TCP or is_part:
            return None
        ends = frame[start + 12 : start + 16], frame[start + 16 : start + 20]
        return _segment(t_ns, ends, frame[start + header :], total - header)
    if version == 6 and protocol in (None, IPV6) and len(frame) >= start + 40 and frame[start + 6] == TCP:
        total = int.from_bytes(frame[start + 4 : start + 6])
        ends = frame[start + 8 : start + 24], frame[start + 24 : start + 40]
        return _segment(t_ns, ends, frame[start + 40 :], total)
    return None


def _segment(t_ns: int, ends: tuple[bytes, bytes], segment: bytes, size: int) -> TcpPacket | None:
    if len(segment) < 20:
        return None
    source, target, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", segment)
    header = (offset >> 4) * 4
    timestamps, mss = _options(segment[20:header])
    return TcpPacket(
        t_ns, (ends[0], source), (ends[1], target), seq, ack, flags, max(0, size - header), timestamps, mss
    )


def _options(options: bytes) -> tuple[tuple[int, int] | None, int | None]:
    """Return the timestamps and the MSS."""
    timestamps, mss, offset = None, None, 0
    while offset < len(options) and options[offset] != 0:
        if options[offset] == 1:
            offset += 1
            continue
        size = options[offset + 1] if offset + 1 < len(options) else 0
        if size < 2 or offset + size > len(options):
            break
        if options[offset] == 8 and size == 10:
            timestamps = struct.unpack_from(">II", options, offset + 2)
        elif options[offset] == 2 and size == 4:
            mss = int.from_bytes(options[offset + 2 : offset + 4])
        offset += size
    return timestamps, mss
