# SPDX-License-Identifier: Apache-2.0
"""The time of programs: the waits that make up their virtual time, and calls that take time on their node's CPU."""

from pathlib import Path
from typing import Any

import pytest

from bench import programs
from hourglass import runner
from hourglass.contract.kernels import KERNELS
from hourglass.results.apps import Program
from hourglass.results.recording import Recording
from hourglass.scenario import load

pytestmark = [pytest.mark.guest, pytest.mark.real_time]

CALL_NS = 3000
SHORT_NS = 100
"""A time of a call below the shortest sleep of a program that spins."""
BYTE_PS = 130

US, MS = 1000, 1_000_000
POLLS, WAIT, WORK, FORK, PRICE_NS, BURST_NS = 100, 25, 10_000, 2000, 100, 10 * MS
"""The parameters of program_time.c. `PRICE_NS`: CALL_NS."""
BODIES = {
    "signal mask": ["private", "ask", "private"], "timer": ["private", "ask"], "epoll set": ["private", "ask"],
    "seek": ["private", "ask"], "user": ["private"], "flags": ["private", "ask"], "poll": ["ask"],
    "own event": ["work", "work", "ask"], "file": ["work", "work", "ask"], "log": ["work", "ask"],
    "page": ["work", "work"], "counter": ["clock", "work"], "no program": ["poll"],
}  # fmt: skip
"""The calls in each of the loops of `waits.c`: for readiness, about the program's own state, or others. Each round ends
with a read of the clock."""
CHAIN, CALLS_EACH = 40, 6000
"""The processes of a chain in `waits.c`, and the calls of each."""


class LawfulProgram:
    """A program by the law of program_time.c, which has just slept for long. Times in ns."""

    def __init__(self) -> None:
        self.now = self.awake = self.asking_since = self.debt = self.polls = self.work = 0
        self.read = -1

    def call(self, kind: str) -> None:
        self._advance(max(self.now, self.read + (kind == "clock")))
        if self.debt >= BURST_NS:
            self._sleep(MS, (self.now - self.awake) // 4, 10 * MS)
        elif self.polls >= POLLS:
            self._sleep(US, (self.now - self.asking_since) // 8, MS)
        elif self.work >= WORK:
            self._sleep(US, (self.now - self.awake) // 4, 10 * MS)
        self.work += 1
        self.debt += PRICE_NS
        if kind == "work":
            self.polls, self.asking_since = 0, self.now
        elif kind != "private":
            self.read = self.now if kind == "clock" else self.read
            self.polls += WAIT if kind == "ask" and self.now - self.asking_since >= US else 1

    def read_clock(self) -> int:
        """Read it without a call, as long as the kernel permits it. A second read at an instant takes 1 ns."""
        if self.polls < POLLS and self.work < WORK:
            self.read = max(self.now, self.read + 1)
            self.polls += 1
            self.work += 1
        else:
            self.call("clock")
        return self.read

    def fork(self) -> None:
        """Continue as the child: the call itself counts for the parent alone."""
        self.call("private")
        self.work += FORK - 2
        self.debt += (FORK - 2) * PRICE_NS

    def _sleep(self, least: int, share: int, most: int) -> None:
        self.polls = self.work = 0
        self._advance(self.now + min(max(share, least), most))

    def _advance(self, to: int) -> None:
        self.debt = max(0, self.debt - (to - self.now))
        self.now = to


def rounds_of_1_ms(body: list[str]) -> int:
    """Return the rounds of an event loop until 1 ms has passed."""
    program, rounds = LawfulProgram(), 0
    for kind in ("poll", "work", "work"):
        program.call(kind)
    end = program.read_clock() + MS
    while rounds == 0 or program.read < end:
        for kind in body:
            program.call(kind)
        program.read_clock()
        rounds += 1
    return rounds


def run(
    kernel: str, folder: Path, app: list[dict[str, Any]], cpu: dict[str, str] | None = None, **tables: Any
) -> Recording:
    """Run programs on two nodes with a cable. The client has a CPU."""
    client = {"name": "client"} | ({"cpu": cpu} if cpu else {})
    testbed = {"node": [client, {"name": "server"}], "link": [{"ends": ["client:eth0", "server:eth0"]}]}
    return runner.run(load({"kernel": kernel, "testbed": testbed, "app": app} | tables), folder)


def waits_ns(program: Program) -> dict[str, int]:
    return {f"{kind}{'' if call is None else call}": ns for kind, call, ns in
            program.wait_rows.select("what", "call", "ns").iter_rows()}  # fmt: skip


def life_ns(program: Program) -> int:
    last = program.last_start
    assert last is not None
    return int(last["end_ns"] - last["t_ns"])


def waits(name: str, operation: str, node: str = "client") -> dict[str, Any]:
    return {"name": name, "node": node, "command": ["/waits", operation], "expect": 0}


def calls(name: str, count: int, node: str = "client", operation: str = "call") -> dict[str, Any]:
    return {"name": name, "node": node, "command": ["/programs", operation, str(count)], "expect": 0}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("call_ns", [CALL_NS, SHORT_NS])
def test_each_call_takes_its_time_and_calls_of_a_node_queue(kernel: str, call_ns: int, tmp_path: Path) -> None:
    """A CPU serves calls in the order of their arrival, without a pause until the last call ends."""
    root = {"root": str(programs.root(tmp_path))}
    cpu = {"syscall": f"{call_ns}ns"}
    apps = [
        calls("one", 1000),
        calls("two", 3000) | {"start": 1},
        calls("three", 3000) | {"start": 1},
        calls("far", 9, "server"),
    ]
    recording = run(kernel, tmp_path / "run", apps, cpu, apps=root)
    results = recording.apps
    number = {name: app.starts["calls"][0] for name, app in results.items()}
    assert recording.cpu["calls_ns"].last() == (number["one"] + number["two"] + number["three"]) * call_ns
    assert life_ns(results["one"]) == number["one"] * call_ns
    assert number["two"] == number["three"] == number["one"] + 2000
    both_ns = (number["two"] + number["three"]) * call_ns
    ends = sorted(results[name].starts["end_ns"][0] - 10**9 for name in ("two", "three"))
    assert ends[1] == both_ns
    assert both_ns > ends[0] > both_ns - number["one"] * call_ns  # in turn, apart from the start of the first
    assert life_ns(results["far"]) == 0
    assert [waits_ns(app) for app in results.values()] == [
        {"cpu": life_ns(app)} if life_ns(app) else {} for app in results.values()
    ]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cpu", [None, {"syscall": f"{CALL_NS}ns"}], ids=["no cpu", "cpu"])
def test_clocks_are_read_without_a_call_with_the_same_results(
    kernel: str, cpu: dict[str, str] | None, tmp_path: Path
) -> None:
    """The vDSO has the time of a call. A program that reads a clock without end sleeps, and each read counts as a call.
    A read costs the host a small part of a call."""
    root = {"root": str(programs.root(tmp_path))}
    count = 20_000
    apps = [
        calls("read", count, operation="clock"),
        calls("asked", count, "client" if cpu is None else "server", operation="clock-asked") | {"start": 5},
        calls("agree", 0 if cpu else 30, operation="clocks-agree") | {"start": 10},
    ]
    results = run(kernel, tmp_path / "run", apps, cpu, apps=root).apps
    number = {name: app.starts["calls"][0] for name, app in results.items()}
    assert number["read"] == number["asked"]
    if cpu:
        assert waits_ns(results["read"]) == {"cpu": number["read"] * CALL_NS}
    else:
        assert waits_ns(results["read"]) == waits_ns(results["asked"]) == {"spun": life_ns(results["read"])}
        assert life_ns(results["agree"]) >= 30 * 123456789
        assert results["read"].cpu_s < 0.5 * results["asked"].cpu_s


@pytest.mark.parametrize("kernel", KERNELS)
def test_event_loops_have_the_rounds_of_the_law(kernel: str, tmp_path: Path) -> None:
    """Calls about a program's own state (its signal mask, a timer, an epoll set) interrupt no row of polling calls.
    Loops that work without end make at most 100,000 calls more than their time pays for."""
    recording = run(
        kernel, tmp_path / "run", [waits("loops", "event-loops")], apps={"root": str(programs.root(tmp_path))}
    )
    rounds = dict(line.split(": ") for line in recording.apps["loops"].stdout.splitlines())
    assert {name: int(count) for name, count in rounds.items()} == {
        name: rounds_of_1_ms(body) for name, body in BODIES.items()
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_child_owes_the_time_of_its_parents_calls(kernel: str, tmp_path: Path) -> None:
    """40 processes, each the child of the one before, take the time of one that makes all their calls."""
    program = LawfulProgram()
    program.call("poll")
    begin = program.read_clock()
    for process in range(CHAIN):
        for _ in range(CALLS_EACH):
            program.call("work")
        if process < CHAIN - 1:
            program.fork()
    assert program.now - begin > (CHAIN * (CALLS_EACH + FORK) - 110_000) * PRICE_NS
    recording = run(kernel, tmp_path / "run", [waits("chain", "chain")], apps={"root": str(programs.root(tmp_path))})
    assert int(recording.apps["chain"].stdout) == program.read_clock() - begin


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_program_keeps_its_floating_point_registers(kernel: str, tmp_path: Path) -> None:
    """The registers survive calls, page faults, threads, signals, a fork and 200 other processes: the kernel rarely
    reads and writes them."""
    root = {"root": str(programs.root(tmp_path))}
    recording = run(kernel, tmp_path / "run", [calls("floats", 3, operation="floats")], apps=root)
    assert recording.apps["floats"].status == "exit 0"


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_byte_that_is_copied_takes_its_time(kernel: str, tmp_path: Path) -> None:
    """The time does not drift, though a byte takes a part of a ns: rounded down at each call, it would be 408 ns less.
    A program starts with the remaining fraction of the one before: 1 ns for each of the two."""
    few_reads, many_reads = 10, 310
    copy = [
        {"name": f"n{count}", "node": "client", "start": 1 + count, "expect": 0,
         "command": ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", f"count={count}", "status=none"]}
        for count in (few_reads, many_reads)
    ]  # fmt: skip
    results = run(kernel, tmp_path / "run", copy, {"per_byte": f"{BYTE_PS}ps"}).apps
    difference_ns = life_ns(results[f"n{many_reads}"]) - life_ns(results[f"n{few_reads}"])
    assert abs(difference_ns - 2 * (many_reads - few_reads) * 65536 * BYTE_PS / 1000) <= 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_waits_of_a_program_add_up_to_its_life(kernel: str, tmp_path: Path) -> None:
    spin = "import time\nend = time.monotonic() + 0.1\nwhile time.monotonic() < end: pass"
    apps = [
        {"name": "ping", "node": "client", "command": ["ping", "-c", "3", "-i", "2", "server"], "expect": 0},
        {"name": "spin", "node": "client", "command": ["python3", "-B", "-c", spin], "expect": 0},
        {"name": "sleep", "node": "server", "command": ["sleep", "3"], "expect": 0},
    ]
    events = [{"at": at, "node": "server", action: "sleep"} for at, action in ((1, "pause"), (2, "resume"))]
    recording = run(kernel, tmp_path / "run", apps, apps={"packages": ["python3"]}, event=events)
    results = recording.apps
    for program in results.values():
        assert sum(waits_ns(program).values()) == life_ns(program)
        assert program.cpu_s is not None
        assert program.cpu_s > 0
    assert waits_ns(results["sleep"])["stopped"] == 10**9
    assert waits_ns(results["spin"])["spun"] >= 0.09e9
    assert results["ping"].waits["recvmsg"] == pytest.approx(4, rel=0.05)
    assert results["spin"].cpu_s > results["sleep"].cpu_s


@pytest.mark.parametrize("kernel", KERNELS)
def test_polls_of_memory_end_by_the_law_and_computing_takes_no_time(kernel: str, tmp_path: Path) -> None:
    """A program polls memory in three ways for 500 us. It sleeps for an eighth of its time, at least 1 us, so it ends
    late by a ninth at most. A program that only changes a floating-point register is not proven to poll."""
    now_ns = 0
    while now_ns < 500 * US:
        now_ns += max(now_ns // 8, US)
    apps = [
        waits("polls", "memory-poll"),
        waits("computes", "add-floats", "server") | {"start": 1},
    ]
    recording = run(kernel, tmp_path / "run", apps, apps={"root": str(programs.root(tmp_path))})
    assert recording.apps["polls"].stdout.split() == [str(now_ns)] * 3
    assert life_ns(recording.apps["computes"]) == 0
    assert recording.summary.warnings == []
