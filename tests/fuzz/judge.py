# SPDX-License-Identifier: Apache-2.0
"""Makes the run of a scenario, twice, and says what is wrong with it."""

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
"""Wall seconds of one run, on a machine with much to do. The watchdog is sooner with most that hangs."""

STALL_S = "30"

RESETS = {"tc", "ip", "link", "cable", "ethtool", "station", "ap", "power", "channel"}
"""Events after which a device's counters begin anew, or do not tell all."""


class Endless(Exception):
    """A run has not ended by itself."""


def wrong(data: Data, repeat: bool = True) -> str | None:
    """What is wrong with a scenario's run; "refused: …" when a tool would not do it, None when nothing is."""
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
            return f"counts do not agree: {_place(error)}: {str(error).splitlines()[0] if str(error) else ''}"
        except Exception as error:
            return f"{type(error).__name__}: {_place(error)}: {str(error)[:200]}"
    return None


def kind(said: str) -> str:
    """What a finding is at heart, without the figures in it: shrinking keeps it."""
    return " ".join(word for word in said.split() if not any(letter.isdigit() for letter in word))[:100]


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name} in {last.name}: {last.line}"


def _run(data: Data, place: Path) -> Recording:
    with _alarm():
        made = runner.run(scenario.load(data), place)
    check_accounts(data, made)
    return made


def check_accounts(data: Data, made: Recording) -> None:
    """A qdisc that is replaced or reset takes its counters with it, and a device that goes down its packets: then only
    the packets themselves have to add up."""
    if any(set(one) & RESETS or "mtu" in one.get("set", {}) for one in data.get("event", [])):
        check_balances(made)
    else:
        check_counts(made)


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
