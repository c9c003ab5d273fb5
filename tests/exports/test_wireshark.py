# SPDX-License-Identifier: Apache-2.0
"""Wireshark's own parser shows the comments of a capture as fields, columns and colours."""

import os
import struct
import subprocess
from pathlib import Path

import pytest
import tools
from results.synthetic import Recipe, make

import hourglass
from hourglass.contract.probe import LAYERS
from hourglass.errors import InputError
from hourglass.exports import wireshark

FRAMES = (
    "upload::1 packet 7: client cwnd 1500 us, tsq 812.3 us, ring 12.1 us | router rx 20 us, qdisc 100 us | server rx"
    " 5 us",
    "icmp packet 3: client stack 1 us, qdisc 2000.25 us",
    "",
    "an engineer's remark: packet 3",
)
"""The comments of the frames."""


def block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def pcapng(comments: tuple[str, ...]) -> bytes:
    """Return a file of equal Ethernet frames, each with a comment."""
    packet = bytes.fromhex("02000000000202000000000108004500001c000000004011f96e0a0000010a000102ee48003500080000")
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    for number, comment in enumerate(comments):
        text = comment.encode()
        options = struct.pack("<HH", 1, len(text)) + padded(text) + bytes(4) if text else b""
        head = struct.pack("<IIIII", 0, 0, number, len(packet), len(packet))
        content += block(6, head + padded(packet) + options)
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run directory with a capture and the exported configuration."""
    path = make(tmp_path_factory.mktemp("runs") / "run", Recipe())
    (path / "client-eth0.pcapng").write_bytes(pcapng(FRAMES))
    wireshark.write(hourglass.load(path), path)
    return path


def tshark(folder: Path, *arguments: str) -> list[str]:
    command = [tools.need("tshark"), "-X", f"lua_script:{folder}/wireshark/hourglass.lua", "-C", "Hourglass",
               "-r", str(folder / "client-eth0.pcapng"), *arguments]  # fmt: skip
    environment = os.environ | {"WIRESHARK_CONFIG_DIR": str(folder / "wireshark")}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "lua" not in result.stderr.lower(), result.stderr
    assert "colo" not in result.stderr.lower(), result.stderr
    return result.stdout.splitlines()


def test_comments_are_fields(folder: Path) -> None:
    names = ("stream", "packet", "cwnd", "tsq", "qdisc", "ring", "rx", "total", "longest")
    lines = tshark(folder, "-T", "fields", *(word for name in names for word in ("-e", f"hourglass.{name}")))
    assert [line.split("\t") for line in lines] == [
        ["upload::1", "7", "1500", "812.3", "100", "12.1", "25", "2449.4", "cwnd"],
        ["icmp", "3", "", "", "2000.25", "", "", "2001.25", "qdisc"],
        [""] * 9,
        [""] * 9,
    ]


def test_each_layer_is_a_field_that_filters(folder: Path) -> None:
    filter_ = " || ".join(f"hourglass.{layer} >= 0" for layer in LAYERS)
    assert len(tshark(folder, "-Y", filter_)) == 2
    assert len(tshark(folder, "-Y", "hourglass.qdisc > 1000")) == 1
    assert len(tshark(folder, "-Y", 'hourglass.node contains "router"')) == 1


def test_the_profile_has_columns_and_colours(folder: Path) -> None:
    first, second, third, _ = tshark(folder)
    info = third.split()[6:]
    assert info[0] == "61000"
    assert first.split()[6:] == ["upload::1", "7", "cwnd", "2449.4", "1500", "812.3", "100", "12.1", *info]
    assert second.split()[6:10] == ["icmp", "3", "qdisc", "2001.25"]
    rules = tshark(folder, "-T", "fields", "-e", "frame.coloring_rule.name", "--color")
    assert "waits in the socket" in rules[0]
    assert "waits in a queue" in rules[1]
    assert "waits" not in rules[2]


def test_a_run_without_captures_is_refused(tmp_path: Path) -> None:
    run = hourglass.load(make(tmp_path / "run", Recipe()))
    with pytest.raises(InputError, match=r"has no captures for Wireshark; make one with --set 'capture.pcap"):
        wireshark.write(run, tmp_path)
