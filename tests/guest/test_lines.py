# SPDX-License-Identifier: Apache-2.0
"""What the agent sets up by itself (`agent/src/lines.rs`) is what the guest's tools would have set up: lines with two
spaces between their words are not those that it knows."""

import re
from pathlib import Path
from typing import Any

import pytest

import hourglass.plan as plans
from hourglass import runner
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan import BatchStep, Plan
from hourglass.scenario import Scenario, load

from .conftest import line

pytestmark = pytest.mark.guest

QDISCS = ("cake", "codel", "fq", "fq_codel", "fq_pie", "pfifo", "sfq")
ASKED = {"ip": ("link show", "addr show", "route show table all"), "tc": ("qdisc show",)}
CHANCE = re.compile(r"fe80:|ff00:|^hourglass: |^ *[0-9.]+\] |valid_lft")
"""Lines of the kernel and the agent; addresses that it makes of itself while nobody waits."""


def shown(scenario: Scenario, space: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the tools say of each node when the plan's lines were carried out, with so much between their words."""
    build = plans.build

    def asking(scenario: Scenario, able: Capabilities) -> Plan:
        plan = build(scenario, able)
        setup: list[Any] = [
            step.model_copy(update={"lines": [text.replace(" ", space) for text in step.lines]})
            if isinstance(step, BatchStep)
            else step
            for step in plan.setup
        ]
        for node in plan.nodes:
            setup += [BatchStep(do="ip", node=node, lines=list(ASKED["ip"]), origin=None),
                      BatchStep(do="tc", node=node, lines=list(ASKED["tc"]), origin=None)]  # fmt: skip
        return plan.model_copy(update={"setup": setup})

    with monkeypatch.context() as patch:
        patch.setattr(plans, "build", asking)
        runner.run(scenario, out=place)
    return [one for one in (place / "console.log").read_text().splitlines() if not CHANCE.search(one)]


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_the_agent_sets_up_is_what_the_tools_do(
    kernel: str, ip: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = line(nodes=5, mtu=1400) | {"test": {"name": "ping", "length": 1}}
    base["testbed"]["ip"] = ip
    ends = [end.split(":") for link in base["testbed"]["link"] for end in link["ends"]]
    stack: dict[str, Any] = {node: {"device": {}} for node, _ in ends}
    for (node, device), kind in zip(ends, QDISCS, strict=False):
        stack[node]["device"][device] = {"qdisc": kind}
    scenario = load(base | {"stack": stack}, kernel=kernel)
    own = shown(scenario, " ", tmp_path / "own", monkeypatch)
    assert {kind for kind in QDISCS if any(f"qdisc {kind} 10: " in text for text in own)} == set(QDISCS)
    assert sum("via" in text and "proto" not in text for text in own) >= len(ends)
    assert own == shown(scenario, "  ", tmp_path / "tools", monkeypatch)
