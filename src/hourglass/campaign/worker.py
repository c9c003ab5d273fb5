# SPDX-License-Identifier: Apache-2.0
"""What makes one run of a sweep, in a process that stays for the next.

`make` is all there is to it, for a process of the pool and for a worker of a cluster alike. As a program
(`python -m hourglass.campaign.worker`) it reads a task per line of its standard input and answers with a line each;
it ends when its input does, and dies with the process that started it.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

_PR_SET_PDEATHSIG = 1


def make(task: dict[str, Any], place: Path) -> str | None:
    """Makes the run of a task at `place`; the reason in one line if it failed.

    A task has `scenario` (JSON text), `engine`, `identity` (the engine's, which must be the same here) and `keep`.
    """
    from hourglass import runner, scenario
    from hourglass.campaign.store import prune
    from hourglass.errors import GuestError, HourglassError

    try:
        wanted = scenario.load(json.loads(task["scenario"]))
        prepared = runner.prepare(wanted, task["engine"], runner.Silent())
        if prepared.identity != task["identity"]:
            return (
                f"kernel {wanted.kernel} or the guest's root is another one on this machine: {prepared.identity} "
                f"instead of {task['identity']} (other sources, compiler or network tools)"
            )
        runner.make(prepared, place)
        if task["keep"] == "summary":
            prune(place)
    except GuestError as error:
        return error.reason
    except HourglassError as error:
        return " ".join(str(error).split())
    except Exception as error:  # whatever it is, it must not stop the other runs
        return f"internal error: {type(error).__name__}: {error}"
    return None


def main() -> None:
    """The loop. Answers go to what was standard output; what others print goes to standard error."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(sys.argv[1]):  # the parent died before prctl took effect
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        _serve(answers)


def _serve(answers: TextIO) -> None:
    from hourglass.results import opening  # noqa: F401  # what every run needs, loaded before the first

    for line in sys.stdin:
        task = json.loads(line)
        failure = make(task, Path(task["place"]))
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"key": task["key"], "failure": failure}), file=answers, flush=True)


if __name__ == "__main__":
    main()
