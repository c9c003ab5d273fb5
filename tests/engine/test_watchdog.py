# SPDX-License-Identifier: Apache-2.0
"""The watchdog's verdicts: a guest that makes progress, however slowly, is never ended."""

import io
import itertools
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from hourglass.engine import guest_memory, spin, symbols, watchdog
from hourglass.engine.console import Console
from hourglass.engine.supervise import Stop
from hourglass.engine.watchdog import GuestState, GuestWatch, Watchdog
from hourglass.errors import InputError
from tests.clocks import until


def states(
    wall_s: float, virtual_ns: float, cpu_s: float, ready: bool = True, stopped: bool = False, count: int = 1000
) -> Iterable[GuestState]:
    """Yield states with constant steps between them."""
    for number in range(count):
        yield GuestState(number * wall_s, int(number * virtual_ns), number * cpu_s, 0.0, ready, stopped)


def verdict(states: Iterable[GuestState], silent: bool = True) -> tuple[float, str] | None:
    """Return the wall time at which the guest is ended, and the reason."""
    watchdog_ = Watchdog(stall_s=60.0)
    for state in states:
        if verdict_ := watchdog_.judge(state, state.wall_s if silent else 0.0):
            return state.wall_s, verdict_.text
    return None


@pytest.mark.parametrize(
    ("wall_s", "virtual_ns", "cpu_s"),
    [
        (0.5, 1e6, 0.5),  # 10 Gbit/s on a kernel full of checks: 2 ms of virtual time per second of CPU
        (0.5, 1000, 0.5),  # a thousand times slower
        (500.0, 10, 0.005),  # on a loaded machine the guest has a hundred thousandth of the CPU
        (0.5, 1e6, 0.0),  # clock ticks of the CPU account are coarse
    ],
)
def test_a_slow_guest_is_never_ended(wall_s: float, virtual_ns: float, cpu_s: float) -> None:
    assert verdict(states(wall_s, virtual_ns, cpu_s)) is None


def test_a_guest_without_a_cpu_is_not_ended() -> None:
    """The guest could run, but other processes use the machine."""
    assert verdict(states(wall_s=1.0, virtual_ns=0, cpu_s=0)) is None


def test_a_guest_in_a_debugger_is_not_ended() -> None:
    assert verdict(states(wall_s=1.0, virtual_ns=0, cpu_s=0, ready=False, stopped=True)) is None
    assert verdict(states(wall_s=1.0, virtual_ns=0, cpu_s=1.0, stopped=True)) is None


def test_cpu_time_counts_and_not_the_wall_clock() -> None:
    when, why = verdict(states(wall_s=10.0, virtual_ns=0, cpu_s=0.5)) or (0.0, "")
    assert when == pytest.approx(1210.0)
    assert why == "spins: its clock has not moved for 60 s of CPU time"


def test_a_clock_that_crawls_counts_as_stopped() -> None:
    """Its events are one nanosecond apart, for ever."""
    assert verdict(states(wall_s=1.0, virtual_ns=999, cpu_s=1.0)) is not None
    assert verdict(states(wall_s=1.0, virtual_ns=1001, cpu_s=1.0)) is None


def test_a_deadlock_is_ended() -> None:
    when, why = verdict(states(wall_s=0.5, virtual_ns=0, cpu_s=0, ready=False)) or (0.0, "")
    assert when == pytest.approx(60.5)
    assert why.startswith("deadlocks")


def test_a_silent_guest_with_a_running_clock_is_ended() -> None:
    assert verdict(states(wall_s=0.5, virtual_ns=60e9, cpu_s=0.5)) is not None
    assert verdict(states(wall_s=0.5, virtual_ns=0.01e9, cpu_s=0.5)) is None
    assert verdict(states(wall_s=0.5, virtual_ns=60e9, cpu_s=0.5), silent=False) is None


def test_a_process_that_waits_for_ever_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real process only waits, and its clock cannot be read either."""
    monkeypatch.setattr(watchdog, "LOOK_AFTER_S", 0.0)
    command = ["sh", "-c", "echo begins to wait; read line"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begins to wait\n"
        until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        watch = GuestWatch(child, Path("/bin/sh"), Console(io.BytesIO()), Watchdog(idle_s=10.0))
        verdicts = [watch.stuck(wall_s, wall_s + 1) for wall_s in (0.0, 5.0, 15.0)]
    finally:
        child.kill()
        child.wait()
    assert verdicts[:2] == [None, None]
    assert verdicts[2] == Stop(
        "guest-deadlocks",
        "deadlocks: it has used no CPU time for 15 s, and its clock has not moved, during its start",
    )


def test_without_a_limit_no_guest_is_ended() -> None:
    dog = Watchdog(stall_s=None)
    assert not any(dog.judge(look, look.wall_s) for look in states(wall_s=1.0, virtual_ns=0, cpu_s=1.0))


@pytest.mark.parametrize(("text", "limit"), [("", 60.0), ("5", 5.0), ("0.5", 0.5), ("0", None)])
def test_the_limit_is_the_environment_s(text: str, limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.LIMIT, text)
    assert watchdog.stall_s() == limit


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_an_invalid_limit_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.LIMIT, text)
    with pytest.raises(InputError, match="HOURGLASS_STALL"):
        watchdog.stall_s()


def test_an_invalid_file_has_no_symbols(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(os.urandom(500))
    table = symbols.symbols(tmp_path / "linux")
    assert table.addresses == {}
    assert table.function(0x60000000) is None


def test_a_kernel_that_never_waits_for_a_program_is_named() -> None:
    chains = itertools.cycle([("inner", "outer"), ("inner", "outer"), ("other",)])
    samples = [spin.Sample(next(chains), None) for _ in range(spin.SAMPLES)]
    description = spin.describe(samples, memory=None, share=1.0)  # type: ignore[arg-type]
    assert description == "the guest's kernel is in inner < outer (14 of 20 samples)"


def test_a_signal_reaches_only_processes_of_the_guest() -> None:
    """A guest's memory names the process. A C file of a scenario can name one of the user's."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as guest, subprocess.Popen(["sleep", "60"]) as other:
        try:
            for pid in (other.pid, os.getpid(), 1):
                with pytest.raises(ProcessLookupError):
                    guest_memory.signal_program(guest.pid, pid, signal.SIGKILL)
                assert guest_memory.member(guest.pid, pid) == 0
            assert other.poll() is None
            assert [guest_memory.member(guest.pid, pid) for pid in (guest.pid, 0, 2**32 - 1)] == [guest.pid, 0, 0]
            guest_memory.signal_program(guest.pid, guest.pid, signal.SIGKILL)
            assert guest.wait() == -signal.SIGKILL
        finally:
            guest.kill()
            other.kill()
