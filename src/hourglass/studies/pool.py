# SPDX-License-Identifier: Apache-2.0
"""Worker processes of this machine: each is started once and gets task after task.

Starting Python and loading the analysis takes as long as a short run, so processes stay. A process that dies (no
memory, killed) costs only its current run, which is tried once more in a new process. When the coordinator dies, the
workers and their guests die with it: only hidden folders remain.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hourglass.engine.watchdog import LIMIT
from hourglass.host.process import ONE_THREAD

ATTEMPTS = 2
"""The number of attempts for a run whose worker died. A run that fails is not repeated: it would fail again."""

Task = dict[str, Any]
Finished = Callable[[str, str | None], None]
"""Called for each run with its key, and the reason if it failed."""


@dataclass(frozen=True)
class Limits:
    """The limits of runs that may go wrong. They are the end of their time, on the clock `time.monotonic`, and the CPU
    time in s that a guest may use without moving its clock. After a failure no further run starts."""

    end_s: float
    stall_s: float


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    task: Task | None = None


class WorkerPool:
    """Workers that stay from one list of tasks to the next, and end with the pool."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits
        self.selector = selectors.DefaultSelector()
        self.workers: list[_Worker] = []
        self.waiting: list[tuple[Task, int]] = []
        self.attempts: dict[str, int] = {}
        self.finished: Finished = lambda key, failure: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            _stop(worker.process)
        self.selector.close()

    def run(self, tasks: Sequence[Task], jobs: int, finished: Finished) -> bool:
        """Make all runs, `jobs` at a time, in order. With limits return whether they ended in time; if they did not,
        the pool is of no further use."""
        self.waiting, self.finished = [(task, 1) for task in reversed(tasks)], finished
        for worker in self.workers[:jobs]:
            self.give_task(worker)
        self.start(min(jobs, len(self.workers) + len(self.waiting)))
        while any(worker.task for worker in self.workers):
            remaining_s = None if self.limits is None else self.limits.end_s - time.monotonic()
            if remaining_s is not None and remaining_s <= 0:
                return False
            for worker in _ready(self.selector, remaining_s):
                self.read_answer(worker)
        return True

    def start(self, number: int) -> None:
        """Start workers up to `number`, and give them tasks. Without tasks they load what runs need."""
        while len(self.workers) < number:
            worker = _Worker(_start({} if self.limits is None else {LIMIT: str(self.limits.stall_s)}))
            self.workers.append(worker)
            assert worker.process.stdout is not None
            self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            self.give_task(worker)

    def give_task(self, worker: _Worker) -> None:
        """Give a worker the next task, if there is one."""
        worker.task = None
        if not self.waiting:
            return
        worker.task, attempt = self.waiting.pop()
        self.attempts[worker.task["key"]] = attempt
        assert worker.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; the end of its file reports this
            worker.process.stdin.write(json.dumps(worker.task).encode() + b"\n")
            worker.process.stdin.flush()

    def read_answer(self, worker: _Worker) -> None:
        """Read a worker's answer, or replace the worker if it died."""
        assert worker.process.stdout is not None
        line = worker.process.stdout.readline()
        if line.endswith(b"\n"):
            answer = json.loads(line)
            self.finished(answer["key"], answer["failure"])
            if answer["failure"] is not None and self.limits is not None:
                self.waiting.clear()
            self.give_task(worker)
            return
        self.selector.unregister(worker.process.stdout)
        self.workers.remove(worker)
        status, task = worker.process.wait(), worker.task
        if task is not None and self.attempts[task["key"]] < ATTEMPTS:
            self.waiting.append((task, self.attempts[task["key"]] + 1))
        elif task is not None:
            self.finished(task["key"], f"the worker process died {ATTEMPTS} times (last with status {status})")
        if self.waiting:
            self.start(len(self.workers) + 1)


def run(tasks: Sequence[Task], jobs: int, finished: Finished) -> None:
    """Make all runs in a separate pool, as `WorkerPool.run`. No worker survives this call."""
    with WorkerPool() as workers:
        workers.run(tasks, jobs, finished)


def _ready(selector: selectors.BaseSelector, timeout_s: float | None) -> Iterator[_Worker]:
    for event, _ in selector.select(timeout_s):
        yield event.data


def _start(settings: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker in a separate session, so that a Ctrl-C does not reach it."""
    argv = [sys.executable, "-m", "hourglass.studies.worker", str(os.getpid())]
    environment = ONE_THREAD | os.environ | settings
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=environment
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a worker; its guest dies with it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
