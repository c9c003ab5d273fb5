# SPDX-License-Identifier: Apache-2.0
"""The runs of a study on an existing Dask cluster: one task, one run.

You start the cluster with Dask's tools (SSH, Slurm, Kubernetes). A worker needs Hourglass installed, with the same
kernel/ folder; it builds kernels it lacks. Results come back as packed run directories while others run. Only a few
tasks per thread are given out at a time, so that results do not fill a worker's memory. Dask gives the runs of a lost
worker to another.
"""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hourglass.errors import HourglassError, MissingError, installing
from hourglass.studies.pool import Finished, Task
from hourglass.studies.store import Store, unpack

AHEAD = 2
"""Tasks given out per thread of the cluster: one that runs, one that waits."""

CONNECT_S = 20


def make_packed(task: Task) -> tuple[str | None, bytes]:
    """Make a run on the worker. Return the reason of a failure, and the packed directory."""
    from hourglass.studies.store import pack
    from hourglass.studies.worker import make

    with tempfile.TemporaryDirectory(prefix="hourglass-") as folder:
        directory = Path(folder) / task["key"]
        failure = make(task, directory)
        result = directory if failure is None else directory.with_name(f"{directory.name}.failed")
        return failure, pack(result) if result.is_dir() else b""


def run(tasks: Sequence[Task], address: str, store: Store, finished: Finished) -> None:
    """Make all runs on the cluster at `address` and store them."""
    try:
        import distributed

        connect: Any = distributed.Client
    except ImportError:
        raise MissingError("--dask needs Dask's `distributed`", installing("distributed")) from None
    try:
        client = connect(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise HourglassError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        _run(client, distributed.as_completed, list(tasks), store, finished)


def _run(client: Any, as_completed: Any, tasks: list[Task], store: Store, finished: Finished) -> None:
    waiting = iter(tasks)
    running: dict[str, Task] = {}

    def submit(count: int) -> Iterator[Any]:
        for task in islice(waiting, count):
            future = client.submit(make_packed, task, key=f"hourglass-{task['key']}", pure=False)
            running[future.key] = task
            yield future

    threads = sum(client.nthreads().values()) or 1
    stream = as_completed(list(submit(threads * AHEAD)), loop=client.loop)
    for future in stream:
        task = running.pop(future.key)
        _receive(future, task, store, finished)
        future.release()
        for more in submit(1):
            stream.add(more)


def _receive(future: Any, task: Task, store: Store, finished: Finished) -> None:
    key = task["key"]
    if future.status != "finished":  # cancelled, or killed with several workers
        finished(key, f"the cluster gave up: {' '.join(str(future.exception()).split())}")
        return
    failure, content = future.result()
    if content:
        unpack(content, store.directory(key) if failure is None else store.directory(f"{key}.failed"))
    finished(key, failure)
