# SPDX-License-Identifier: Apache-2.0
"""The probe forgets a TCP connection when its sockets end: the next one on the same ports is a new connection.

No scenario follows short connections, so this test changes a plan. Fetches come from a port by which the probe follows
a flow of another node. Their client has only `PORTS` ports.
"""

from pathlib import Path

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import FetchStream, FlowStream, Plan
from hourglass.scenario import Scenario

from .conftest import KERNELS, line

pytestmark = pytest.mark.guest

PORTS = 201
EVERY_S = 1.0
LENGTH_S = 500
SIZE = "20KB"
SEGMENTS = 14
INITIAL_WINDOW = 10
"""The kernel tries half of the ports first, so each is reused after two to four minutes. Then the initial sequence
number, which grows by 2^24 a second, is as often below the old one as above it."""


BUILD = runner.plans.build


def followed(scenario_: Scenario, able: Capabilities) -> Plan:
    """Return a plan with a very slow flow from the server to the client, and fetches from the same port of the
    router."""
    plan = BUILD(scenario_, able)
    flow = next(stream for stream in plan.streams if isinstance(stream, FlowStream))
    fetch = next(stream for stream in plan.streams if isinstance(stream, FetchStream))
    ends = {"client": "server", "server": "client", "sender": "server"}
    flow = flow.model_copy(update={**ends, "address": "10.0.0.1", "pace_bps": 8000})
    fetch = fetch.model_copy(update={"id": 1, "server": "router1", "address": "10.0.0.2", "port": flow.port})
    path = plan.paths[0]
    paths = [
        path.model_copy(update={"client": "client", "server": "router1"}),
        path.model_copy(update={"client": "server", "server": "client"}),
    ]
    return plan.model_copy(update={"streams": [flow, fetch], "paths": paths})


@pytest.mark.parametrize("kernel", KERNELS)
def test_data_on_a_reused_port_belong_to_the_new_connection(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch takes 7 ms. Compared with the writes of the last connection on the same ports, data would have waits of
    minutes, or count as retransmissions."""
    monkeypatch.setattr(runner.plans, "build", followed)
    ports = {"client": f"40000 {40000 + PORTS - 1}", "server": "50000 50100"}
    stack = {node: {"sysctl": {"net.ipv4.ip_local_port_range": port_range}} for node, port_range in ports.items()}
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
