# SPDX-License-Identifier: Apache-2.0
"""The probe forgets a TCP connection when its sockets are gone: the next on the same ports is another.

No scenario follows connections that come and go, so a plan is changed: what is fetched comes from the port that a flow
elsewhere is followed by, and its client has only so many ports.
"""

from pathlib import Path

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Fetches, Flow, Plan
from hourglass.scenario import Scenario

from .conftest import KERNELS, line

pytestmark = pytest.mark.guest

PORTS = 201
EVERY_S = 1.0
LENGTH_S = 500
SIZE = "20KB"
SEGMENTS = 14
INITIAL_WINDOW = 10
"""Half of the ports are tried first, so that each is used again after two to four minutes: then the initial sequence
number, which has grown by 2^24 a second, is as often below the old one as above it."""


BUILD = runner.plans.build


def followed(scenario_: Scenario, able: Capabilities) -> Plan:
    """A flow of next to nothing from the server to the client; fetches of the client's from the router's same port."""
    plan = BUILD(scenario_, able)
    flow = next(stream for stream in plan.streams if isinstance(stream, Flow))
    fetch = next(stream for stream in plan.streams if isinstance(stream, Fetches))
    ends = {"client": "server", "server": "client", "sender": "server"}
    flow = flow.model_copy(update={**ends, "address": "10.0.0.1", "pace_bps": 8000})
    fetch = fetch.model_copy(update={"id": 1, "server": "router1", "address": "10.0.0.2", "port": flow.port})
    there = plan.paths[0]
    paths = [
        there.model_copy(update={"client": "client", "server": "router1"}),
        there.model_copy(update={"client": "server", "server": "client"}),
    ]
    return plan.model_copy(update={"streams": [flow, fetch], "paths": paths})


@pytest.mark.parametrize("kernel", KERNELS)
def test_data_on_a_port_used_before_are_not_those_of_before(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch takes 7 ms. Before, data of a connection were held against what the last one on its ports had written:
    they had waited minutes for it, together 14,870 s, or were taken for data sent again."""
    monkeypatch.setattr(runner.plans, "build", followed)
    ports = {"client": f"40000 {40000 + PORTS - 1}", "server": "50000 50100"}
    stack = {node: {"sysctl": {"net.ipv4.ip_local_port_range": told}} for node, told in ports.items()}
    web = {"http_workers": 1, "http_sizes": [SIZE], "http_interval": EVERY_S}
    test = {"name": "http-1up", "length": LENGTH_S, "delay": 0, **web}
    base = {**line("100mbit", "1ms"), "stack": stack, "test": test, "measure": {"tcp": "1s", "packets": "all"}}
    run = runner.run(scenario.load(base, kernel=kernel), tmp_path / "run")
    assert run.fetch_rows.height > 2 * PORTS
    data = run.packets.filter((pl.col("way") == "down") & (pl.col("visit") == 0) & (pl.col("node") == "router1"))
    segments = data.filter(pl.col("bytes") > 0)
    assert segments.height == run.fetch_rows.height * SEGMENTS
    assert (segments["end_ns"] - segments["t_ns"]).max() < 10_000_000
    assert segments["push_ns"].sum() == segments["recovery_ns"].sum() == 0
    waits = segments.filter(pl.col("cwnd_ns") > 0).height
    assert waits == run.fetch_rows.height * (SEGMENTS - INITIAL_WINDOW)
