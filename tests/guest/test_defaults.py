# SPDX-License-Identifier: Apache-2.0
"""The driver's defaults of a NIC are those of the scenario, since a plan omits them."""

import re
from pathlib import Path

import pytest

import hourglass.plan as plans
from hourglass import runner
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan import EthtoolStep, Plan
from hourglass.scenario import Link, Scenario, load, nics

pytestmark = pytest.mark.guest

PATTERNS = {
    "tx_ring": r"Current hardware settings:(?s:.*?)\nTX:\s+(\d+)",
    "rx_ring": r"Current hardware settings:(?s:.*?)\nRX:\s+(\d+)",
    "rx_usecs": r"^rx-usecs:\s+(\d+)",
    "rx_frames": r"^rx-frames:\s+(\d+)",
    "tx_usecs": r"^tx-usecs:\s+(\d+)",
    "tx_frames": r"^tx-frames:\s+(\d+)",
    "tso": r"^tcp-segmentation-offload: (\w+)",
    "gso": r"^generic-segmentation-offload: (\w+)",
    "gro": r"^generic-receive-offload: (\w+)",
    "checksum": r"^tx-checksumming: (\w+)",
    "rate": r"Speed: (\d+)Mb/s",
}
"""The pattern of ethtool's output for each key of a link."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_driver_begins_with_the_declared_defaults(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = plans.build

    def with_queries(scenario: Scenario, able: Capabilities) -> Plan:
        plan = build(scenario, able)
        options: list[list[str]] = [["-g"], ["-c"], ["-k"], []]
        queries = [EthtoolStep(do="ethtool", node="client", args=[*option, "eth0"], origin=None) for option in options]
        return plan.model_copy(update={"setup": [*plan.setup, *queries]})

    monkeypatch.setattr(plans, "build", with_queries)
    folder = tmp_path / "run"
    runner.run(load("LR1000M", ["test.name=ping", "test.length=1"], kernel=kernel), out=folder)
    console = (folder / "console.log").read_text()
    values = {key: match[1] for key, regex in PATTERNS.items() if (match := re.search(regex, console, re.MULTILINE))}
    switches = {True: "on", False: "off"}
    profile = nics.defaults(nics.DEFAULT, nics.STANDARD_MTU, {})
    defaults = {key: profile.get(key, Link.model_fields[key].default) for key in PATTERNS}
    expected = {key: switches[value] if isinstance(value, bool) else str(value) for key, value in defaults.items()}
    assert values == expected | {"rate": "1000"}
