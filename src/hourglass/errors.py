# SPDX-License-Identifier: Apache-2.0
"""The errors a user can cause or meet; the command line maps each to one clear line and an exit status."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path


class HourglassError(Exception):
    """Base of all errors that are shown without a traceback. `status` is the exit status of the command."""

    status = 3


class InputError(HourglassError):
    """The user's input is wrong: names the key, the value and what is allowed. Exit status 2."""

    status = 2

    def __init__(self, key: str, value: object, allowed: str, also: "Sequence[InputError]" = ()) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        self.mistakes: tuple[InputError, ...] = (self, *(one for error in also for one in error.mistakes))
        """This one and the others of the same input, in its order; each is told on a line of its own."""
        super().__init__(
            "\n".join([f"{key} = {written(value)}: {allowed}", *(one.args[0] for one in self.mistakes[1:])])
        )


def written(value: object) -> str:
    """A value as one writes it in a scenario: true, false; none where there is none."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {written(one)}' for key, one in value.items())}}}"
    return repr(value)


class MissingError(HourglassError):
    """The machine lacks something: says what, and the command that installs or permits it. Exit status 3."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(f"{what}; to fix: {remedy}")


class GoneError(MissingError):
    """What a suite of Debian had, it has no more: of which kernel or release, what, and what helps. Exit status 3."""

    def __init__(self, name: str, what: str, remedy: str) -> None:
        self.name = name
        super().__init__(what, remedy)


class GuestError(HourglassError):
    """The guest failed: the reason, the log's path and its last lines that matter. Exit status 3."""

    def __init__(self, reason: str, log: Path | None = None, tail: list[str] | None = None) -> None:
        self.reason, self.log, self.tail = reason, log, tail or []
        lines = [reason]
        if log is not None:
            lines.append(f"console log: {log}")
        lines += [f"  | {line}" for line in self.tail]
        super().__init__("\n".join(lines))


def installing(*packages: str) -> str:
    """The command that installs packages, or the files of wheels, for the interpreter that runs."""
    return " ".join([shlex.quote(sys.executable), "-m pip install", *packages])


def closest(word: object, names: Iterable[str]) -> str:
    """'Did you mean "cubic"? ' if a name is near the word, else nothing. Case does not count."""
    if not isinstance(word, str) or len(word) > 64:
        return ""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f'Did you mean "{by_lower[near[0]]}"? ' if near else ""


def program(work: Callable[[], object]) -> None:
    """Does the work of a `python -m …`: an error is told without a traceback and decides the exit status."""
    try:
        work()
    except HourglassError as error:
        print(f"hourglass: error: {error}", file=sys.stderr)
        raise SystemExit(error.status) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
