# SPDX-License-Identifier: Apache-2.0
"""Compare the agent's own set-up (`agent/src/route_steps.rs`) with that of the guest's tools.

The tools carry out lines."""

import re
from pathlib import Path
from typing import Any

import pytest

import hourglass.plan as plans
from hourglass import runner
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan import BatchStep, Plan, ToolStep
from hourglass.scenario import Scenario, load

from .conftest import line

pytestmark = pytest.mark.guest

QDISCS = ("cake", "codel", "fq", "fq_codel", "fq_pie", "pfifo", "sfq")
QUERIES = {"ip": ("link show", "addr show", "route show table all"), "tc": ("qdisc show",)}
CHANCE = re.compile(r"fe80:|ff00:|^hourglass: |^ *[0-9.]+\] |valid_lft")
"""Lines of the kernel and the agent, and addresses that the kernel creates at any time."""


def state_of_nodes(scenario: Scenario, lines: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tools' output for each node after the set-up. `lines`: the steps of tools become lines."""
    build = plans.build

    def with_queries(scenario: Scenario, able: Capabilities) -> Plan:
        plan = build(scenario, able)
        setup: list[Any] = [
            BatchStep(do=step.tool, node=step.node, lines=step.lines, origin=step.origin)
            if lines and isinstance(step, ToolStep)
            else step
            for step in plan.setup
        ]
        for node in plan.nodes:
            setup += [BatchStep(do="ip", node=node, lines=list(QUERIES["ip"]), origin=None),
                      BatchStep(do="tc", node=node, lines=list(QUERIES["tc"]), origin=None)]  # fmt: skip
        return plan.model_copy(update={"setup": setup})

    with monkeypatch.context() as patch:
        patch.setattr(plans, "build", with_queries)
        runner.run(scenario, out=folder)
    return [text for text in (folder / "console.log").read_text().splitlines() if not CHANCE.search(text)]


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_agent_sets_up_the_same_as_the_tools(
    kernel: str, ip: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = line(nodes=5, mtu=1400) | {"test": {"name": "ping", "length": 1}}
    base["testbed"]["ip"] = ip
    ends = [end.split(":") for link in base["testbed"]["link"] for end in link["ends"]]
    stack: dict[str, Any] = {node: {"device": {}} for node, _ in ends}
    for (node, device), kind in zip(ends, QDISCS, strict=False):
        stack[node]["device"][device] = {"qdisc": kind}
    scenario = load(base | {"stack": stack}, kernel=kernel)
    by_agent = state_of_nodes(scenario, False, tmp_path / "own", monkeypatch)
    assert {kind for kind in QDISCS if any(f"qdisc {kind} 10: " in text for text in by_agent)} == set(QDISCS)
    assert sum("via" in text and "proto" not in text for text in by_agent) >= len(stack)
    assert by_agent == state_of_nodes(scenario, True, tmp_path / "tools", monkeypatch)
