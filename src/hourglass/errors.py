# SPDX-License-Identifier: Apache-2.0
"""Define the errors that a user can cause or meet. The command line maps each to a clear message and an exit status."""

import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from hourglass.visible import visible


class HourglassError(Exception):
    """Base of all errors that are shown without a traceback.

    `status` is the exit status of the command. `code` identifies the cause (docs/reference/errors.md) and does not
    change with the message. `fields` has the values of the message that programs can use."""

    status = 3
    code = "failed"

    def __init__(
        self, message: str = "", *, code: str | None = None, fields: Mapping[str, object] | None = None
    ) -> None:
        self.code, self.fields = code or self.code, dict(fields or {})
        super().__init__(message)

    def data(self) -> dict[str, object]:
        """Return the error as data: code, message and fields."""
        return {"code": self.code, "error": str(self), "fields": self.fields}


class InputError(HourglassError):
    """An error in the user's input, with the key, the value and what is allowed. Exit status 2."""

    status = 2
    code = "input"

    def __init__(
        self, key: str, value: object, allowed: str, also: "Sequence[InputError]" = (), *, code: str | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.key, self.value, self.allowed = key, value, allowed
        self.mistakes: tuple[InputError, ...] = (self, *(mistake for error in also for mistake in error.mistakes))
        """All mistakes of the same input, in its order, this one first. Each has a line of the message."""
        super().__init__(
            "\n".join([f"{key} = {written(value)}: {allowed}", *(mistake.args[0] for mistake in self.mistakes[1:])]),
            code=code,
            fields={"key": key, "value": written(value), **(fields or {})},
        )


def written(value: object) -> str:
    """Return a value in the notation of a scenario, like true or false; `none` for None."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {written(item)}' for key, item in value.items())}}}"
    return repr(value)


class ProgramError(InputError):
    """A program of the user that did not become ready, with its command and the problem. `output`: the path of its
    output, without `.stdout` and `.stderr`. A script appears as its first line. Exit status 2."""

    def __init__(
        self, key: str, command: str, problem: str, output: Path | None, *, code: str, fields: Mapping[str, object]
    ) -> None:
        self.command, self.problem, self.output = command, problem, output
        first, *more = command.strip("\n").split("\n")
        place = "" if output is None else f"; all of it: {output}.stdout and .stderr"
        super().__init__(key, f"{first.rstrip()} …" if more else first, f"{problem}{place}", code=code, fields=fields)

    def with_output(self, output: Path | None) -> "ProgramError":
        """Return the same error with another path of the output; None: the output was deleted."""
        return ProgramError(self.key, self.command, self.problem, output, code=self.code, fields=self.fields)


class MissingError(HourglassError):
    """Something that the machine lacks, with the command that installs or permits it. Exit status 3."""

    code = "missing"

    def __init__(self, problem: str, remedy: str, *, code: str | None = None) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}; to fix: {remedy}", code=code)

    @property
    def what(self) -> str:
        """Return `problem`, which has this name up to 0.2."""
        return self.problem


class GoneError(MissingError):
    """Something that a suite of Debian no longer has, with the kernel or release and a remedy. Exit status 3."""

    code = "gone"

    def __init__(self, name: str, problem: str, remedy: str) -> None:
        self.name = name
        super().__init__(problem, remedy)


class GuestError(HourglassError):
    """A failure of the guest, with the reason, the log's path and its last relevant lines. Exit status 3."""

    code = "guest"

    def __init__(
        self, reason: str, log: Path | None = None, tail: list[str] | None = None, *, code: str | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.reason, self.log, self.tail = reason, log, tail or []
        lines = [reason]
        if log is not None:
            lines.append(f"console log: {log}")
        lines += [f"  | {line}" for line in self.tail]
        super().__init__("\n".join(lines), code=code, fields=fields)

    def with_log(self, log: Path | None) -> "GuestError":
        """Return the same error with another path of the log; None: the log was deleted."""
        return GuestError(self.reason, log, self.tail, code=self.code, fields=self.fields)


class HostError(GuestError):
    """A guest that the host did not let run: the reason, and the remedy as in `MissingError`. Exit status 3."""

    def __init__(self, lack: MissingError, log: Path | None = None, tail: list[str] | None = None) -> None:
        self.lack = lack
        super().__init__(str(lack), log, tail, code=lack.code)

    def with_log(self, log: Path | None) -> "HostError":
        return HostError(self.lack, log, self.tail)


def installing(*packages: str) -> str:
    """Return the command that installs packages, or the files of wheels, for the running interpreter."""
    return " ".join([shlex.quote(sys.executable), "-m pip install", *packages])


def closest(word: object, names: Iterable[str]) -> str:
    """Return 'Did you mean "cubic"? ' if a name is close to the word, otherwise an empty string. Case does not
    count."""
    if not isinstance(word, str) or len(word) > 64:
        return ""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f'Did you mean "{by_lower[near[0]]}"? ' if near else ""


def program(work: Callable[[], object]) -> None:
    """Run the work of a `python -m …`. A status that it returns, or an error, decides the exit status. An error is
    printed without a traceback. Like Ctrl-C, SIGTERM ends the work and the programs that it started."""
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status = work()
    except HourglassError as error:
        print(visible(f"hourglass: error: {error}"), file=sys.stderr)
        raise SystemExit(error.status) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGTERM, earlier)
    if isinstance(status, int) and status:
        raise SystemExit(int(status))
