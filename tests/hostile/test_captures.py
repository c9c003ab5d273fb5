# SPDX-License-Identifier: Apache-2.0
"""Captures of a stranger: damaged, endless and impossible ones give an estimate or one line, in bounded memory."""

import struct
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.estimation import estimate_link
from hourglass.estimation.link_scenario import scenario_text
from hourglass.estimation.packet_file import RAW, read_packets
from tests.clocks import limited_cpu

PACKETS = 60
CLIENT, SERVER = b"\x0a\0\0\1", b"\x0a\0\0\2"


def frame(to_server: bool, seq: int, ack: int, payload: int, stamp: int) -> bytes:
    """Return an IPv4 packet of a connection, cut off after its TCP header."""
    ends, ports = ((CLIENT, SERVER), (1000, 80)) if to_server else ((SERVER, CLIENT), (80, 1000))
    options = b"\x01\x01\x08\x0a" + struct.pack(">II", stamp, max(0, stamp - 1))
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 8 << 4, 16, 0, 0, 0) + options
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 52 + payload, 0, 0, 64, 6, 0, *ends) + tcp


def frames() -> list[tuple[int, bytes]]:
    """Return times in µs and frames: data every 10 ms, each with its acknowledgement 5 ms later."""
    listed = []
    for number in range(PACKETS):
        start = 1 + 1000 * number
        listed.append((10_000 * number, frame(True, start, 1, 1000, number + 1)))
        listed.append((10_000 * number + 5000, frame(False, 1, start + 1000, 0, number + 1)))
    return listed


def pcap() -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, RAW)
    return head + b"".join(
        struct.pack("<IIII", time // 10**6, time % 10**6, len(frame), len(frame)) + frame for time, frame in frames()
    )


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng() -> bytes:
    start = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", RAW, 0, 0) + struct.pack("<HHB3x", 9, 1, 6))
    return start + interface + b"".join(
        block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame)) + frame)
        for time, frame in frames()
    )  # fmt: skip


SOUND = {"pcap": pcap(), "pcapng": pcapng()}


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("replace"), st.integers(4, 9000), st.binary(min_size=1, max_size=40)),
        st.tuples(
            st.just("replace"),
            st.integers(1, 2200).map(lambda word: 4 * word),
            st.sampled_from((0, 1, 2**16, 2**31, 2**32 - 1)).map(lambda number: struct.pack("<I", number)),
        ),
        st.tuples(st.just("insert"), st.integers(4, 9000), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("cut"), st.integers(4, 9000), st.integers(1, 5000).map(bytes)),
    ),
    min_size=1,
    max_size=8,
)
"""Changes of a file: what, where, and the bytes, or as many bytes as it removes."""


def damaged(data: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    """Return a capture with changed, added or missing bytes. Its first four bytes, which say its kind, remain."""
    for edit, offset, content in edits:
        position = min(offset, len(data))
        end = position if edit == "insert" else position + len(content)
        data = data[:position] + (b"" if edit == "cut" else content) + data[end:]
    return data


def estimated(path: Path, data: bytes) -> None:
    """Estimate the link, and read the scenario of the estimate."""
    path.write_bytes(data)
    with limited_cpu(20):
        tomllib.loads(scenario_text(estimate_link(path)))


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_capture_has_an_estimate(tmp_path: Path, name: str) -> None:
    path = tmp_path / 'a "name"\n\x1b.pcap'
    path.write_bytes(SOUND[name])
    assert len(read_packets(path)) == 2 * PACKETS
    estimate = estimate_link(path)
    assert estimate.base_rtt_ms.value == pytest.approx(10.0)
    assert (
        scenario.load(tomllib.loads(scenario_text(estimate))).description == 'The link that a "name" \\x1b.pcap shows'
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(SOUND)), edits=EDITS)
def test_a_damaged_capture_has_an_estimate_or_one_line(
    tmp_path: Path, name: str, edits: list[tuple[str, int, bytes]]
) -> None:
    message = ""
    try:
        estimated(tmp_path / "a.pcap", damaged(SOUND[name], edits))
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("size", [0, 4, 5, 23, 24, 30, 40, 41, 60])
def test_a_capture_that_ends_early_is_one_line(tmp_path: Path, name: str, size: int) -> None:
    with pytest.raises(InputError):
        estimated(tmp_path / "a.pcap", SOUND[name][:size])


def test_a_packet_of_another_century_needs_no_memory(tmp_path: Path) -> None:
    late = struct.pack("<IIII", 2**32 - 1, 0, 52, 52) + frame(False, 1, 70_000, 0, 70)
    with pytest.raises(InputError, match="lasts 49710 days"):
        estimated(tmp_path / "a.pcap", SOUND["pcap"] + late)
