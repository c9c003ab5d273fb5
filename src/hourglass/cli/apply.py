# SPDX-License-Identifier: Apache-2.0
"""`hourglass show SCENARIO --apply NODE`: the lines of tc, sysctl … that give a real machine the node's stack.

They are the plan's own. What belongs to the testbed (addresses, modelled hardware) is left out; what only a kernel with
our patch knows is said to be so.
"""

from hourglass import plan as plans
from hourglass.cli import output
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError
from hourglass.plan.qdiscs import DEFAULT
from hourglass.scenario import Scenario

SYSCTLS = "/proc/sys/"
OURS = ("net.ipv4.tcp_tsq_", "net.ipv4.tcp_gso_usecs")
"""Sysctls of kernel/hooks/tsq.toml: no distributed kernel has them."""
TESTBED = ("testbed",)
"""Origins that speak of the testbed and not of the stack, but for shapers."""
COMMENT = "# only with the patch of `hourglass kernel patch`: "
ALL = "all"


def show_apply(scenario: Scenario, node: str) -> None:
    """Prints the lines for one node, or the script for all."""
    names = [one.name for one in scenario.testbed.node]
    if node not in names:
        if node == ALL:
            from hourglass.cli.apply_all import script

            print(script(scenario), end="")
            return
        raise InputError("--apply", node, f"no such node. Nodes: {', '.join(names)}; {ALL}: a script for all of them")
    output.show("\n".join(lines(scenario, node)), whole_lines=True)


def lines(scenario: Scenario, node: str) -> list[str]:
    """The lines, in the plan's order; devices have the scenario's names. A qdisc that the guest's kernel gives a device
    by itself comes first: a machine's default may be another."""
    setup = plans.build(scenario, Virtual.capabilities).setup
    told = [line.split() for step in setup if step.node == node and step.do in ("ip", "tc") for line in step.lines]
    nics = [words[3] for words in told if words[:3] == ["link", "add", "dev"] and words[-1] == "wire"]
    chosen = {words[3] for words in told if words[0] == "qdisc" and words[4] == "root"}
    found = [f"tc qdisc replace dev {name} root {DEFAULT}" for name in nics if name not in chosen]
    for step in setup:
        origin = step.origin or ""
        if step.node != node or (origin.split(".")[0] in TESTBED and not origin.startswith("testbed.shaper")):
            continue
        if step.do == "tc":
            found += [f"tc {_again(line)}" for line in step.lines]
        elif step.do == "ip":
            found += [f"ip {line}" for line in step.lines]
        elif step.do == "ethtool":
            found.append(f"ethtool {' '.join(step.args)}")
        elif step.do == "write" and step.path.startswith(SYSCTLS):
            name = step.path.removeprefix(SYSCTLS).replace("/", ".")
            line = f"sysctl -w {name}={step.value!r}" if " " in step.value else f"sysctl -w {name}={step.value}"
            found.append(f"{COMMENT}{line}" if name.startswith(OURS) else line)
    return found


def _again(line: str) -> str:
    """The line as one that may find the machine's own qdisc there; an ingress is the first of its device."""
    return line if "ffff:" in line else line.replace(" add ", " replace ", 1)
