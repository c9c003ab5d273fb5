# SPDX-License-Identifier: Apache-2.0
"""Complete runs on real guest kernels. Each is made once per session and shared by all tests."""

import itertools
import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import locks, runner, scenario
from hourglass.contract.kernels import KERNELS
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.engine import engines
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.run_files import RUN_FILE
from hourglass.scenario import Scenario

from .accounts import check_counts

Simulate = Callable[..., Recording]

OPEN_RECORDINGS = 8
"""Recordings that a worker may have open: their tables take memory."""


@pytest.fixture(scope="session")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """Return `simulate(source, "key=value", …, kernel=V, seed=N, fresh=False)`: it runs a built-in or a mapping and
    checks the counts (`accounts.py`). Equal scenarios, engines and plans share one run, across all workers."""
    recordings: OrderedDict[str, Recording] = OrderedDict()
    private, shared = tmp_path_factory.mktemp("runs"), tmp_path_factory.getbasetemp() / "shared"
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "shared"
    numbers = itertools.count()

    def make(source: str | dict[str, Any], *overrides: str, fresh: bool = False, **settings: Any) -> Recording:
        if fresh:
            run = runner.run(scenario.load(source, overrides, **settings), private / f"{next(numbers)}")
            check_counts(run)
            return run
        name = json.dumps([source, overrides, settings], sort_keys=True)
        if name not in recordings:
            recordings[name] = _shared(scenario.load(source, overrides, **settings), shared)
            if len(recordings) > OPEN_RECORDINGS:
                recordings.popitem(last=False)
        recordings.move_to_end(name)
        return recordings[name]

    return make


def _shared(loaded: Scenario, folder: Path) -> Recording:
    """Return the run of a scenario. The first worker makes it; the others wait."""
    prepared = runner.prepare(loaded, engines.DEFAULT, runner.SilentRunProgress())
    path = folder / prepared.key
    with locks.exclusive(folder / f".{prepared.key}.lock"):
        if (path / RUN_FILE).is_file():
            return open_run(path)
        run = runner.make(prepared, path)
        try:
            check_counts(run)
        except AssertionError:
            shutil.rmtree(path)  # so that every test of the run fails
            raise
    return run


def counters(run: Recording, node: str, device: str = "eth0") -> dict[str, int]:
    """Return `ethtool -S` of a NIC at the end of a run."""
    rows = run.ethtool.filter((run.ethtool["node"] == node) & (run.ethtool["device"] == device))
    return dict(zip(rows["name"], rows["value"], strict=True))


def digests(run: Recording) -> dict[str, int]:
    """Return a digest per NIC of its frames and their times."""
    rows = run.ethtool.filter(run.ethtool["name"] == "tx_digest")
    return {f"{node}:{device}": value for node, device, value in rows.select("node", "device", "value").rows()}


def check_accounts(run: Recording, packets: int) -> None:
    """Check that the layers of each packet add up to the ns, and that almost no packet remains in flight. `packets`:
    the run has more packets than this."""  # only unread data of a receiver's socket that closed have no end
    assert run.balance["in_flight"].sum() < 200
    sums = run.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum"), (pl.col("end_ns") - pl.col("t_ns")).first().alias("whole")
    )
    assert sums.height > packets
    assert sums.filter(pl.col("sum") != pl.col("whole")).is_empty()
    assert run.packets.select(pl.min_horizontal(LAYER_COLUMNS).min()).item() >= 0


def round_trips(run: Recording) -> pl.DataFrame:
    """Return the round trip of each answered ping, and the sum of its layers in both directions."""
    layers = run.packets.filter(belongs_to(*run.pings))
    layer_sum = pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum")
    sums = layers.group_by("stream", pl.col("packet").alias("seq")).agg(layer_sum)
    return run.ping_rows.filter(pl.col("rtt_ns").is_not_null()).join(sums, on=["stream", "seq"])


def line(rate: str = "1gbit", delay: str = "0ns", nodes: int = 3, **link: Any) -> dict[str, Any]:
    """Return a scenario: client - router - … - server in a line of equal cables, without shaper and load."""
    names = ["client", *(f"router{i}" for i in range(1, nodes - 1)), "server"]
    links = [
        {"ends": [f"{left}:right", f"{right}:left"], "rate": rate, "delay": delay, **link}
        for left, right in itertools.pairwise(names)
    ]
    return {
        "name": "line",
        "testbed": {"node": [{"name": n, "role": "router" if n[0] == "r" else "host"} for n in names], "link": links},
        "test": {"name": "ping", "length": 2},
    }


def records(run: Recording) -> Path:
    return run.path / "records.arrows"


__all__ = ["KERNELS", "Simulate", "counters", "digests", "line", "records"]
