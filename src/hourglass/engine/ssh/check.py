# SPDX-License-Identifier: Apache-2.0
"""What a machine lacks for its part of a plan: asked in one connection, before anything is copied there or changed.

Each problem is one line that names the node, the machine and what helps.
"""

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hourglass.contract.plan import HostStep, Plan
from hourglass.engine import agent
from hourglass.engine.ssh.channel import FULL_PATH, argv
from hourglass.errors import HourglassError, InputError, MissingError

PATIENCE_S = 60.0
TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool", "dd": "coreutils", "mktemp": "coreutils"}
GOOD_SOURCES = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "xen")
"""Clock sources that are read in some ns and are even; others cost microseconds or jump."""

ASK = f"""{FULL_PATH}
echo "hourglass machine $(uname -m)"
echo "hourglass system $(uname -s)"
echo "hourglass release $(uname -r)"
echo "hourglass user $(id -u)"
if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then echo "hourglass sudo yes"; fi
for tool in {" ".join(TOOLS)}; do command -v "$tool" >/dev/null && echo "hourglass tool $tool"; done
echo "hourglass clocksource $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null)"
echo "hourglass forwarding6 $(cat /proc/sys/net/ipv6/conf/all/forwarding 2>/dev/null)"
set -- $SSH_CONNECTION
echo "hourglass control $(ip -o addr show 2>/dev/null | grep -F " $3/" | awk '{{print $2; exit}}')"
for file in /sys/class/net/*; do echo "hourglass device $(basename "$file")"; done
f=$(mktemp "${{TMPDIR:-/tmp}}/hourglass-check.XXXXXX") && chmod 700 "$f" && printf '#!/bin/sh\\n' >"$f" && "$f" \\
  && echo "hourglass room yes"
rm -f "$f"
"""


@dataclass(frozen=True)
class Found:
    """A machine as it was found. `answers`: what it said, by what it was asked, in its order."""

    host: HostStep
    answers: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def one(self, name: str) -> str:
        """The answer that there is one of, "" without."""
        return self.answers.get(name, [""])[0]

    @property
    def machine(self) -> str:
        return self.one("machine")

    @property
    def release(self) -> str:
        return self.one("release")


def every(plan: Plan, hosts: Sequence[HostStep]) -> list[Found]:
    """All machines, if they can do their parts. Raises MissingError or InputError with all that is in the way."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        found = list(pool.map(look, hosts))
    problems = [problem for one in found for problem in in_the_way(plan, one)]
    if not problems:
        for one in found:
            one.warnings.extend(doubts(one))
        return found
    first = problems[0]
    if isinstance(first, InputError):
        raise InputError(
            first.key, first.value, first.allowed, [one for one in problems[1:] if isinstance(one, InputError)]
        )
    if len(problems) == 1:
        raise first
    raise HourglassError("\n".join(str(one) for one in problems))


def look(host: HostStep) -> Found:
    """Asks a machine. Raises MissingError when ssh does not get there."""
    remedy = f"make `ssh {host.destination} true` work without a password: a key, ssh-agent, ~/.ssh/config"
    try:
        done = subprocess.run(
            argv(host.destination, ASK), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MissingError(f"{_name(host)} did not answer within {PATIENCE_S:g} s", remedy) from None
    answers: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        match line.split(" ", 2):
            case ["hourglass", name, *rest]:
                answers.setdefault(name, []).append(rest[0].strip() if rest else "")
    if "machine" not in answers:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        what = f"ssh does not reach {_name(host)}: {said[-1].strip() if said else f'exit status {done.returncode}'}"
        raise MissingError(what, remedy)
    return Found(host, answers)


def in_the_way(plan: Plan, found: Found) -> Iterator[HourglassError]:
    """Why a machine cannot do its part."""
    host, name = found.host, _name(found.host)
    if found.one("system") != "Linux":
        yield MissingError(f"{name} runs {found.one('system')}", "a machine with Linux")
        return
    try:
        agent.target(found.machine)
    except MissingError as problem:
        yield MissingError(f"{name}: {problem.what}", problem.remedy)
    if found.one("user") != "0" and found.one("sudo") != "yes":
        yield MissingError(f"{name}: the user there is not root", "root@… as `host`, or sudo without a password there")
    missing = [tool for tool in TOOLS if tool not in found.answers.get("tool", [])]
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        yield MissingError(
            f"{name} has no {', '.join(missing)}", f"ssh {host.destination} apt-get install -y {packages}"
        )
    if found.one("room") != "yes":
        yield MissingError(
            f"{name}: no program can be put into its /tmp", "set TMPDIR there to a folder without noexec"
        )
    there = found.answers.get("device", [])
    for device, interface in host.devices.items():
        if interface not in there:
            key = f"{(host.origin or '').removesuffix('.host')}.real.{device}"
            yield InputError(key, interface, f"{name} has no such interface; it has {', '.join(there)}")
    passes_on = [hop.node for path in plan.paths for hop in (*path.there[1:], *path.back[1:]) if ":" in hop.address]
    if host.node in passes_on and found.one("forwarding6") != "1":
        remedy = f"ssh {host.destination} sysctl -w net.ipv6.conf.all.forwarding=1"
        yield MissingError(f"{name} does not forward IPv6, and only its owner should say that it does", remedy)


def doubts(found: Found) -> Iterator[str]:
    """What does not keep a machine from its part, but should be known."""
    name = _name(found.host)
    if (source := found.one("clocksource")) not in GOOD_SOURCES:
        yield f"{name} keeps time by {source or 'an unknown clock source'}: times there may be off by microseconds"
    if (control := found.one("control").split("@")[0]) in found.host.devices.values():
        yield f"{name}: the control connection passes {control}, which the test uses, too"


def _name(host: HostStep) -> str:
    return f"{host.node} ({host.destination})"
