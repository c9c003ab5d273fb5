# SPDX-License-Identifier: Apache-2.0
"""`hourglass show SCENARIO --apply all`: a shell script that gives each host of a real testbed its node's stack, and
gives back what was there.

The lines are those of `--apply NODE`; before each stands what keeps what it changes. A qdisc that somebody made is not
replaced, since a shell cannot give it back: the script stops there, and undoes what it did.
"""

import shlex
from collections.abc import Iterator

from hourglass.cli.apply import COMMENT, lines
from hourglass.scenario import Scenario

HEAD = """\
#!/bin/sh
# Gives the hosts of the scenario {name} their stacks, and takes them back.
#   sh {file} apply NODE    on the host that is NODE ({nodes}), as root
#   sh {file} undo          gives back what was there; apply does so itself when a line fails
set -eu
STATE=${{HOURGLASS_STATE:-/run/hourglass-apply}}

later() {{ printf '%s\\n' "$1" >> "$STATE/undo"; }}

keep_sysctl() {{ value=$(sysctl -n "$1"); later "sysctl -qw '$1=$value'"; }}

keep_mtu() {{ mtu=$(cat "/sys/class/net/$1/mtu"); later "ip link set dev $1 mtu $mtu"; }}

# The root qdisc, or an ingress: the kernel's own comes back when what stands in its place goes.
keep_qdisc() {{
  if tc qdisc show dev "$1" | grep " $2" | grep -qv " 0: "; then
    echo "$1 has a qdisc of somebody's own: $(tc qdisc show dev "$1" | head -n 1)" >&2
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

# The last line of that name: ethtool says first what the device can, then what is set.
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
    """The script."""
    nodes = [node.name for node in scenario.testbed.node]
    parts = [HEAD.format(name=scenario.name, file="testbed.sh", nodes=", ".join(nodes))]
    for number, node in enumerate(nodes):
        body = [f"  {line}" for line in commands(scenario, node)]
        parts.append("\n".join([f"# {node}", f"apply_{number}() {{", *(body or ["  :"]), "}", ""]))
    cases = "\n".join(APPLY.format(node=node, number=number) for number, node in enumerate(nodes))
    return "\n".join([*parts, FOOT.replace("__CASES__", cases)])


def commands(scenario: Scenario, node: str) -> Iterator[str]:
    """A node's lines, each behind what keeps what it changes, with the names of its real interfaces."""
    real = next(one.real for one in scenario.testbed.node if one.name == node)
    for line in lines(scenario, node):
        words = [_real(word, real) for word in shlex.split(line.removeprefix(COMMENT))]
        yield from _keeping(words)
        yield shlex.join(words)


def _real(word: str, real: dict[str, str]) -> str:
    """A word with a device in it as its interface is called; in a sysctl's name a dot of the interface's is a slash."""
    if word in real:
        return real[word]
    name, equals, value = word.partition("=")
    parts = name.split(".")
    if parts[0] == "net" and any(part in real for part in parts):
        return ".".join(real.get(part, part).replace(".", "/") for part in parts) + equals + value
    return word


def _keeping(words: list[str]) -> Iterator[str]:
    """What keeps that which a line changes."""
    match words:
        case ["sysctl", "-w", setting]:
            yield shlex.join(["keep_sysctl", setting.partition("=")[0]])
        case ["ip", "link", "add", "dev" | "name", name, *_] | ["ip", "link", "add", name, *_]:
            yield shlex.join(["keep_absence", name])
        case ["ip", "link", "set", "dev", name, "mtu", _]:
            yield shlex.join(["keep_mtu", name])
        case ["tc", "qdisc", _, "dev", name, "root", *_]:
            yield shlex.join(["keep_qdisc", name, "root"])
        case ["tc", "qdisc", _, "dev", name, "handle", "ffff:", "ingress", *_]:
            yield shlex.join(["keep_qdisc", name, "ingress"])
        case ["ethtool", "-K", name, *features]:
            yield from (shlex.join(["keep_feature", name, one]) for one in features[::2])
        case ["ethtool", "-G" | "-C" as option, name, *settings]:
            shown = option.lower()
            yield from (shlex.join(["keep_setting", name, shown, option, one]) for one in settings[::2])
