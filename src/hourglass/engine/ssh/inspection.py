# SPDX-License-Identifier: Apache-2.0
"""Inspect a host before its part of a plan starts: one connection, which copies and changes nothing.

Each problem is one line that names the node, the host and the remedy."""

import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hourglass.builders import agent
from hourglass.contract.plan import HostStep, Plan
from hourglass.engine.ssh.channel import FULL_PATH, argv
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.host import process

PATIENCE_S = 60.0
ANSWER_MAX = 1 << 20
"""Bytes of a host's answers; a host that sends more is stopped at the time limit."""
TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool", "dd": "coreutils", "mktemp": "coreutils"}
GOOD_SOURCES = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "xen")
"""Clock sources that are read in a few ns and are even; others cost microseconds or jump."""

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
class Inspection:
    """The state of a host. `answers`: its answers by question, in order."""

    host: HostStep
    answers: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def first(self, name: str) -> str:
        """Return the first answer to a question, "" without one."""
        return self.answers.get(name, [""])[0]

    @property
    def machine(self) -> str:
        return self.first("machine")

    @property
    def release(self) -> str:
        return self.first("release")


def inspect_all(plan: Plan, hosts: Sequence[HostStep]) -> list[Inspection]:
    """Inspect all hosts. Raises MissingError or InputError with all problems."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        answers = list(pool.map(_inspection_or_problem, hosts))
    inspections = [answer for answer in answers if isinstance(answer, Inspection)]
    problems: list[HourglassError] = [answer for answer in answers if isinstance(answer, MissingError)]
    problems += [problem for inspection in inspections for problem in problems_of(plan, inspection)]
    if not problems:
        for inspection in inspections:
            inspection.warnings.extend(cautions(inspection))
        return inspections
    first = problems[0]
    if isinstance(first, InputError):
        raise InputError(
            first.key,
            first.value,
            first.allowed,
            [inspection for inspection in problems[1:] if isinstance(inspection, InputError)],
        )
    if len(problems) == 1:
        raise first
    raise HourglassError("\n".join(str(inspection) for inspection in problems))


def _inspection_or_problem(host: HostStep) -> Inspection | MissingError:
    try:
        return inspect(host)
    except MissingError as error:
        return error


def inspect(host: HostStep) -> Inspection:
    """Inspect a host. Raises MissingError if ssh does not reach it."""
    remedy = f"make `ssh {host.destination} true` work without a password: a key, ssh-agent, ~/.ssh/config"
    result = _run_bounded(argv(host.destination, ASK))
    if result is None:
        raise MissingError(f"{_name(host)} did not answer within {PATIENCE_S:g} s", remedy)
    answers: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        match line.split(" ", 2):
            case ["hourglass", name, *value]:
                answers.setdefault(name, []).append(value[0].strip() if value else "")
    if "machine" not in answers:
        complaints = [line for line in result.stderr.splitlines() if line.strip()]
        reason = complaints[-1].strip() if complaints else f"exit status {result.returncode}"
        problem = f"ssh does not reach {_name(host)}: {reason}"
        raise MissingError(problem, remedy)
    return Inspection(host, answers)


def _run_bounded(command: Sequence[str]) -> "subprocess.CompletedProcess[str] | None":
    """Run a command whose output may be hostile: at most `ANSWER_MAX` bytes are read. None: it exceeded
    `PATIENCE_S`."""
    with process.piped(command) as child, ThreadPoolExecutor(2) as pool:
        assert child.stdin is not None
        child.stdin.close()
        late = threading.Timer(PATIENCE_S, process.kill_group, (child, signal.SIGKILL))
        late.start()
        pipes = [pipe for pipe in (child.stdout, child.stderr) if pipe is not None]
        output, complaints = (
            data.decode(errors="replace") for data in pool.map(lambda pipe: pipe.read(ANSWER_MAX), pipes)
        )
        status = child.wait()
        in_time = late.is_alive()
        late.cancel()
    return subprocess.CompletedProcess(command, status, output, complaints) if in_time else None


def problems_of(plan: Plan, inspection: Inspection) -> Iterator[HourglassError]:
    """Yield the reasons why a host cannot run its part."""
    host, name = inspection.host, _name(inspection.host)
    if inspection.first("system") != "Linux":
        yield MissingError(f"{name} runs {inspection.first('system')}", "use a machine with Linux")
        return
    try:
        agent.target(inspection.machine)
    except MissingError as error:
        yield MissingError(f"{name}: {error.problem}", error.remedy)
    if inspection.first("user") != "0" and inspection.first("sudo") != "yes":
        yield MissingError(f"{name}: the user is not root", "use root@… as `host`, or allow sudo without a password")
    missing = [tool for tool in TOOLS if tool not in inspection.answers.get("tool", [])]
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        yield MissingError(
            f"{name} lacks {', '.join(missing)}", f"ssh {host.destination} apt-get install -y {packages}"
        )
    if inspection.first("room") != "yes":
        yield MissingError(
            f"{name}: programs in its /tmp cannot be executed", "set TMPDIR there to a folder without noexec"
        )
    interfaces = inspection.answers.get("device", [])
    for device, interface in host.devices.items():
        if interface not in interfaces:
            key = f"{(host.origin or '').removesuffix('.host')}.real.{device}"
            yield InputError(key, interface, f"{name} lacks this interface; it has {', '.join(interfaces)}")
    passes_on = [
        hop.node for path in plan.paths for hop in (*path.there[1:], *path.back[1:]) if ":" in str(hop.address)
    ]
    if host.node in passes_on and inspection.first("forwarding6") != "1":
        remedy = f"ssh {host.destination} sysctl -w net.ipv6.conf.all.forwarding=1"
        yield MissingError(f"{name} does not forward IPv6; its owner must enable that", remedy)


def cautions(inspection: Inspection) -> Iterator[str]:
    """Yield warnings about a host that can run its part."""
    name = _name(inspection.host)
    if (source := inspection.first("clocksource")) not in GOOD_SOURCES:
        yield f"{name} uses {source or 'an unknown clock source'} as clock source: its times may be off by microseconds"
    if (control := inspection.first("control").split("@")[0]) in inspection.host.devices.values():
        yield f"{name}: the control connection uses {control}, as the test does"


def _name(host: HostStep) -> str:
    return f"{host.node} ({host.destination})"
