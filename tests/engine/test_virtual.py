# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest, and all kinds of early ends: no process and no file remains."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hourglass.builders.kernel.built import BuiltKernel
from hourglass.engine import virtual
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError, InputError
from tests.clocks import HANG_S, until
from tests.processes import guest_below, processes_below

from .plans import small_plan, tc

pytestmark = pytest.mark.guest

LONG_S = 100_000.0

CHILD = """
import sys
from pathlib import Path
from hourglass.contract.plan import Plan
from hourglass.builders.kernel.registry import find
from hourglass.engine.virtual import Virtual
directory = Path(sys.argv[1])
Virtual(find("6.1")).run(Plan.model_validate_json((directory / "wanted.json").read_bytes()), directory)
"""


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    """Return a run directory with spaces in its name."""
    folder = tmp_path / "a run, with spaces"
    folder.mkdir()
    return folder


def all_end(directory: Path) -> None:
    """Wait until no process is left there."""
    until(lambda: not processes_below(directory.parent), "a process remains")


def started(directory: Path) -> subprocess.Popen[bytes]:
    """Return a Python process that runs a long plan there, after its guest is ready."""
    (directory / "wanted.json").write_bytes(small_plan(LONG_S).to_json())
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(directory)], stderr=subprocess.PIPE)
    records = directory / "records.arrows"
    until(lambda: child.poll() is not None or (records.exists() and records.stat().st_size))
    assert child.poll() is None
    assert len(processes_below(directory.parent)) >= 2, "the kernel and the agent"
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


def test_progress_reaches_the_end(guest_kernel: BuiltKernel, run_directory: Path) -> None:
    reports: list[tuple[float, float]] = []
    Virtual(guest_kernel).run(small_plan(3.0), run_directory, progress=lambda *step: reports.append(step))
    assert [step for step, _ in reports] == sorted(step for step, _ in reports)
    assert reports[-1] == (3.0, 3.0)


def test_a_failing_line_of_the_user_is_an_error_with_the_tool_s_message(
    guest_kernel: BuiltKernel, run_directory: Path
) -> None:
    with pytest.raises(InputError, match="limit") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[tc("qdisc add dev lo root pfifo limit none")]), run_directory)
    assert raised.value.key == "stack.qdisc"
    assert raised.value.value == "qdisc add dev lo root pfifo limit none"


@pytest.mark.parametrize("arguments", ["root nonsense", "root handle 10: nonsense", "parent 1:1 handle 10: nonsense"])
def test_a_missing_qdisc_is_named(guest_kernel: BuiltKernel, run_directory: Path, arguments: str) -> None:
    setup = [tc("qdisc add dev lo root handle 1: prio", None)] if "parent" in arguments else []
    with pytest.raises(InputError, match="is missing in this kernel") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[*setup, tc(f"qdisc add dev lo {arguments}")]), run_directory)
    assert (raised.value.key, raised.value.value) == ("stack.qdisc", "nonsense")


def test_a_failing_line_of_ours_is_the_guest_s_error(guest_kernel: BuiltKernel, run_directory: Path) -> None:
    with pytest.raises(GuestError, match="nonsense") as raised:
        Virtual(guest_kernel).run(small_plan(setup=[tc("qdisc add dev lo root nonsense", None)]), run_directory)
    assert raised.value.log == run_directory / "console.log"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_command(
    guest_kernel: BuiltKernel, run_directory: Path, number: signal.Signals
) -> None:
    child = started(run_directory)
    child.send_signal(number)
    _, output = child.communicate(timeout=HANG_S)
    assert child.returncode == -number
    assert (b"KeyboardInterrupt" in output) == (number == signal.SIGINT)
    all_end(run_directory)


def test_a_killed_guest_is_an_error_and_leaves_no_process(guest_kernel: BuiltKernel, run_directory: Path) -> None:
    """Without PTRACE_O_EXITKILL in the guest kernel the agent would continue as a process of the host."""
    child = started(run_directory)
    for process in processes_below(run_directory.parent):
        assert "CapEff:\t0000000000000000\n" in Path(f"/proc/{process}/status").read_text()
    os.kill(guest_below(run_directory.parent), signal.SIGKILL)
    _, output = child.communicate(timeout=HANG_S)
    assert b"the guest ended before its records were complete (killed by signal 9)" in output
    all_end(run_directory)
    assert not (run_directory / virtual.PRIVATE).exists()
