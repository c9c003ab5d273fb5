# SPDX-License-Identifier: Apache-2.0
"""Test what native runs can do on this machine: each privilege and each kernel feature, in temporary namespaces."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hourglass.engine import host_tools, native
from hourglass.engine.doctor import MachineCheck

_DEVICE = "hourglass0"
_ARGUMENTS = {
    "htb": "default 1",
    "tbf": "rate 1mbit burst 10k limit 10k",
    "red": "limit 400k min 30k max 90k avpkt 1000 burst 55",
    "choke": "limit 400 min 30 max 90",
    "ets": "bands 2",
    "netem": "delay 1ms",
}
"""Arguments that a qdisc requires."""
_BUILT_IN = ("pfifo", "bfifo", "pfifo_fast")
"""Qdiscs of every kernel that has qdiscs."""
_MODULES = Path("/lib/modules")
_TSQ = Path("/proc/sys/net/ipv4/tcp_tsq_mode")


def trial(line: str) -> tuple[bool, str]:
    """Return whether a shell line works in new namespaces, and its last message."""
    done = _run(line)
    messages = done.stderr.strip().splitlines()
    return done.returncode == 0, messages[-1] if messages else ""


def _messages(line: str) -> str:
    return _run(line).stderr


def _run(line: str) -> "subprocess.CompletedProcess[str]":
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    argv = ["unshare", *user, "--net", "--mount", "sh", "-c", line]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def checks(disciplines: Sequence[str], controls: Sequence[str]) -> list[MachineCheck]:
    """Check the tools, the privilege, veth, these qdiscs and congestion controls, real interfaces, the patch's
    sysctls."""
    if sys.platform != "linux":
        return []
    if not Path("/proc/sys").is_dir():
        return [MachineCheck("native runs", False, "/proc is not mounted", "mount -t proc proc /proc", needed=False)]
    if (lacking := host_tools.lacking("native runs", native.TOOLS)) is not None:
        return [MachineCheck.failed("native runs", lacking, needed=False)]
    permission = privilege()
    if not permission.ok:
        return [permission]
    return [permission, links(), qdiscs(disciplines), congestion_controls(controls), interfaces(), patch()]


def privilege() -> MachineCheck:
    """Check that namespaces can be created, as root or in a user namespace."""
    works, message = trial("true")
    if os.geteuid() == 0:
        remedy = "in a container: --cap-add SYS_ADMIN --cap-add NET_ADMIN, and a seccomp profile that allows unshare"
        return MachineCheck(
            "native runs", works, "as root" if works else message, "" if works else remedy, needed=False
        )
    if works:
        return MachineCheck("native runs", True, "in a user namespace", needed=False)
    return MachineCheck("native runs", False, f"no user namespaces: {message}", _user_namespaces(), needed=False)


def _user_namespaces() -> str:
    """Return the remedy for the setting that forbids user namespaces."""
    for path, bad, command in (
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=1000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    ):  # fmt: skip
        file = Path(path)
        if file.is_file() and file.read_text("ascii").strip() == bad:
            return f"as root: {command}; or run Hourglass as root"
    return "run it as root"


def links() -> MachineCheck:
    """Check for veth pairs."""
    works, message = trial(f"ip link add {_DEVICE} type veth peer name hourglass1")
    return MachineCheck(
        "native links", works, "veth" if works else message, "" if works else "modprobe veth", needed=False
    )


def qdiscs(scenario_qdiscs: Sequence[str]) -> MachineCheck:
    """Check which qdiscs of a scenario this kernel has. A shaper needs HTB."""
    required = [kind for kind in dict.fromkeys(("htb", *scenario_qdiscs)) if kind not in _BUILT_IN]
    lines = [f"ip link add {_DEVICE} type veth peer name hourglass1"]
    for kind in required:
        add = f"tc qdisc replace dev {_DEVICE} root {kind} {_ARGUMENTS.get(kind, '')}"
        lines.append(f"{add} >/dev/null 2>&1 && echo {kind} >&2; tc qdisc del dev {_DEVICE} root >/dev/null 2>&1")
    present = _messages("; ".join([*lines, "true"])).split()
    return _has("native qdiscs", [*_BUILT_IN, *(kind for kind in required if kind in present)], required, "sch_")


def congestion_controls(required: Sequence[str]) -> MachineCheck:
    """Check which congestion controls this kernel has loaded."""
    present = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text("ascii").split()
    return _has("native ccs", present, required, "tcp_")


def _has(name: str, present: Sequence[str], required: Sequence[str], module: str) -> MachineCheck:
    """Return the check that the kernel has all required features, and how to load the missing ones."""
    missing = [feature for feature in required if feature not in present]
    if not missing:
        return MachineCheck(name, True, ", ".join(present))
    modules = {path.name.split(".")[0] for path in (_MODULES / os.uname().release).rglob("*.ko*")}
    loadable = [module + feature for feature in missing if module + feature in modules]
    fix = (
        f"as root: modprobe -a {' '.join(loadable)}"
        if loadable
        else "use another kernel: this one has no modules of them"
    )
    return MachineCheck(name, False, f"has {', '.join(present)}; lacks {', '.join(missing)}", fix, needed=False)


def interfaces() -> MachineCheck:
    """Check that interfaces of the machine can be moved into nodes: only the machine's root can do that."""
    outer = Path("/proc/self/uid_map").read_text("ascii").split()
    is_machine_root = outer[:2] == ["0", "0"] and int(outer[2]) > 1 << 31
    is_able = os.geteuid() == 0 and is_machine_root
    detail = "can be devices of nodes (testbed.node.real)" if is_able else "only root of the machine can move them"
    return MachineCheck("native interfaces", is_able, detail, "" if is_able else "run it as root", needed=False)


def patch() -> MachineCheck:
    """Check for the sysctls of the patch that implements `stack.tsq` and `stack.gso`."""
    is_present = _TSQ.exists()
    detail = (
        "net.ipv4.tcp_tsq_mode and related sysctls"
        if is_present
        else "no net.ipv4.tcp_tsq_mode: stack.tsq and stack.gso fail"
    )
    remedy = "" if is_present else "build a kernel with: hourglass kernel patch"
    return MachineCheck("native TSQ", is_present, detail, remedy, needed=False)
