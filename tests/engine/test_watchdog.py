# SPDX-License-Identifier: Apache-2.0
"""What the watchdog makes of what it sees: a guest that gets on, however slowly, is never ended."""

import io
import itertools
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from hourglass.engine import spin, symbols, watchdog
from hourglass.engine.console import Console
from hourglass.engine.watchdog import GuestWatch, Look, Watchdog
from hourglass.errors import InputError


def looks(
    wall_s: float, virtual_ns: float, cpu_s: float, ready: bool = True, held: bool = False, count: int = 1000
) -> Iterable[Look]:
    """Looks of which each is so much further than the one before."""
    for number in range(count):
        yield Look(number * wall_s, int(number * virtual_ns), number * cpu_s, 0.0, ready, held)


def verdict(seen: Iterable[Look], silent: bool = True) -> tuple[float, str] | None:
    """When the guest is ended, by the wall clock, and why."""
    dog = Watchdog(stall_s=60.0)
    for look in seen:
        if wrong := dog.judge(look, look.wall_s if silent else 0.0):
            return look.wall_s, wrong.text
    return None


@pytest.mark.parametrize(
    ("wall_s", "virtual_ns", "cpu_s"),
    [
        (0.5, 1e6, 0.5),  # 10 Gbit/s on a kernel full of checks: 2 ms of virtual time per second of CPU
        (0.5, 1000, 0.5),  # a thousand times slower
        (500.0, 10, 0.005),  # a machine so loaded that the guest has its CPU for a hundred thousandth of the time
        (0.5, 1e6, 0.0),  # clock ticks of the CPU account are coarse
    ],
)
def test_a_slow_guest_is_never_ended(wall_s: float, virtual_ns: float, cpu_s: float) -> None:
    assert verdict(looks(wall_s, virtual_ns, cpu_s)) is None


def test_a_guest_without_a_cpu_is_not_ended() -> None:
    """It could run, but others have the machine."""
    assert verdict(looks(wall_s=1.0, virtual_ns=0, cpu_s=0)) is None


def test_a_guest_in_a_debugger_is_not_ended() -> None:
    assert verdict(looks(wall_s=1.0, virtual_ns=0, cpu_s=0, ready=False, held=True)) is None
    assert verdict(looks(wall_s=1.0, virtual_ns=0, cpu_s=1.0, held=True)) is None


def test_cpu_time_counts_and_not_the_wall_clock() -> None:
    when, why = verdict(looks(wall_s=10.0, virtual_ns=0, cpu_s=0.5)) or (0.0, "")
    assert when == pytest.approx(1210.0)
    assert why == "stands still: its clock has not moved for 60 s of CPU time"


def test_a_clock_that_crawls_stands_still() -> None:
    """Events one nanosecond apart, for ever."""
    assert verdict(looks(wall_s=1.0, virtual_ns=999, cpu_s=1.0)) is not None
    assert verdict(looks(wall_s=1.0, virtual_ns=1001, cpu_s=1.0)) is None


def test_a_deadlock_is_ended() -> None:
    when, why = verdict(looks(wall_s=0.5, virtual_ns=0, cpu_s=0, ready=False)) or (0.0, "")
    assert when == pytest.approx(60.5)
    assert why.startswith("does nothing")


def test_a_clock_that_runs_on_without_a_word_is_ended() -> None:
    assert verdict(looks(wall_s=0.5, virtual_ns=60e9, cpu_s=0.5)) is not None
    assert verdict(looks(wall_s=0.5, virtual_ns=0.01e9, cpu_s=0.5)) is None
    assert verdict(looks(wall_s=0.5, virtual_ns=60e9, cpu_s=0.5), silent=False) is None


def test_a_process_that_waits_for_ever_is_seen_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through a process: one that only waits, whose clock cannot be read either."""
    monkeypatch.setattr(watchdog, "LOOK_AFTER_S", 0.0)
    command = ["sh", "-c", "echo begins to wait; read line"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begins to wait\n"
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)
        watch = GuestWatch(child, Path("/bin/sh"), Console(io.BytesIO()), Watchdog(idle_s=10.0))
        said = [watch.stuck(wall_s, wall_s + 1) for wall_s in (0.0, 5.0, 15.0)]
    finally:
        child.kill()
        child.wait()
    assert said[:2] == [None, None]
    assert said[2] == "does nothing: it has used no CPU time for 15 s, and its clock has not moved, during its start"


def test_no_limit_is_no_end() -> None:
    dog = Watchdog(stall_s=None)
    assert not any(dog.judge(look, look.wall_s) for look in looks(wall_s=1.0, virtual_ns=0, cpu_s=1.0))


@pytest.mark.parametrize(("text", "limit"), [("", 60.0), ("5", 5.0), ("0.5", 0.5), ("0", None)])
def test_the_limit_is_the_environment_s(text: str, limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.LIMIT, text)
    assert watchdog.stall_s() == limit


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_limit_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.LIMIT, text)
    with pytest.raises(InputError, match="HOURGLASS_STALL"):
        watchdog.stall_s()


def test_symbols_of_a_file_that_is_none_are_none(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(os.urandom(500))
    found = symbols.symbols(tmp_path / "linux")
    assert found.addresses == {}
    assert found.function(0x60000000) is None


def test_a_kernel_that_never_waits_for_a_program_is_named() -> None:
    chains = itertools.cycle([("inner", "outer"), ("inner", "outer"), ("other",)])
    samples = [spin.Sample(next(chains), None) for _ in range(spin.SAMPLES)]
    said = spin.told(samples, inside=None, share=1.0)  # type: ignore[arg-type]
    assert said == "the guest's kernel is in inner < outer (14 of 20 samples)"
