# SPDX-License-Identifier: Apache-2.0
"""Whole runs on real guest kernels, each made once a session, whoever asks for it."""

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
from hourglass.results.files import RUN_FILE
from hourglass.results.frames import of
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording
from hourglass.scenario import Scenario

from .accounts import check_counts

Simulate = Callable[..., Recording]

KEPT = 8
"""Recordings that a worker keeps open: their tables take memory."""


@pytest.fixture(scope="session")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """`simulate(source, "key=value", …, kernel=V, seed=N, fresh=False)`: a run of a built-in or of a mapping, whose
    counts agree (`accounts.py`). Of equal scenarios, engines and plans there is one run for all workers."""
    known: OrderedDict[str, Recording] = OrderedDict()
    own, shared = tmp_path_factory.mktemp("runs"), tmp_path_factory.getbasetemp() / "shared"
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "shared"
    numbers = itertools.count()

    def make(source: str | dict[str, Any], *overrides: str, fresh: bool = False, **settings: Any) -> Recording:
        if fresh:
            run = runner.run(scenario.load(source, overrides, **settings), own / f"{next(numbers)}")
            check_counts(run)
            return run
        name = json.dumps([source, overrides, settings], sort_keys=True)
        if name not in known:
            known[name] = _shared(scenario.load(source, overrides, **settings), shared)
            if len(known) > KEPT:
                known.popitem(last=False)
        known.move_to_end(name)
        return known[name]

    return make


def _shared(wanted: Scenario, folder: Path) -> Recording:
    """The run of a scenario, made by the worker that asks first; the others wait for it."""
    prepared = runner.prepare(wanted, engines.DEFAULT, runner.Silent())
    place = folder / prepared.key
    with locks.held(folder / f".{prepared.key}.lock"):
        if (place / RUN_FILE).is_file():
            return open_run(place)
        run = runner.make(prepared, place)
        try:
            check_counts(run)
        except AssertionError:
            shutil.rmtree(place)  # every test of the run is told
            raise
    return run


def counters(run: Recording, node: str, device: str = "eth0") -> dict[str, int]:
    """`ethtool -S` of a NIC at the end of a run."""
    rows = run.ethtool.filter((run.ethtool["node"] == node) & (run.ethtool["device"] == device))
    return dict(zip(rows["name"], rows["value"], strict=True))


def digests(run: Recording) -> dict[str, int]:
    """What each NIC sent and when, as one number per NIC."""
    rows = run.ethtool.filter(run.ethtool["name"] == "tx_digest")
    return {f"{node}:{device}": value for node, device, value in rows.select("node", "device", "value").rows()}


def check_accounts(run: Recording, packets: int) -> None:
    """The layers of each packet add up to the ns, and next to none is on its way for ever. `packets`: there are more
    than so many."""
    # only what a receiver's socket held unread when it closed has no end
    assert run.balance["in_flight"].sum() < 200
    each = run.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum"), (pl.col("end_ns") - pl.col("t_ns")).first().alias("whole")
    )
    assert each.height > packets
    assert each.filter(pl.col("sum") != pl.col("whole")).is_empty()
    assert run.packets.select(pl.min_horizontal(LAYER_COLUMNS).min()).item() >= 0


def both_ways(run: Recording) -> pl.DataFrame:
    """Of each answered ping: its round trip, and the sum of its layers there and back."""
    layers = run.packets.filter(of(*run.pings))
    whole = pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum")
    sums = layers.group_by("stream", pl.col("packet").alias("seq")).agg(whole)
    return run.ping_rows.filter(pl.col("rtt_ns").is_not_null()).join(sums, on=["stream", "seq"])


def line(rate: str = "1gbit", delay: str = "0ns", nodes: int = 3, **link: Any) -> dict[str, Any]:
    """A scenario: client - router - … - server in a line of equal cables, no shaper, no load."""
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
