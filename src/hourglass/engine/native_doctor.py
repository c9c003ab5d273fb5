# SPDX-License-Identifier: Apache-2.0
"""What native runs can be on this machine: each privilege and each part of the kernel tried out, in namespaces that
vanish with the trial."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hourglass.engine import process, tree
from hourglass.engine.doctor import Check

_DEVICE = "hourglass0"
_ARGUMENTS = {
    "htb": "default 1",
    "tbf": "rate 1mbit burst 10k limit 10k",
    "red": "limit 400k min 30k max 90k avpkt 1000 burst 55",
    "choke": "limit 400 min 30 max 90",
    "ets": "bands 2",
    "netem": "delay 1ms",
}
"""What a qdisc does not do without."""
_BUILT_IN = ("pfifo", "bfifo", "pfifo_fast")
"""Those that every kernel with qdiscs has."""
UNSHARE = {"unshare": "util-linux"}
_MODULES = Path("/lib/modules")
_TSQ = Path("/proc/sys/net/ipv4/tcp_tsq_mode")


def trial(line: str) -> tuple[bool, str]:
    """Whether a shell line works in namespaces of its own, and the last that was said."""
    done = _run(line)
    words = done.stderr.strip().splitlines()
    return done.returncode == 0, words[-1] if words else ""


def _said(line: str) -> str:
    return _run(line).stderr


def _run(line: str) -> "subprocess.CompletedProcess[str]":
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    argv = ["unshare", *user, "--net", "--mount", "sh", "-c", line]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def checks(disciplines: Sequence[str], controls: Sequence[str]) -> list[Check]:
    """Tools, privilege, veth, these qdiscs and congestion controls, real interfaces, the patch's sysctls."""
    if packages := process.missing_tools(tree.TOOLS | UNSHARE):
        fix = f"apt-get install -y {' '.join(packages)}"
        return [Check("native runs", False, f"missing: {', '.join(packages)}", fix, needed=False)]
    right = privilege()
    if not right.ok:
        return [right]
    return [right, links(), qdiscs(disciplines), congestion_controls(controls), interfaces(), patch()]


def privilege() -> Check:
    """Whether namespaces can be made, as root or in a user namespace."""
    works, said = trial("true")
    if os.geteuid() == 0:
        remedy = "in a container: --cap-add SYS_ADMIN --cap-add NET_ADMIN, and a seccomp profile that allows unshare"
        return Check("native runs", works, "as root" if works else said, "" if works else remedy, needed=False)
    if works:
        return Check("native runs", True, "in a user namespace", needed=False)
    return Check("native runs", False, f"no user namespaces: {said}", _user_namespaces(), needed=False)


def _user_namespaces() -> str:
    """Which of the switches that forbid them is set."""
    for path, bad, command in (
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=1000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    ):  # fmt: skip
        file = Path(path)
        if file.is_file() and file.read_text("ascii").strip() == bad:
            return f"as root: {command}; or run it as root"
    return "run it as root"


def links() -> Check:
    """veth pairs."""
    works, said = trial(f"ip link add {_DEVICE} type veth peer name hourglass1")
    return Check("native links", works, "veth" if works else said, "" if works else "modprobe veth", needed=False)


def qdiscs(named: Sequence[str]) -> Check:
    """Which qdiscs of a scenario this kernel has; a shaper is HTB."""
    asked = [one for one in dict.fromkeys(("htb", *named)) if one not in _BUILT_IN]
    lines = [f"ip link add {_DEVICE} type veth peer name hourglass1"]
    for one in asked:
        add = f"tc qdisc replace dev {_DEVICE} root {one} {_ARGUMENTS.get(one, '')}"
        lines.append(f"{add} >/dev/null 2>&1 && echo {one} >&2; tc qdisc del dev {_DEVICE} root >/dev/null 2>&1")
    there = _said("; ".join([*lines, "true"])).split()
    return _has("native qdiscs", [*_BUILT_IN, *(one for one in asked if one in there)], asked, "sch_")


def congestion_controls(named: Sequence[str]) -> Check:
    """Which congestion controls this kernel has loaded."""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text("ascii").split()
    return _has("native ccs", there, named, "tcp_")


def _has(name: str, there: Sequence[str], asked: Sequence[str], module: str) -> Check:
    """What of the kernel is there, and how the rest may be had."""
    lacking = [one for one in asked if one not in there]
    if not lacking:
        return Check(name, True, ", ".join(there))
    modules = {path.name.split(".")[0] for path in (_MODULES / os.uname().release).rglob("*.ko*")}
    loadable = [module + one for one in lacking if module + one in modules]
    fix = (
        f"as root: modprobe -a {' '.join(loadable)}"
        if loadable
        else "a kernel that has them: it has no modules of them"
    )
    return Check(name, False, f"here are {', '.join(there)}; there is no {', '.join(lacking)}", fix, needed=False)


def interfaces() -> Check:
    """Whether interfaces of the machine can be moved into nodes: by root of the machine alone."""
    outer = Path("/proc/self/uid_map").read_text("ascii").split()
    whole = outer[:2] == ["0", "0"] and int(outer[2]) > 1 << 31
    able = os.geteuid() == 0 and whole
    detail = "can play devices (testbed.node.real)" if able else "only root of the machine can move them"
    return Check("native interfaces", able, detail, "" if able else "run it as root", needed=False)


def patch() -> Check:
    """The sysctls of our patch, by which a kernel does what `stack.tsq` and `stack.gso` say."""
    there = _TSQ.exists()
    detail = "net.ipv4.tcp_tsq_mode and its kin" if there else "no net.ipv4.tcp_tsq_mode: stack.tsq and stack.gso fail"
    remedy = "" if there else "a kernel built with: hourglass kernel patch"
    return Check("native TSQ", there, detail, remedy, needed=False)
