# SPDX-License-Identifier: Apache-2.0
"""Map every error of the command line to a message and the exit status.

| event | on stderr | status |
|---|---|---|
| a bound is missed | nothing | 1 |
| the input is wrong (`InputError`, wrong usage) | `hourglass: error: …`, a line for each mistake | 2 |
| the guest failed, the machine lacks something, the disk is full | `hourglass: error: …`, log lines below | 3 |
| an internal error | a line with the path of the traceback; the traceback with `HOURGLASS_DEBUG=1` | 70 |
| Ctrl-C, SIGTERM or SIGHUP | `hourglass: interrupted` | 130 |
| the output pipe is closed | nothing | 1 |
"""

import os
import signal
import sys
import tempfile
import traceback
from types import FrameType

from hourglass.errors import HourglassError, InputError
from hourglass.files import FULL
from hourglass.visible import visible

MISSED, USAGE, SOME_FAILED, INTERNAL, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 70, 130, 1

AGAIN_S = 0.05

_interrupted: list[int] = []  # the received signals


def guarded(arguments: list[str]) -> int:
    """Run the command and return the exit status. Never raises."""
    _interrupted.clear()
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, _interrupt)
    sys.unraisablehook = _lost
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except InputError as error:
        for line in str(error).splitlines():
            _say(f"error: {line}")
        return error.status
    except HourglassError as error:
        _say(f"error: {error}")
        return error.status
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit finds no broken pipe
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in FULL:
            return _internal(error)
        _say(f"error: {error.filename or 'a file'} cannot be written: {error.strerror}")
        return HourglassError.status
    except Exception as error:
        if _interrupted:  # a library turned the interrupt into another exception
            _say("interrupted")
            return INTERRUPTED
        return _internal(error)


def _run(arguments: list[str]) -> int:
    """Return the command's status; usage errors become one line."""
    import typer

    from hourglass.cli.commands import app

    try:
        status = app(arguments, prog_name="hourglass", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # typer's answer to a broken pipe, and the end of a shell's completion
        return end.code if isinstance(end.code, int) else 0
    except Exception as wrong:
        if not hasattr(wrong, "format_message"):  # click's usage errors have it; typer may bring its own copy of click
            raise
        context = getattr(wrong, "ctx", None)
        command = context.command_path if context else "hourglass"
        message = " ".join(wrong.format_message().split()).rstrip(".")
        _say(f"error: {message}{'' if message.endswith('?') else ';'} see `{command} --help`")
        return USAGE
    if status == INTERRUPTED:  # typer returns it for a KeyboardInterrupt
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.append(number)
    raise KeyboardInterrupt


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat an interrupt that Python dropped because it could not raise (around a fork, in a destructor)."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(unraisable)


def _say(line: str) -> None:
    print(visible(f"hourglass: {line}"), file=sys.stderr)


def _internal(error: Exception) -> int:
    """Report an internal error: a line with the path of the traceback, or the traceback with `HOURGLASS_DEBUG=1`."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("HOURGLASS_DEBUG") == "1":
        print(text, end="", file=sys.stderr)
        return INTERNAL
    summary = f"internal error: {type(error).__name__}: {error}; please report it with"
    try:
        with tempfile.NamedTemporaryFile("w", prefix="hourglass-error-", suffix=".txt", delete=False) as file:
            file.write(text)
    except OSError:
        _say(f"{summary} this:\n{text}")
    else:
        _say(f"{summary} {file.name}")
    return INTERNAL
