# SPDX-License-Identifier: Apache-2.0
"""The time of programs: what virtual time went by with in each, and calls that take time on their node's CPU."""

from pathlib import Path
from typing import Any

import pytest

from bench import programs
from hourglass import runner
from hourglass.contract.kernels import KERNELS
from hourglass.results.apps import Program
from hourglass.results.recording import Recording
from hourglass.scenario import load

pytestmark = pytest.mark.guest

CALL_NS = 3000
BYTE_PS = 130


def run(
    kernel: str, place: Path, app: list[dict[str, Any]], cpu: dict[str, str] | None = None, **more: Any
) -> Recording:
    """Programs on two nodes and a cable, of which the client's have a CPU."""
    client = {"name": "client"} | ({"cpu": cpu} if cpu else {})
    testbed = {"node": [client, {"name": "server"}], "link": [{"ends": ["client:eth0", "server:eth0"]}]}
    return runner.run(load({"kernel": kernel, "testbed": testbed, "app": app} | more), place)


def waits_ns(program: Program) -> dict[str, int]:
    return {f"{what}{'' if call is None else call}": ns for what, call, ns in
            program.wait_rows.select("what", "call", "ns").iter_rows()}  # fmt: skip


def life_ns(program: Program) -> int:
    last = program.last
    assert last is not None
    return int(last["end_ns"] - last["t_ns"])


def calls(name: str, count: int, node: str = "client", what: str = "call") -> dict[str, Any]:
    return {"name": name, "node": node, "command": ["/programs", what, str(count)], "expect": 0}


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_call_takes_its_time_and_those_of_a_node_queue(kernel: str, tmp_path: Path) -> None:
    """One CPU, first come, first served: it works without a pause until the last call is done, and alone at one."""
    root = {"root": str(programs.root(tmp_path))}
    cpu = {"syscall": f"{CALL_NS}ns"}
    apps = [
        calls("one", 1000),
        calls("two", 3000) | {"start": 1},
        calls("three", 3000) | {"start": 1},
        calls("far", 9, "server"),
    ]
    made = run(kernel, tmp_path / "run", apps, cpu, apps=root).apps
    number = {name: one.starts["calls"][0] for name, one in made.items()}
    assert life_ns(made["one"]) == number["one"] * CALL_NS
    assert number["two"] == number["three"] == number["one"] + 2000
    both_ns = (number["two"] + number["three"]) * CALL_NS
    ends = sorted(made[name].starts["end_ns"][0] - 10**9 for name in ("two", "three"))
    assert ends[1] == both_ns
    assert both_ns > ends[0] > both_ns - number["one"] * CALL_NS  # by turns, but for how the first one began
    assert life_ns(made["far"]) == 0
    assert [waits_ns(one) for one in made.values()] == [
        {"cpu": life_ns(one)} if life_ns(one) else {} for one in made.values()
    ]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cpu", [None, {"syscall": f"{CALL_NS}ns"}], ids=["no cpu", "cpu"])
def test_clocks_are_read_without_a_call_and_nothing_tells(
    kernel: str, cpu: dict[str, str] | None, tmp_path: Path
) -> None:
    """The vDSO tells what a call tells, and who reads a clock without end is made to sleep and counted as if it called.
    It costs the host a small part of it."""
    root = {"root": str(programs.root(tmp_path))}
    many = 20_000
    apps = [
        calls("read", many, what="clock"),
        calls("asked", many, "client" if cpu is None else "server", what="clock-asked") | {"start": 5},
        calls("agree", 0 if cpu else 30, what="clocks-agree") | {"start": 10},
    ]
    made = run(kernel, tmp_path / "run", apps, cpu, apps=root).apps
    number = {name: one.starts["calls"][0] for name, one in made.items()}
    assert number["read"] == number["asked"]
    if cpu:
        assert waits_ns(made["read"]) == {"cpu": number["read"] * CALL_NS}
    else:
        assert waits_ns(made["read"]) == waits_ns(made["asked"]) == {"spun": life_ns(made["read"])}
        assert life_ns(made["agree"]) >= 30 * 123456789
        assert made["read"].cpu_s < 0.5 * made["asked"].cpu_s


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_program_keeps_its_floating_point_registers(kernel: str, tmp_path: Path) -> None:
    """Over calls, page faults, threads, signals, a fork and beside 200 others: they are read and written seldom."""
    root = {"root": str(programs.root(tmp_path))}
    made = run(kernel, tmp_path / "run", [calls("floats", 3, what="floats")], apps=root)
    assert made.apps["floats"].status == "exit 0"


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_byte_that_is_copied_takes_its_time(kernel: str, tmp_path: Path) -> None:
    """Nothing drifts, though a byte takes a part of a ns: rounded down at each call it would be 408 ns less.
    A program begins with the fraction that the one before has left: 1 ns for each of the two."""
    few, many = 10, 310
    copy = [
        {"name": f"n{count}", "node": "client", "start": 1 + count, "expect": 0,
         "command": ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", f"count={count}", "status=none"]}
        for count in (few, many)
    ]  # fmt: skip
    made = run(kernel, tmp_path / "run", copy, {"per_byte": f"{BYTE_PS}ps"}).apps
    more = life_ns(made[f"n{many}"]) - life_ns(made[f"n{few}"])
    assert abs(more - 2 * (many - few) * 65536 * BYTE_PS / 1000) <= 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_program_waits_for_is_its_life(kernel: str, tmp_path: Path) -> None:
    spin = "import time\nend = time.monotonic() + 0.1\nwhile time.monotonic() < end: pass"
    apps = [
        {"name": "ping", "node": "client", "command": ["ping", "-c", "3", "-i", "2", "server"], "expect": 0},
        {"name": "spin", "node": "client", "command": ["python3", "-B", "-c", spin], "expect": 0},
        {"name": "sleep", "node": "server", "command": ["sleep", "3"], "expect": 0},
    ]
    events = [{"at": at, "node": "server", what: "sleep"} for at, what in ((1, "pause"), (2, "resume"))]
    one = run(kernel, tmp_path / "run", apps, apps={"packages": ["python3"]}, event=events)
    made = one.apps
    for program in made.values():
        assert sum(waits_ns(program).values()) == life_ns(program)
        assert program.cpu_s is not None
        assert program.cpu_s > 0
    assert waits_ns(made["sleep"])["stopped"] == 10**9
    assert waits_ns(made["spin"])["spun"] >= 0.09e9
    assert made["ping"].waits["recvmsg"] == pytest.approx(4, rel=0.05)
    assert made["spin"].cpu_s > made["sleep"].cpu_s
