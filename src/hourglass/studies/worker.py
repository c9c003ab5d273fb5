# SPDX-License-Identifier: Apache-2.0
"""Make runs of a study in a process that stays for the next run.

`make` is all of it, for a process of the pool and for a worker of a cluster. As a program
(`python -m hourglass.studies.worker`) it reads a task per line of its standard input and answers with a line each. It
ends when its input does, and dies with the process that started it.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

from hourglass.host import process


def make(task: dict[str, Any], directory: Path) -> str | None:
    """Make the run of a task in `directory`. Return the reason of a failure in one line.

    A task has `scenario` (JSON text), `engine`, `like`, `identity` (the engine's, which must be the same here), `keep`
    and `sandbox` (whether it is required).
    """
    from hourglass import runner, scenario
    from hourglass.engine import engines
    from hourglass.errors import GuestError, HourglassError
    from hourglass.host import sandbox
    from hourglass.studies.store import prune

    try:
        loaded = scenario.load(json.loads(task["scenario"]))
        able = engines.capabilities(task["engine"], task["like"])
        sandbox.check(sandbox.layers(), required=task["sandbox"])
        prepared = runner.prepare(loaded, task["engine"], runner.SilentRunProgress(), able)
        if prepared.identity != task["identity"]:
            return (
                f"kernel {loaded.kernel} or the guest's root differs on this machine: {prepared.identity} "
                f"instead of {task['identity']} (other sources, compiler or network tools)"
            )
        runner.make(prepared, directory)
        if task["keep"] == "summary":
            prune(directory)
    except GuestError as error:
        return error.reason
    except HourglassError as error:
        return " ".join(str(error).split())
    except Exception as error:  # it must not stop the other runs
        return f"internal error: {type(error).__name__}: {error}"
    return None


def main() -> None:
    """Serve tasks. Answers go to the original standard output; other output goes to standard error."""
    if not process.die_with(int(sys.argv[1])):
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        _serve(answers)


def _serve(answers: TextIO) -> None:
    from hourglass.results import run_directory  # noqa: F401  # every run needs it: loaded before the first

    for line in sys.stdin:
        task = json.loads(line)
        failure = make(task, Path(task["place"]))
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"key": task["key"], "failure": failure}), file=answers, flush=True)


if __name__ == "__main__":
    main()
