# SPDX-License-Identifier: Apache-2.0
"""Three machines with sshd: namespaces of network, mounts, processes and names, connected by veth pairs.

    client (c0) ---- (r0) router (r1) ---- (s0) server

Their sshd is Debian's. A pipe connects it with ssh (`sshd -i`), so that the network of this machine does not change.
Each has a separate folder for temporary files.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hourglass.engine import host_tools
from tests.clocks import until
from tests.tools import TOOLS

SSHD = "/usr/sbin/sshd"
QUIET = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
FIRST = 'import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print("up", flush=True); signal.pause()'
"""Code of a machine's first process: it reaps processes whose parents ended."""
WALKER = "walker"
"""An ordinary user of each machine with sudo for every command."""
OWN_QDISC = "handle 5: tbf rate 1gbit burst 100k latency 50ms"
"""A qdisc of a machine's owner, which has to be restored."""
NODES = {"client": ("c0",), "router": ("r0", "r1"), "server": ("s0",)}
CABLES = (("client", "c0", "router", "r0"), ("router", "r1", "server", "s0"))


def missing() -> str | None:
    """Return why this machine cannot run them, or None."""
    if os.geteuid() != 0:
        return "needs root"
    programs = ("sshd", "ssh", "ssh-keygen", "sudo", "unshare", "nsenter", "ip", "sysctl", "hostname")
    if (problem := host_tools.lacking("machines to log in to", {tool: TOOLS[tool] for tool in programs})) is not None:
        return str(problem)
    if subprocess.run(["unshare", "-nmpuf", "true"], capture_output=True, check=False).returncode:
        return "no namespaces"
    return None


def need() -> None:
    """Skip if this machine cannot run them; fail if it has to."""
    if (reason := missing()) is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@dataclass
class Machine:
    """A machine. `pid`: its first process."""

    name: str
    pid: int
    temporary: Path

    def command(self, *arguments: str) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-a", "--", *arguments]

    def run(self, line: str) -> str:
        result = subprocess.run(self.command("sh", "-c", line), capture_output=True, text=True, check=False)
        assert result.returncode == 0, (line, result.stderr)
        return result.stdout

    def state(self) -> dict[str, str]:
        """Return all state that a run could change."""
        commands = {
            "links": "ip link | sed 's/ state [A-Z]*//; s/NO-CARRIER,//; s/,LOWER_UP//; s/,M-DOWN//'",
            "addresses": "ip -o addr",
            "routes": "{ ip route show table all; ip -6 route show table all; } | sed 's/ linkdown//' | sort",
            "qdiscs": "tc qdisc; tc class; tc filter 2>/dev/null || true",
            "offloads": "; ".join(f"ethtool -k {device}" for device in NODES[self.name]),
            "sysctls": "grep -rs . /proc/sys/net/ipv4 /proc/sys/net/core | grep -v 'fragmentation_needed\\|random'",
            "namespaces": "ip netns; ls /run/netns 2>/dev/null || true",
            "files": f"ls {self.temporary}",
        }
        return {name: self.run(line) for name, line in commands.items()} | {"processes": self.processes()}

    def processes(self) -> str:
        """Return the processes by name, without the first one and those of this command."""
        lines = self.run("for f in /proc/[0-9]*/stat; do cut -d' ' -f1,2,4 $f 2>/dev/null; done; true").splitlines()
        return "\n".join(sorted(line.split(" ")[1] for line in lines if not line.startswith("1 ") and "(sh)" not in line
                                and "(cut)" not in line))  # fmt: skip

    def pids(self, name: str) -> list[int]:
        """Return this machine's IDs of the processes with the name, in the order of their start."""
        namespace = Path(f"/proc/{self.pid}/ns/pid").readlink()
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns/pid").readlink() == namespace and (folder / "comm").read_text().startswith(name):
                    pids.append(int(folder.name))
            except OSError:
                continue
        return sorted(pids)


@dataclass
class Machines:
    """The machines, and the options with which ssh finds them."""

    folder: Path
    by_name: dict[str, Machine]

    @property
    def options(self) -> str:
        return f"-F {self.folder / 'ssh_config'}"

    def state(self) -> dict[str, dict[str, str]]:
        return {name: machine.state() for name, machine in self.by_name.items()}

    def at_rest(self) -> dict[str, dict[str, str]]:
        """Return the state after all earlier processes ended."""
        until(lambda: not any(machine.processes() for machine in self.by_name.values()))
        return self.state()

    def scenario(self, **test: object) -> Path:
        """Write a scenario that runs on the machines."""
        lines = ['name = "machines"', "[testbed]"]
        for name, devices in NODES.items():
            real = ", ".join(f'eth{number} = "{device}"' for number, device in enumerate(devices))
            role = 'role = "router"\n' if name == "router" else ""
            lines.append(f'[[testbed.node]]\nname = "{name}"\n{role}host = "root@{name}"\nreal = {{ {real} }}')
        lines.append('[[testbed.link]]\nends = ["client:eth0", "router:eth0"]')
        lines.append('[[testbed.link]]\nends = ["router:eth1", "server:eth0"]')
        lines.append('[[testbed.shaper]]\nat = "router:eth1"\nrate = "20mbit"')
        lines.append("[test]")
        lines += [f"{key} = {value!r}".replace("'", '"') for key, value in test.items()]
        path = self.folder / "machines.toml"
        path.write_text("\n".join(lines) + "\n")
        return path


@contextmanager
def serve(folder: Path) -> Iterator[Machines]:
    """Start the machines, and stop them after the block. All users may enter `folder`."""
    folder.chmod(0o755)
    _keys(folder)
    accounts = _accounts(folder / "etc")
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in NODES:
            (folder / name).mkdir()
            (folder / name).chmod(0o1777)
            unshare = ["unshare", "-nmpuf", "--mount-proc", "--kill-child", "sh", "-c"]
            set_up = f"hostname {name}; mount -t sysfs none /sys; mkdir -p /run/sshd; {accounts}"
            init = f"{set_up}; ip link set lo up; {QUIET}; exec {sys.executable} -c '{FIRST}'"
            started[name] = subprocess.Popen([*unshare, init], stdout=subprocess.PIPE, start_new_session=True)
        joined = {}
        for name, process in started.items():
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            joined[name] = Machine(name, pid, folder / name)
        machines = Machines(folder, joined)
        for a, device_a, b, device_b in CABLES:
            enter = ["nsenter", "-t", str(joined[a].pid), "-n", "ip"]
            pair = ["link", "add", device_a, "type", "veth", "peer", "name", device_b]
            subprocess.run([*enter, *pair, "netns", str(joined[b].pid)], check=True)
        joined["client"].run(
            f"ip addr add 192.0.2.7/24 dev c0; ip link set c0 up; tc qdisc add dev c0 root {OWN_QDISC}"
        )
        _configure(machines)
        yield machines
    finally:
        for process in started.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _keys(folder: Path) -> None:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")


def _accounts(folder: Path) -> str:
    """Return the commands that add the user without root to a machine, with files over the machine's."""
    folder.mkdir()
    for name, text, mode in (
        ("passwd", Path("/etc/passwd").read_text() + f"{WALKER}:x:4711:4711::/:/bin/sh\n", 0o644),
        ("shadow", Path("/etc/shadow").read_text() + f"{WALKER}:*:19000:0:99999:7:::\n", 0o600),
        ("sudoers", f"{WALKER} ALL=(ALL) NOPASSWD: ALL\n", 0o440),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    return "; ".join(f"mount --bind {folder / name} /etc/{name}" for name in ("passwd", "shadow", "sudoers"))


def _configure(machines: Machines) -> None:
    """Write the configuration of sshd for each machine, and that of ssh."""
    client = [f"Host *\n  IdentityFile {machines.folder / 'user'}\n  IdentitiesOnly yes\n  StrictHostKeyChecking no",
              "  UserKnownHostsFile /dev/null\n  LogLevel ERROR"]  # fmt: skip
    for name, machine in machines.by_name.items():
        config = machines.folder / f"sshd_{name}"
        config.write_text(
            f"HostKey {machines.folder / 'host'}\nAuthorizedKeysFile {machines.folder / 'authorized_keys'}\nUsePAM no\n"
            f"PidFile none\nPermitRootLogin yes\nStrictModes no\nSetEnv TMPDIR={machine.temporary}\n"
        )
        proxy = shlex.join(machine.command(SSHD, "-i", "-f", str(config)))
        client.append(f"Host {name}\n  ProxyCommand {proxy}")
    (machines.folder / "ssh_config").write_text("\n".join(client) + "\n")
