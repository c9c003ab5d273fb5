# SPDX-License-Identifier: Apache-2.0
"""Worker processes of this machine: each is started once and given task after task.

Starting Python and loading what analyses takes as long as a short run, so processes stay. A process that dies (no
memory, killed) costs only the run it was making, which is tried once more in a new process. When we die, however, they
and their guests die too: nothing is left but hidden folders.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hourglass.engine.process import ONE_THREAD

ATTEMPTS = 2
"""How often a run is tried whose worker died. A run that fails by itself is not tried again: it would fail again."""

Task = dict[str, Any]
Finished = Callable[[str, str | None], None]
"""Told of each run: its key, and why it failed if it did."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    task: Task | None = None


def run(tasks: Sequence[Task], jobs: int, finished: Finished) -> None:
    """Makes all runs, `jobs` at a time, in order. However this is left, no worker survives it."""
    waiting = [(task, 1) for task in reversed(tasks)]
    attempts: dict[str, int] = {}
    workers: list[_Worker] = []
    with selectors.DefaultSelector() as selector:

        def give(worker: _Worker) -> None:
            worker.task = None
            if not waiting:
                return
            worker.task, attempts_so_far = waiting.pop()
            attempts[worker.task["key"]] = attempts_so_far
            assert worker.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it died just now: its end of file tells
                worker.process.stdin.write(json.dumps(worker.task).encode() + b"\n")
                worker.process.stdin.flush()

        def start() -> None:
            worker = _Worker(_start())
            workers.append(worker)
            assert worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            give(worker)

        try:
            for _ in range(min(jobs, len(tasks))):
                start()
            while any(worker.task for worker in workers):
                for worker in _ready(selector):
                    assert worker.process.stdout is not None
                    line = worker.process.stdout.readline()
                    task = worker.task
                    if line.endswith(b"\n"):
                        answer = json.loads(line)
                        finished(answer["key"], answer["failure"])
                        give(worker)
                        continue
                    selector.unregister(worker.process.stdout)
                    workers.remove(worker)
                    status = worker.process.wait()
                    if task is not None and attempts[task["key"]] < ATTEMPTS:
                        waiting.append((task, attempts[task["key"]] + 1))
                    elif task is not None:
                        finished(task["key"], f"the worker process died {ATTEMPTS} times (last with status {status})")
                    if waiting:
                        start()
        finally:
            for worker in workers:
                _stop(worker.process)


def _ready(selector: selectors.BaseSelector) -> Iterator[_Worker]:
    for chosen, _ in selector.select():
        yield chosen.data


def _start() -> subprocess.Popen[bytes]:
    """In a session of its own, so that a Ctrl-C reaches only us."""
    argv = [sys.executable, "-m", "hourglass.campaign.worker", str(os.getpid())]
    environment = ONE_THREAD | os.environ
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=environment
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """An idle worker ends with its input, a busy one is killed; its guest dies with it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
