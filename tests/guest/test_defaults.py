# SPDX-License-Identifier: Apache-2.0
"""What the scenario declares as a NIC's defaults is what the driver begins with: a plan leaves them out."""

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

SHOWN = {
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
"""Key of a link → what ethtool prints of it."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_driver_begins_with_the_declared_defaults(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = plans.build

    def asking(scenario: Scenario, able: Capabilities) -> Plan:
        plan = build(scenario, able)
        nothing: list[list[str]] = [["-g"], ["-c"], ["-k"], []]
        asked = [EthtoolStep(do="ethtool", node="client", args=[*one, "eth0"], origin=None) for one in nothing]
        return plan.model_copy(update={"setup": [*plan.setup, *asked]})

    monkeypatch.setattr(plans, "build", asking)
    place = tmp_path / "run"
    runner.run(load("LR1000M", ["test.name=ping", "test.length=1"], kernel=kernel), out=place)
    said = (place / "console.log").read_text()
    found = {key: match[1] for key, regex in SHOWN.items() if (match := re.search(regex, said, re.MULTILINE))}
    words = {True: "on", False: "off"}
    profile = nics.defaults(nics.DEFAULT, nics.STANDARD_MTU, {})
    defaults = {key: profile.get(key, Link.model_fields[key].default) for key in SHOWN}
    expected = {key: words[one] if isinstance(one, bool) else str(one) for key, one in defaults.items()}
    assert found == expected | {"rate": "1000"}
