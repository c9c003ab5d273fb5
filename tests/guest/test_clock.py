# SPDX-License-Identifier: Apache-2.0
"""NICs with a clock: gates that open by a schedule, launch times, time stamps, and ptp4l."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import KERNELS
from hourglass.engine.virtual import START_NS
from hourglass.errors import InputError
from hourglass.results.recording import Recording

from .accounts import check_balances
from .conftest import Simulate, digests, line
from .test_exactness import HEADERS, OVERHEAD
from .test_queues import BPS, BY_PRIORITY, SIZES, departures, flood, floods, steady

pytestmark = pytest.mark.guest

GATES = BY_PRIORITY.replace("mqprio", "taprio").replace(" hw 0", "") + " base-time {base} {entries} flags 0x2"
"""Small packets have queue 1. The gates are in the chip."""
CLOCK_NS = START_NS + 10**9
"""The NIC's clock at test time 0."""
OPEN_NS = {"large": 400_000, "small": 200_000}
CYCLE_NS = 600_000
ENTRIES = f"sched-entry S 1 {OPEN_NS['large']} sched-entry S 2 {OPEN_NS['small']}"


def frame_ns(name: str, bps: int = BPS) -> int:
    return (HEADERS["udp"] + SIZES[name] + OVERHEAD) * 8 * 10**9 // bps


def gated(entries: str = ENTRIES, base: int = 0, test: dict[str, Any] | None = None, **link: Any) -> dict[str, Any]:
    path = floods(test, **{"nic": "igc", **link})
    return path | {"stack": {"client": {"qdisc": GATES.format(base=base, entries=entries)}}}


def starts(run: Recording) -> pl.DataFrame:
    """Return `stream` and `start_ns` of the packets of both floods, in order."""
    sent = steady(run)
    lasts = pl.col("stream").replace_strict({name: frame_ns(name) for name in SIZES})
    return sent.select("stream", start_ns=pl.col("left_ns") - lasts)


def phases(run: Recording, cycle_ns: int) -> dict[str, list[int]]:
    """Return the times at which frames of each stream start in a cycle."""
    rows = starts(run).with_columns(phase=(pl.col("start_ns") + CLOCK_NS) % cycle_ns)
    return {name: sorted(set(rows.filter(pl.col("stream") == name)["phase"])) for name in SIZES}


@pytest.mark.parametrize("kernel", KERNELS)
def test_gates_open_and_close_at_their_ns(simulate: Simulate, kernel: str) -> None:
    """A window is full of frames without gaps, from its first ns on. None crosses its end."""
    run = simulate(gated(), kernel=kernel)
    check_balances(run)
    begin_ns = {"large": 0, "small": OPEN_NS["large"]}
    assert phases(run, CYCLE_NS) == {
        name: [begin_ns[name] + frame * frame_ns(name) for frame in range(OPEN_NS[name] // frame_ns(name))]
        for name in SIZES
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_first_open_queue_has_priority(simulate: Simulate, kernel: str) -> None:
    """Queue 1 sends alone for 200 us. Its gate stays open, so its frame in that instant delays queue 0, which then has
    priority. Queue 1 fills the end of the window, and 100 us are silent."""
    run = simulate(gated("sched-entry S 2 200000 sched-entry S 3 300000 sched-entry S 0 100000"), kernel=kernel)
    large_ns, small_ns = (frame_ns(name) for name in ("large", "small"))
    alone = [frame * small_ns for frame in range(16)]
    large = [16 * small_ns, 16 * small_ns + large_ns]
    rest = [large[-1] + large_ns + frame * small_ns for frame in range(3)]
    assert alone[-1] < 200_000 < large[0]
    assert rest[-1] + small_ns <= 500_000 < rest[-1] + 2 * small_ns
    assert phases(run, CYCLE_NS) == {"large": large, "small": alone + rest}


def test_no_frame_crosses_its_window_on_a_line_with_an_odd_rate(simulate: Simulate) -> None:
    bps = 97_300_000
    run = simulate(gated(rate="97.3mbit", tx_fifo=0))
    rows = steady(run).with_columns(phase=(pl.col("left_ns") + CLOCK_NS) % CYCLE_NS)
    for name, (begin_ns, end_ns) in {"large": (0, 400_000), "small": (400_000, 600_000)}.items():
        ends = rows.filter(pl.col("stream") == name)["phase"]
        ends = ends.replace(0, CYCLE_NS)
        count = (end_ns - begin_ns) * bps // (8 * 10**9 * (HEADERS["udp"] + SIZES[name] + OVERHEAD))
        assert ends.max() <= end_ns
        assert ends.min() == begin_ns + -(-8 * 10**9 * (HEADERS["udp"] + SIZES[name] + OVERHEAD) // bps)
        assert len(ends) == pytest.approx(160_000_000 / CYCLE_NS * count, abs=count + 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_schedule_begins_at_its_base_and_all_gates_are_open_before(simulate: Simulate, kernel: str) -> None:
    base_ns = 120_000_000
    sent = departures(simulate(gated(base=CLOCK_NS + base_ns), kernel=kernel)).filter(
        pl.col("stream").is_in(list(SIZES))
    )
    before = sent.filter(pl.col("left_ns").is_between(base_ns - 10 * 10**6, base_ns))
    # the first queue has priority and is never idle
    assert set(before["stream"]) == {"large"}
    small_ns = sent.filter((pl.col("stream") == "small") & (pl.col("left_ns") > base_ns))["left_ns"].min()
    assert small_ns == base_ns + OPEN_NS["large"] + frame_ns("small")


@pytest.mark.parametrize("kernel", KERNELS)
def test_classes_in_the_chip_have_priorities(simulate: Simulate, kernel: str) -> None:
    """With `hw 1`, the small packets of the higher class leave first, back to back."""
    path = floods(nic="igc") | {"stack": {"client": {"qdisc": BY_PRIORITY.replace("hw 0", "hw 1")}}}
    run = simulate(path, kernel=kernel)
    assert set(steady(run)["stream"]) == {"small"}
    check_balances(run)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "events",
    [
        [{"at": 0.1501, "device": "right", "cable": "pull"}, {"at": 0.2, "device": "right", "cable": "plug"}],
        [{"at": 0.1501, "device": "right", "link": "down"}, {"at": 0.2, "device": "right", "link": "up"}],
        [{"at": 0.1501, "tc": "qdisc replace dev right root handle 20: mq"}],
        [{"at": 0.1501, "ethtool": "-G right tx 300"}],
        [{"at": 0.15, "set": {"rate": "10mbit"}}, {"at": 0.2, "set": {"rate": "100mbit"}}],
    ],
)
def test_frames_behind_closed_gates_have_a_fate(simulate: Simulate, kernel: str, events: list[dict[str, Any]]) -> None:
    """They are dropped with the link, and leave when the schedule ends. At 10 Mbit/s, few fit into their windows."""
    test = {"length": 3, "datagrams": [flood(name, stop=2.8) for name in SIZES]}
    path = gated(test=test, link_up="0s") | {"event": [{"node": "client", **event} for event in events]}
    run = simulate(path, kernel=kernel)
    check_balances(run)
    for name in SIZES:
        assert departures(run).filter(pl.col("stream") == name)["left_ns"].max() > 2.8 * 10**9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "change", [{"outage": [[0.15, 0.2]]}, {"trace": [[0, "100mbit"], [0.15, "1mbit"], [0.2, "100mbit"]]}]
)
def test_frames_wait_while_the_line_is_too_slow(simulate: Simulate, kernel: str, change: dict[str, Any]) -> None:
    """From 200 ms on, the first windows begin at 200 and at 200.4 ms."""
    sent = departures(simulate(gated(**change), kernel=kernel)).filter(pl.col("stream").is_in(list(SIZES)))
    assert sent.filter(pl.col("left_ns").is_between(150_000_001, 200_000_000)).is_empty()
    again = sent.filter(pl.col("left_ns") > 200_000_000).group_by("stream").agg(pl.col("left_ns").min())
    window_ns = {"large": 200_000_000, "small": 200_400_000}
    assert dict(again.iter_rows()) == {name: window_ns[name] + frame_ns(name) for name in SIZES}


@pytest.mark.parametrize(
    ("nic", "qdisc", "reason"),
    [
        ("igb", GATES.format(base=0, entries=ENTRIES), "Device failed to setup taprio offload"),
        ("igb", BY_PRIORITY.replace("hw 0", "hw 1"), "Operation not supported"),
        ("ixgbe", BY_PRIORITY.replace("hw 0", "hw 1"), "Operation not supported"),
        ("igc", BY_PRIORITY.replace("1@0 1@1 hw 0", "1@0 1@60000 hw 1"), "Invalid argument"),
        ("igc", BY_PRIORITY.replace("1@0 1@1 hw 0", "1@0 1@0 hw 1"), "Invalid argument"),
    ],
)
def test_a_chip_refuses_what_it_lacks(simulate: Simulate, nic: str, qdisc: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        simulate(floods(nic=nic) | {"stack": {"client": {"qdisc": qdisc}}}, fresh=True)


SEND = """
import ctypes, fcntl, select, socket, struct, subprocess, time
TAI = 11
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stamps = (ctypes.c_int * 3)(0, 1, 0)                     # HWTSTAMP_TX_ON
fcntl.ioctl(sock, 0x89B0, struct.pack("16sP16x", b"right", ctypes.addressof(stamps)))
sock.setsockopt(socket.SOL_SOCKET, 37, 1 | 64 | 2048)    # SO_TIMESTAMPING: sent, by the NIC's clock, without data
sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 4)
def stamp():
    poll = select.poll()
    poll.register(sock, 0)
    poll.poll(1000)
    messages = sock.recvmsg(0, 512, socket.MSG_ERRQUEUE)[1]
    return next(words[4] * 10**9 + words[5] for _, kind, data in messages if kind == 37
                for words in [struct.unpack("6q", data)])
server = socket.gethostbyname("server"), 9
sock.sendto(bytes(100), server)
print(stamp(), time.clock_gettime_ns(TAI))
for words in ("root handle 100: mqprio num_tc 2 map 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0",
              "parent 100:2 etf clockid CLOCK_TAI delta 300000 offload"):
    subprocess.run(["tc", "qdisc", "replace", "dev", "right", *words.split()], check=True)
sock.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", TAI, 0))    # SO_TXTIME
for wait in (1_000_000, 1_234_567, 7_000_001):
    launch = time.clock_gettime_ns(TAI) + wait
    launch -= launch % 32 - 7
    sock.sendmsg([bytes(100)], [(socket.SOL_SOCKET, 61, struct.pack("Q", launch))], 0, server)
    print(stamp(), launch)
"""
RECEIVE = """
import ctypes, fcntl, socket, struct
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stamps = (ctypes.c_int * 3)(0, 0, 1)                     # HWTSTAMP_FILTER_ALL
fcntl.ioctl(sock, 0x89B0, struct.pack("16sP16x", b"left", ctypes.addressof(stamps)))
sock.setsockopt(socket.SOL_SOCKET, 37, 4 | 64)           # SO_TIMESTAMPING: received, by the NIC's clock
sock.bind(("", 9))
while True:
    for _, kind, data in sock.recvmsg(2048, 512)[1]:
        print(struct.unpack("6q", data)[4] * 10**9 + struct.unpack("6q", data)[5], flush=True)
"""


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("nic", "unit"), [("igc", 1), ("igb", 32)])
def test_packets_leave_at_their_launch_times(kernel: str, nic: str, unit: int, tmp_path: Path) -> None:
    """The NIC's stamp is that of the last bit. The two clocks agree, so the receiver's stamp is later by the cable,
    and does not depend on its interrupt."""
    app = {"user": "root", "expect": "any"}
    data = {
        **line("100mbit", "5us", nodes=2, nic=nic, queues=2, moderation="delay", rx_usecs=30),
        "apps": {"packages": ["iproute2", "python3"]},
        "test": {"length": 3},
        "app": [
            {**app, "name": "receive", "node": "server", "command": ["python3", "-uc", RECEIVE]},
            {**app, "name": "send", "node": "client", "command": ["python3", "-uc", SEND], "start": 1},
        ],
    }
    run = runner.run(scenario.load(data, kernel=kernel), tmp_path / "run")
    (first_ns, delivered_ns), *launches = ([int(word) for word in row.split()] for row in rows(run, "send"))
    assert 0 <= delivered_ns - first_ns < 100  # a program has the stamp once the frame has left
    assert [sent_ns - launch_ns for sent_ns, launch_ns in launches] == [frame_ns("small") - 7 % unit] * 3
    assert [int(row) for row in rows(run, "receive")] == [
        sent_ns + 5000 for sent_ns in (first_ns, *(row[0] for row in launches))
    ]


def rows(run: Recording, app: str) -> list[str]:
    return run.apps[app].stdout.splitlines()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_stamp_is_that_of_the_arrival(kernel: str, tmp_path: Path) -> None:
    """The clock is set and tuned between a packet's arrival and its interrupt. 2^62 is no rate."""
    change = """
import ctypes, time
file = open("/dev/ptp1", "rb+", buffering=0)
clock = (~file.fileno() << 3) | 3
time.clock_settime_ns(clock, 10**18)
class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_long), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("_", ctypes.c_long * 23)]
libc = ctypes.CDLL(None, use_errno=True)
print([libc.clock_adjtime(clock, ctypes.byref(Timex(modes=2, freq=freq))) for freq in (10 * 65536, -(2**62))])
"""
    send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(100), ('10.0.0.2', 9))"
    app = {"user": "root", "expect": "any"}
    data = {
        **line("100mbit", "5us", nodes=2, nic="igb", moderation="delay", rx_usecs=5000),
        "apps": {"packages": ["python3"]},
        "test": {"length": 3},
        "app": [
            {**app, "name": "receive", "node": "server", "command": ["python3", "-uc", RECEIVE]},
            {**app, "name": "send", "node": "client", "command": ["python3", "-c", send], "start": 1},
            {**app, "name": "change", "node": "server", "command": ["python3", "-c", change], "start": 1.002},
        ],
    }
    run = runner.run(scenario.load(data, kernel=kernel), tmp_path / "run")
    assert run.apps["change"].stdout == "[0, -1]\n"
    (stamp,) = rows(run, "receive")
    assert int(stamp) > START_NS
    assert 0 <= int(stamp) % 10**9 - (5000 + frame_ns("small")) < 1000


def test_a_clock_that_nobody_uses_changes_no_record(simulate: Simulate) -> None:
    path = line("100mbit", nodes=2, nic="igb", queues=4) | {"test": {"name": "tcp_nup", "length": 2, "delay": 0.5}}
    without, with_clock = (simulate(path, f"testbed.link.0.phc={phc}") for phc in (0, 1))
    assert digests(without) == digests(with_clock)


@pytest.mark.parametrize("kernel", KERNELS)
def test_ptp4l_finds_offset_rate_and_asymmetry(kernel: str, tmp_path: Path) -> None:
    """The server's clock is set 0.25 s ahead and runs 10 ppm fast. PTP takes the mean delay for each direction, so the
    client is wrong by half of their difference: 1 us."""
    compare = """
import time
files = [open(f"/dev/ptp{index}", "rb") for index in range(2)]
client, server = (time.clock_gettime_ns((~file.fileno() << 3) | 3) for file in files)
print(client - server)
"""
    ptp4l = {"command": ["ptp4l", "-i", "eth0", "-m"], "user": "root", "stop": 118, "expect": "any"}
    phc_ctl = ["phc_ctl", "/dev/ptp1", "adj", "0.25", "freq", "10000"]
    data = {
        "testbed": {
            "node": [{"name": "client"}, {"name": "server"}],
            "link": [{"ends": ["client:eth0", "server:eth0"], "delay": ["5us", "7us"], "nic": "igb"}],
        },
        "apps": {"packages": ["linuxptp", "python3"]},
        "test": {"length": 120},
        "app": [
            {"name": "set", "node": "server", "command": phc_ctl, "user": "root"},
            {**ptp4l, "name": "server", "node": "server", "after": ["set"]},
            {**ptp4l, "name": "client", "node": "client", "command": [*ptp4l["command"], "-s"]},
            {"name": "compare", "node": "client", "user": "root", "command": ["python3", "-c", compare], "start": 115},
        ],
    }
    run = runner.run(scenario.load(data, kernel=kernel), tmp_path / "run")
    offsets = re.findall(r"master offset +(-?\d+) s(\d) freq +([-+]\d+) path delay +(-?\d+)", run.apps["client"].stdout)
    assert len(offsets) > 80
    offset_ns, state, freq_ppb, delay_ns = (int(text) for text in offsets[-1])
    assert state == 2
    assert abs(offset_ns) <= 1
    assert freq_ppb == pytest.approx(-10_000, abs=1)  # the client's error before it is tuned
    assert delay_ns == pytest.approx(6000, abs=1)
    # the server's clock is read some ns later
    assert -1010 < int(run.apps["compare"].stdout) <= -999
