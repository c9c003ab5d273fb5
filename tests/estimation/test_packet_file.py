# SPDX-License-Identifier: Apache-2.0
"""The reader of captures: both formats, both byte orders, link types, and what it refuses."""

import struct
from pathlib import Path

import pytest

from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.estimation import estimate_link
from hourglass.estimation.packet_file import ETHERNET, RAW, SLL, SLL2, TcpPacket, read_packets
from hourglass.estimation.tcp_samples import connections

OPTIONS = b"\x01\x01\x08\x0a" + struct.pack(">II", 7, 9)
TCP = struct.pack(">HHIIBBHHH", 1000, 2000, 5, 6, 8 << 4, 16, 0, 0, 0) + OPTIONS
IPV4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + 32 + 100, 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + TCP
IPV6 = struct.pack(">IHBB16s16s", 6 << 28, 32 + 100, 6, 64, b"\1" * 16, b"\2" * 16) + TCP
FRAMES = {
    (ETHERNET, "v4"): bytes(12) + b"\x08\0" + IPV4,
    (ETHERNET, "vlan"): bytes(12) + b"\x81\0\0\1\x08\0" + IPV4,
    (ETHERNET, "v6"): bytes(12) + b"\x86\xdd" + IPV6,
    (RAW, "v4"): IPV4,
    (SLL, "v6"): bytes(14) + b"\x86\xdd" + IPV6,
    (SLL2, "v4"): b"\x08\0" + bytes(18) + IPV4,
}


def pcap(kind: int, frames: list[bytes], order: str = "<", magic: int = 0xA1B23C4D) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 128, kind)
    return head + b"".join(struct.pack(f"{order}IIII", 1, 5, len(frame), 1500) + frame for frame in frames)


@pytest.mark.parametrize(("kind", "name"), FRAMES)
@pytest.mark.parametrize("order", ["<", ">"])
def test_frames_of_all_link_types_are_read(tmp_path: Path, kind: int, name: str, order: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(kind, [FRAMES[kind, name], b"short"], order))
    (packet,) = read_packets(path)
    assert (packet.t_ns, packet.seq, packet.ack, packet.payload) == (1_000_000_005, 5, 6, 100)
    assert (packet.source[1], packet.target[1], packet.timestamps) == (1000, 2000, (7, 9))


def test_microseconds_are_ns(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(RAW, [IPV4], magic=0xA1B2C3D4))
    assert read_packets(path)[0].t_ns == 1_000_005_000


def packet(t_ms: float, end: str, seq: int, ack: int, payload: int, stamps: tuple[int, int]) -> TcpPacket:
    places = (b"\0\0\0\1", 1), (b"\0\0\0\2", 2)
    source, target = places if end == "sender" else places[::-1]
    return TcpPacket(round(t_ms * 1e6), source, target, seq % 2**32, ack % 2**32, 16, payload, stamps, None)


def test_samples_know_retransmissions_and_the_wrap() -> None:
    """Data of 100 B from a sequence number just below 2^32: the second packet is repeated."""
    start = 2**32 - 100
    packets = [
        packet(0, "sender", start, 1, 100, (1, 0)),
        packet(1, "sender", start + 100, 1, 100, (1, 0)),
        packet(20, "receiver", 1, start + 100, 0, (50, 1)),
        packet(25, "sender", start + 200, 1, 100, (2, 50)),
        packet(30, "sender", start + 100, 1, 100, (2, 50)),
        packet(50, "receiver", 1, start + 300, 0, (60, 2)),
    ]
    (samples,) = connections(packets)
    assert samples.lost.tolist() == [30_000_000]
    assert samples.acked[1].tolist() == [100, 200]
    assert samples.ahead[1].tolist() == [0.02, 0.025]
    assert samples.behind[1].tolist() == [0.005]
    assert (samples.segment, samples.frame) == (1448, 1538)


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(105, [IPV4]))
    with pytest.raises(InputError, match="frames of link type 105"):
        estimate_link(tmp_path / "a.pcap")
    (tmp_path / "b.pcap").write_bytes(pcap(RAW, []))
    with pytest.raises(InputError, match="no TCP connection with data"):
        estimate_link(tmp_path / "b.pcap")
    (tmp_path / "c.pcap").write_bytes(pcap(RAW, [IPV4]))
    with pytest.raises(InputError, match="both directions"):
        estimate_link(tmp_path / "c.pcap")
    (tmp_path / "d.txt").write_text("text")
    assert guarded(["link", "from", str(tmp_path / "d.txt")]) == 2
    assert "is not a pcap" in capsys.readouterr().err
