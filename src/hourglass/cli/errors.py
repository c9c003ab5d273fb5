# SPDX-License-Identifier: Apache-2.0
"""Every error of the command line, mapped to what the user sees and the exit status.

| what happened | on stderr | status |
|---|---|---|
| a bound is missed | nothing | 1 |
| the input is wrong (`InputError`, wrong usage) | `hourglass: error: …`, a line for each mistake | 2 |
| the guest failed, the machine lacks something | `hourglass: error: …`, log lines below | 3 |
| an internal error | one line and where the traceback is; the traceback with `HOURGLASS_DEBUG=1` | 70 |
| Ctrl-C or SIGTERM | `hourglass: interrupted` | 130 |
| the output pipe is closed | nothing | 1 |
"""

import os
import signal
import sys
import tempfile
import traceback
from types import FrameType

from hourglass.errors import HourglassError, InputError

MISSED, USAGE, INTERNAL, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 1

AGAIN_S = 0.05

_interrupted: list[int] = []  # the signals that asked for an end


def guarded(arguments: list[str]) -> int:
    """Runs the command; never raises. Returns the exit status."""
    _interrupted.clear()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
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
    except Exception as error:
        if _interrupted:  # a library has made another exception of the interrupt
            _say("interrupted")
            return INTERRUPTED
        return _internal(error)


def _run(arguments: list[str]) -> int:
    """The command's own status; usage errors become one line."""
    import typer

    from hourglass.cli.app import app

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
        where = context.command_path if context else "hourglass"
        said = " ".join(wrong.format_message().split()).rstrip(".")
        _say(f"error: {said}{'' if said.endswith('?') else ';'} `{where} --help` tells more")
        return USAGE
    if status == INTERRUPTED:  # what typer makes of a KeyboardInterrupt
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.append(number)
    raise KeyboardInterrupt


def _lost(what: "sys.UnraisableHookArgs") -> None:
    """Where Python must not raise (around a fork, in a destructor) it drops an interrupt: it comes again."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(what)


def _say(line: str) -> None:
    print(f"hourglass: {line}", file=sys.stderr)


def _internal(error: Exception) -> int:
    """An internal error: one line, the traceback in a file; or the traceback itself with `HOURGLASS_DEBUG=1`."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("HOURGLASS_DEBUG") == "1":
        print(text, end="", file=sys.stderr)
        return INTERNAL
    with tempfile.NamedTemporaryFile("w", prefix="hourglass-error-", suffix=".txt", delete=False) as file:
        file.write(text)
    _say(f"internal error: {type(error).__name__}: {error}; please report it with {file.name}")
    return INTERNAL
