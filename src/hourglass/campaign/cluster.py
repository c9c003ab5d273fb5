# SPDX-License-Identifier: Apache-2.0
"""The runs of a sweep on a Dask cluster that is there already: one task, one run.

How the cluster came to be (SSH, Slurm, Kubernetes) is Dask's affair. A worker needs Hourglass installed, with the same
kernel/ folder; it builds kernels it lacks. Results come back as packed run directories while others run. Only a few
tasks per thread are given out at a time, so that results wait in no worker's memory. A worker that is lost costs its
runs: Dask gives them to another.
"""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hourglass.campaign.pool import Finished, Task
from hourglass.campaign.store import Store, unpack
from hourglass.errors import HourglassError, MissingError, installing

AHEAD = 2
"""Tasks given out per thread of the cluster: one that runs, one that waits."""

CONNECT_S = 20


def make_packed(task: Task) -> tuple[str | None, bytes]:
    """On the worker: the run in a folder of its own, packed; or why it failed, with what there is of it."""
    from hourglass.campaign.store import pack
    from hourglass.campaign.worker import make

    with tempfile.TemporaryDirectory(prefix="hourglass-") as folder:
        place = Path(folder) / task["key"]
        failure = make(task, place)
        made = place if failure is None else place.with_name(f"{place.name}.failed")
        return failure, pack(made) if made.is_dir() else b""


def run(tasks: Sequence[Task], address: str, store: Store, finished: Finished) -> None:
    """Makes all runs on the cluster at `address` and puts them into the store."""
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
        unpack(content, store.place(key) if failure is None else store.place(f"{key}.failed"))
    finished(key, failure)
