# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass show SCENARIO --apply all`: a shell script that gives each host of a real testbed its node's
stack, and restores it.

The lines are those of `--apply NODE`. Before each line, the script stores the state that the line changes. A qdisc that
an administrator made is not replaced, because a shell cannot restore it: the script stops there and undoes its changes.
"""

import shlex
from collections.abc import Iterator

from hourglass.cli import output
from hourglass.cli.apply import COMMENT, SYSCTLS, command_lines, lines, steps, sysctl
from hourglass.contract.plan import (
    DeviceStep,
    EthtoolStep,
    EventStep,
    IngressStep,
    LinkStep,
    QdiscStep,
    ShaperStep,
    Step,
    WriteStep,
)
from hourglass.engine.ssh import split
from hourglass.errors import InputError, closest
from hourglass.scenario import Scenario

ALL = "all"

HEAD = """\
#!/bin/sh
# Configures the stacks of the hosts of the scenario {name}, and restores their earlier settings.
#   sh {file} apply NODE    on the host that is NODE ({nodes}), as root
#   sh {file} undo          restores the earlier settings; apply does so itself when a line fails
set -eu
STATE=${{HOURGLASS_STATE:-/run/hourglass-apply}}

later() {{ printf '%s\\n' "$1" >> "$STATE/undo"; }}

keep_sysctl() {{ value=$(sysctl -n "$1"); later "sysctl -qw '$1=$value'"; }}

keep_mtu() {{ mtu=$(cat "/sys/class/net/$1/mtu"); later "ip link set dev $1 mtu $mtu"; }}

# The root or ingress qdisc. When it is deleted, the kernel's default returns.
keep_qdisc() {{
  if tc qdisc show dev "$1" | grep " $2" | grep -qv " 0: "; then
    echo "$1 has a qdisc that Hourglass did not set: $(tc qdisc show dev "$1" | head -n 1)" >&2
    return 1
  fi
  later "! tc qdisc show dev $1 | grep ' $2' | grep -qv ' 0: ' || tc qdisc del dev $1 $2"
}}

keep_feature() {{
  case $2 in
    rx) long=rx-checksumming ;; tx) long=tx-checksumming ;; sg) long=scatter-gather ;;
    tso) long=tcp-segmentation-offload ;; gso) long=generic-segmentation-offload ;; *) long=generic-receive-offload ;;
  esac
  state=$(ethtool -k "$1" | awk -v name="$long:" '$1 == name {{ print $2 }}')
  later "ethtool -K $1 $2 $state"
}}

# The last line of that name: ethtool prints the limits first, then the current values.
keep_setting() {{
  value=$(ethtool "$2" "$1" | awk -v name="$4:" 'tolower($1) == name {{ found = $2 }} END {{ print found }}')
  [ -n "$value" ] || {{ echo "$1 has no $4" >&2; return 1; }}
  later "ethtool $3 $1 $4 $value"
}}

keep_absence() {{ later "! ip link show dev $1 > /dev/null 2>&1 || ip link del $1"; }}

begin() {{
  mkdir "$STATE" || {{ echo "something is applied: undo it first" >&2; exit 1; }}
  : > "$STATE/undo"
  trap give_back EXIT
}}

undo() {{
  [ -d "$STATE" ] || {{ echo "nothing is applied" >&2; return 0; }}
  failed=0
  sed -n '1!G;h;$p' "$STATE/undo" > "$STATE/order"
  while IFS= read -r line; do
    sh -c "$line" || {{ echo "could not be undone: $line" >&2; failed=1; }}
  done < "$STATE/order"
  rm -r "$STATE"
  return $failed
}}

give_back() {{ status=$?; if [ "$status" -ne 0 ]; then undo; fi; exit "$status"; }}
"""
FOOT = """\
case "${1-} ${2-}" in
  "undo ") undo ;;
__CASES__
  *) sed -n '2,4s/^# *//p' "$0" >&2; exit 2 ;;
esac
"""
APPLY = '  "apply {node}") begin; apply_{number} ;;'


def script(scenario: Scenario) -> str:
    """Return the script."""
    nodes = [node.name for node in scenario.testbed.node]
    parts = [HEAD.format(name=scenario.name, file="testbed.sh", nodes=", ".join(nodes))]
    for number, node in enumerate(nodes):
        body = [f"  {line}" for line in commands(scenario, node)]
        parts.append("\n".join([f"# {node}", f"apply_{number}() {{", *(body or ["  :"]), "}", ""]))
    cases = "\n".join(APPLY.format(node=node, number=number) for number, node in enumerate(nodes))
    return "\n".join([*parts, FOOT.replace("__CASES__", cases)])


def commands(scenario: Scenario, node: str) -> Iterator[str]:
    """Yield a node's lines with the names of its real interfaces, each after the commands that store the state it
    changes."""
    real = next(item.real for item in scenario.testbed.node if item.name == node)
    for step in steps(scenario, node):
        renamed = split.named(step, real)
        yield from map(shlex.join, _storing(renamed))
        yield from (shlex.join(shlex.split(line.removeprefix(COMMENT))) for line in command_lines(renamed))


def _storing(step: Step | EventStep) -> Iterator[list[str]]:
    """Yield the commands that store the state which a step changes."""
    match step:
        case WriteStep() if step.path.startswith(SYSCTLS):
            yield ["keep_sysctl", sysctl(step)]
        case DeviceStep():
            yield ["keep_absence", step.device]
        case LinkStep(mtu=int()):
            yield ["keep_mtu", step.device]
        case ShaperStep() | QdiscStep(parent=None):
            yield ["keep_qdisc", step.device, "root"]
        case IngressStep():
            yield ["keep_qdisc", step.device, "ingress"]
        case EthtoolStep(args=["-K", device, *features]):
            yield from (["keep_feature", device, setting] for setting in features[::2])
        case EthtoolStep(args=["-G" | "-C" as option, device, *settings]):
            yield from (["keep_setting", device, option.lower(), option, setting] for setting in settings[::2])


def show_apply(scenario: Scenario, node: str) -> None:
    """Print the lines for one node, or the script for all."""
    names = [item.name for item in scenario.testbed.node]
    if node not in names:
        if node == ALL:
            print(script(scenario), end="")
            return
        hint = f"{closest(node, names)}Nodes: {', '.join(names)}; {ALL}: a script for all of them"
        raise InputError("--apply", node, f"no such node. {hint}")
    output.show("\n".join(lines(scenario, node)), whole_lines=True)
