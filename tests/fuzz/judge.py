# SPDX-License-Identifier: Apache-2.0
"""Make the run of a scenario twice, and report its problems."""

import contextlib
import os
import signal
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

from hourglass import runner, scenario
from hourglass.engine.watchdog import LIMIT
from hourglass.errors import GuestError, HourglassError, InputError
from hourglass.results.recording import Recording
from tests.guest.accounts import check_balances, check_counts

from .draw import Data

LONGEST_S = 600
"""Wall seconds of one run on a busy machine. The watchdog ends most hangs earlier."""

STALL_S = "30"

RESETS = {"tc", "ip", "link", "cable", "ethtool", "station", "ap", "power", "channel"}
"""Events that reset a device's counters, or after which they are incomplete."""


class Endless(Exception):
    """A run that has not ended by itself."""


def problem_of(data: Data, repeat: bool = True) -> str | None:
    """Return the problem of a scenario's run, "refused: …" if a tool refuses it, or None."""
    os.environ[LIMIT] = STALL_S
    with tempfile.TemporaryDirectory() as folder:
        try:
            first = _run(data, Path(folder) / "first")
            if first.info.warnings:
                return f"the kernel complains: {first.info.warnings[0]}"
            if repeat and _run(data, Path(folder) / "again").info.digest != first.info.digest:
                return "the second run has other bytes"
        except InputError as error:
            return f"refused: {error}"
        except GuestError as error:
            return f"the guest failed: {error.reason}"
        except HourglassError as error:
            return f"it failed: {error}"
        except Endless:
            return f"it did not end within {LONGEST_S} s"
        except AssertionError as error:
            return f"counts do not agree: {_position(error)}: {str(error).splitlines()[0] if str(error) else ''}"
        except Exception as error:
            return f"{type(error).__name__}: {_position(error)}: {str(error)[:200]}"
    return None


def kind(problem: str) -> str:
    """Return the kind of a finding, without its figures: shrinking retains it."""
    return " ".join(word for word in problem.split() if not any(letter.isdigit() for letter in word))[:100]


def _position(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name} in {last.name}: {last.line}"


def _run(data: Data, folder: Path) -> Recording:
    with _alarm():
        run = runner.run(scenario.load(data), folder)
    check_accounts(data, run)
    return run


def check_accounts(data: Data, run: Recording) -> None:
    """Check the counts of a run. If a qdisc is replaced or reset, or a device goes down, counters or packets vanish:
    then only the balances of packets must agree."""
    if any(set(event) & RESETS or "mtu" in event.get("set", {}) for event in data.get("event", [])):
        check_balances(run)
    else:
        check_counts(run)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
