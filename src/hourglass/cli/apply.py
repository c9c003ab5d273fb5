# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass show SCENARIO --apply NODE`: the tc, sysctl … lines that give a real machine the node's stack.

They are steps of the plan. Steps of the testbed (addresses, modelled hardware) are left out. Lines that need the patch
for real kernels are marked.
"""

from collections.abc import Iterator

from hourglass import plan as plans
from hourglass.contract.plan import DeviceStep, EthtoolStep, EventStep, QdiscStep, ShaperStep, Step, ToolStep, WriteStep
from hourglass.engine.virtual import Virtual
from hourglass.plan.qdiscs import default_step
from hourglass.scenario import Scenario

SYSCTLS = "/proc/sys/"
SYSFS = "/sys/class/net/"
PATCHED_SYSCTLS = ("/proc/sys/net/ipv4/tcp_tsq_", "/proc/sys/net/ipv4/tcp_gso_usecs")
"""Sysctls of kernel/hooks/tsq.toml: no distributed kernel has them."""
TCP = "/proc/sys/net/ipv4/tcp_"
"""Sysctls of connections: a router or switch has none, so its lines have only those that the scenario sets for it."""
TESTBED = ("testbed",)
"""Origins that belong to the testbed, not to the stack, except shapers."""
COMMENT = "# only with the patch of `hourglass kernel patch`: "


def lines(scenario: Scenario, node: str) -> list[str]:
    """Return the lines in the plan's order, with the scenario's names of devices."""
    return [line for step in steps(scenario, node) for line in command_lines(step)]


def added_lines(before: Scenario, after: Scenario) -> dict[str, list[str]]:
    """Return by node the lines that a scenario adds to those of another one, of the nodes with any."""
    added = {}
    for node in before.testbed.node:
        earlier = lines(before, node.name)
        if new := [line for line in lines(after, node.name) if line not in earlier]:
            added[node.name] = new
    return added


def steps(scenario: Scenario, node: str) -> Iterator[Step]:
    """Yield the plan's steps of the node's stack. They replace qdiscs that the machine has. The default qdisc of the
    guest's kernel comes first, because a machine's default may differ."""
    setup = [step for step in plans.build(scenario, Virtual.capabilities).setup if step.node == node]
    nics = [step for step in setup if isinstance(step, DeviceStep) and step.kind == "wire"]
    shaped = {step.device for step in setup if isinstance(step, ShaperStep)}
    configured = shaped | {step.device for step in setup if isinstance(step, QdiscStep) and step.parent is None}
    for nic in nics:
        if nic.device not in configured:
            yield default_step(node, nic)
    passes_on = any(item.name == node and item.role != "host" for item in scenario.testbed.node)
    for step in setup:
        origin = step.origin or ""
        if origin.split(".")[0] in TESTBED and not origin.startswith("testbed.shaper"):
            continue
        if isinstance(step, QdiscStep | ShaperStep):
            yield step.model_copy(update={"act": "replace"})
        elif not isinstance(step, WriteStep) or not (
            passes_on and step.path.startswith(TCP) and not origin.startswith(f"stack.{node}.")
        ):
            yield step


def command_lines(step: Step | EventStep) -> list[str]:
    """Return the commands of a step; modelled hardware has none."""
    match step:
        case ToolStep():
            return [f"{step.tool} {line}" for line in step.lines]
        case EthtoolStep():
            return [f"ethtool {' '.join(step.args)}"]
        case WriteStep() if step.path.startswith(SYSCTLS):
            line = f"sysctl -w {sysctl(step)}={repr(step.value) if ' ' in step.value else step.value}"
            return [f"{COMMENT}{line}" if step.path.startswith(PATCHED_SYSCTLS) else line]
        case WriteStep() if step.path.startswith(SYSFS) and "/queues/" in step.path:
            return [f"echo {step.value} > {step.path}"]
    return []


def sysctl(step: WriteStep) -> str:
    """Return the name of a sysctl, in which a dot of a device's name is a slash."""
    return step.path.removeprefix(SYSCTLS).translate(str.maketrans("/.", "./"))
