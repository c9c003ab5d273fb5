# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest, and every way in which one can end early: no process and no file is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hourglass.engine import virtual
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError, InputError

from .plans import small_plan, tc

pytestmark = pytest.mark.guest

LONG_S = 100_000.0

CHILD = """
import sys
from pathlib import Path
from hourglass.contract.plan import Plan
from hourglass.engine.kernel.store import find
from hourglass.engine.virtual import Virtual
directory = Path(sys.argv[1])
Virtual(find("6.1")).run(Plan.model_validate_json((directory / "wanted.json").read_bytes()), directory)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A run directory whose name would need quoting."""
    made = tmp_path / "a run, with spaces"
    made.mkdir()
    return made


def living(directory: Path) -> list[int]:
    """The processes, zombies aside, that run in a directory, as the guest's all do."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == directory:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def gone(directory: Path, within_s: float = 5.0) -> bool:
    """Whether no process is left there, soon."""
    end = time.monotonic() + within_s
    while living(directory) and time.monotonic() < end:
        time.sleep(0.05)
    return not living(directory)


def started(directory: Path) -> subprocess.Popen[bytes]:
    """Another Python that runs a long plan there, once its guest is at work."""
    (directory / "wanted.json").write_bytes(small_plan(LONG_S).to_json())
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(directory)], stderr=subprocess.PIPE)
    records = directory / "records.arrows"
    end = time.monotonic() + 30
    while not (records.exists() and records.stat().st_size) and time.monotonic() < end:
        assert child.poll() is None
        time.sleep(0.05)
    assert len(living(directory)) >= 2, "the kernel and the agent"
    return child


def test_equal_inputs_give_equal_records_and_the_seed_matters(guest_kernel: BuiltKernel, tmp_path: Path) -> None:
    digests = []
    for number, seed in enumerate((1, 1, 2)):
        directory = tmp_path / f"run {number}"
        directory.mkdir()
        outcome = Virtual(guest_kernel).run(small_plan(seed=seed), directory)
        assert (outcome.virtual_s, outcome.warnings) == (1.0, [])
        assert sorted(path.name for path in directory.iterdir()) == ["console.log", "plan.json", "records.arrows"]
        digests.append(outcome.digest)
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_progress_reaches_the_end(guest_kernel: BuiltKernel, place: Path) -> None:
    heard: list[tuple[float, float]] = []
    Virtual(guest_kernel).run(small_plan(3.0), place, progress=lambda *step: heard.append(step))
    assert [step for step, _ in heard] == sorted(step for step, _ in heard)
    assert heard[-1] == (3.0, 3.0)


def test_a_line_of_the_user_s_that_fails_is_blamed_in_the_tool_s_words(guest_kernel: BuiltKernel, place: Path) -> None:
    with pytest.raises(InputError, match="limit") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[tc("qdisc add dev lo root pfifo limit none")]), place)
    assert raised.value.key == "stack.qdisc"
    assert raised.value.value == "qdisc add dev lo root pfifo limit none"


@pytest.mark.parametrize("words", ["root nonsense", "root handle 10: nonsense", "parent 1:1 handle 10: nonsense"])
def test_a_qdisc_that_the_kernel_has_not_is_named(guest_kernel: BuiltKernel, place: Path, words: str) -> None:
    setup = [tc("qdisc add dev lo root handle 1: prio", None)] if "parent" in words else []
    with pytest.raises(InputError, match="not in this kernel") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[*setup, tc(f"qdisc add dev lo {words}")]), place)
    assert (raised.value.key, raised.value.value) == ("stack.qdisc", "nonsense")


def test_a_line_of_ours_that_fails_is_the_guest_s_error(guest_kernel: BuiltKernel, place: Path) -> None:
    with pytest.raises(GuestError, match="nonsense") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[tc("qdisc add dev lo root nonsense", None)]), place)
    assert raised.value.log == place / "console.log"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_us(guest_kernel: BuiltKernel, place: Path, number: signal.Signals) -> None:
    child = started(place)
    child.send_signal(number)
    _, said = child.communicate(timeout=20)
    assert child.returncode == -number
    assert (b"KeyboardInterrupt" in said) == (number == signal.SIGINT)
    assert gone(place)


def test_a_killed_guest_is_an_error_and_leaves_no_process(guest_kernel: BuiltKernel, place: Path) -> None:
    """Without PTRACE_O_EXITKILL in the guest kernel the agent would go on as a process of the host, and be heard."""
    child = started(place)
    for process in living(place):
        assert "CapEff:\t0000000000000000\n" in Path(f"/proc/{process}/status").read_text()
    kernel = next(pid for pid in living(place) if os.getsid(pid) == pid)  # it leads its session
    os.kill(kernel, signal.SIGKILL)
    _, said = child.communicate(timeout=20)
    assert b"the guest ended before its records were complete (killed by signal 9)" in said
    assert gone(place)
    assert not (place / virtual.PRIVATE).exists()
