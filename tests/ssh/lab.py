# SPDX-License-Identifier: Apache-2.0
"""Three machines that sshd serves: namespaces of network, mounts, processes and names, joined by veth pairs.

    client (c0) ---- (r0) router (r1) ---- (s0) server

Their sshd is Debian's; what is between it and ssh is a pipe (`sshd -i`), so that nothing of the machine's own network
is touched. Each has a folder of its own for temporary files.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = "/usr/sbin/sshd"
QUIET = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
FIRST = 'import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print("up", flush=True); signal.pause()'
"""What a machine's first process does: it has those reaped whose parents are gone."""
WALKER = "walker"
"""A user of each machine who is not root, and may do everything with sudo."""
OWN_QDISC = "handle 5: tbf rate 1gbit burst 100k latency 50ms"
"""What a machine's owner may have set: it has to be there again."""
NODES = {"client": ("c0",), "router": ("r0", "r1"), "server": ("s0",)}
CABLES = (("client", "c0", "router", "r0"), ("router", "r1", "server", "s0"))


def missing() -> str | None:
    """Why there can be no such machines here."""
    if os.geteuid() != 0:
        return "needs root"
    wanted = (SSHD, "ssh", "ssh-keygen", "sudo", "unshare", "nsenter", "ip")
    tools = [tool for tool in wanted if shutil.which(tool) is None]
    if tools:
        return f"no {', '.join(tools)}: apt-get install openssh-server openssh-client sudo util-linux iproute2"
    if subprocess.run(["unshare", "-nmpuf", "true"], capture_output=True, check=False).returncode:
        return "no namespaces"
    return None


def need() -> None:
    """Skips where machines cannot be played; fails where they have to be."""
    if (reason := missing()) is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@dataclass
class Machine:
    """One of them. `pid`: of its first process."""

    name: str
    pid: int
    temporary: Path

    def command(self, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-a", "--", *words]

    def run(self, line: str) -> str:
        done = subprocess.run(self.command("sh", "-c", line), capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def state(self) -> dict[str, str]:
        """All that a run could leave behind."""
        asked = {
            "links": "ip link | sed 's/ state [A-Z]*//; s/NO-CARRIER,//; s/,LOWER_UP//; s/,M-DOWN//'",
            "addresses": "ip -o addr",
            "routes": "{ ip route show table all; ip -6 route show table all; } | sed 's/ linkdown//' | sort",
            "qdiscs": "tc qdisc; tc class; tc filter 2>/dev/null || true",
            "offloads": "; ".join(f"ethtool -k {device}" for device in NODES[self.name]),
            "sysctls": "grep -rs . /proc/sys/net/ipv4 /proc/sys/net/core | grep -v 'fragmentation_needed\\|random'",
            "namespaces": "ip netns; ls /run/netns 2>/dev/null || true",
            "files": f"ls {self.temporary}",
        }
        return {name: self.run(line) for name, line in asked.items()} | {"processes": self.processes()}

    def processes(self) -> str:
        """By name, but for its first one and those that look."""
        lines = self.run("for f in /proc/[0-9]*/stat; do cut -d' ' -f1,2,4 $f 2>/dev/null; done; true").splitlines()
        return "\n".join(sorted(line.split(" ")[1] for line in lines if not line.startswith("1 ") and "(sh)" not in line
                                and "(cut)" not in line))  # fmt: skip

    def pids(self, name: str) -> list[int]:
        """Processes of that name, as this machine numbers them, in the order of their start."""
        space = Path(f"/proc/{self.pid}/ns/pid").readlink()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns/pid").readlink() == space and (folder / "comm").read_text().startswith(name):
                    found.append(int(folder.name))
            except OSError:
                continue
        return sorted(found)


@dataclass
class Lab:
    """The machines, and the words with which ssh finds them."""

    folder: Path
    machines: dict[str, Machine]

    @property
    def options(self) -> str:
        return f"-F {self.folder / 'ssh_config'}"

    def state(self) -> dict[str, dict[str, str]]:
        return {name: machine.state() for name, machine in self.machines.items()}

    def at_rest(self) -> dict[str, dict[str, str]]:
        """The state when no process is left of what was before."""
        deadline = time.monotonic() + 10
        while any(machine.processes() for machine in self.machines.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.state()

    def scenario(self, **test: object) -> Path:
        """A file that runs on them."""
        lines = ['name = "lab"', "[testbed]"]
        for name, devices in NODES.items():
            real = ", ".join(f'eth{place} = "{device}"' for place, device in enumerate(devices))
            role = 'role = "router"\n' if name == "router" else ""
            lines.append(f'[[testbed.node]]\nname = "{name}"\n{role}host = "root@{name}"\nreal = {{ {real} }}')
        lines.append('[[testbed.link]]\nends = ["client:eth0", "router:eth0"]')
        lines.append('[[testbed.link]]\nends = ["router:eth1", "server:eth0"]')
        lines.append('[[testbed.shaper]]\nat = "router:eth1"\nrate = "20mbit"')
        lines.append("[test]")
        lines += [f"{key} = {value!r}".replace("'", '"') for key, value in test.items()]
        path = self.folder / "lab.toml"
        path.write_text("\n".join(lines) + "\n")
        return path


@contextmanager
def machines(folder: Path) -> Iterator[Lab]:
    """Makes them; they are gone when the block is left. Everybody may enter `folder` then."""
    folder.chmod(0o755)
    _keys(folder)
    accounts = _accounts(folder / "etc")
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in NODES:
            (folder / name).mkdir()
            (folder / name).chmod(0o1777)
            words = ["unshare", "-nmpuf", "--mount-proc", "--kill-child", "sh", "-c"]
            own = f"hostname {name}; mount -t sysfs none /sys; mkdir -p /run/sshd; {accounts}"
            up = f"{own}; ip link set lo up; {QUIET}; exec {sys.executable} -c '{FIRST}'"
            started[name] = subprocess.Popen([*words, up], stdout=subprocess.PIPE, start_new_session=True)
        found = {}
        for name, process in started.items():
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            found[name] = Machine(name, pid, folder / name)
        lab = Lab(folder, found)
        for a, device_a, b, device_b in CABLES:
            enter = ["nsenter", "-t", str(found[a].pid), "-n", "ip"]
            pair = ["link", "add", device_a, "type", "veth", "peer", "name", device_b]
            subprocess.run([*enter, *pair, "netns", str(found[b].pid)], check=True)
        found["client"].run(f"ip addr add 192.0.2.7/24 dev c0; ip link set c0 up; tc qdisc add dev c0 root {OWN_QDISC}")
        _configure(lab)
        yield lab
    finally:
        for process in started.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _keys(folder: Path) -> None:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")


def _accounts(folder: Path) -> str:
    """What makes the walker known on a machine, where it lays files over the machine's own."""
    folder.mkdir()
    for name, text, mode in (
        ("passwd", Path("/etc/passwd").read_text() + f"{WALKER}:x:4711:4711::/:/bin/sh\n", 0o644),
        ("shadow", Path("/etc/shadow").read_text() + f"{WALKER}:*:19000:0:99999:7:::\n", 0o600),
        ("sudoers", f"{WALKER} ALL=(ALL) NOPASSWD: ALL\n", 0o440),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    return "; ".join(f"mount --bind {folder / name} /etc/{name}" for name in ("passwd", "shadow", "sudoers"))


def _configure(lab: Lab) -> None:
    """sshd's configuration of each machine, and ssh's of all."""
    client = [f"Host *\n  IdentityFile {lab.folder / 'user'}\n  IdentitiesOnly yes\n  StrictHostKeyChecking no",
              "  UserKnownHostsFile /dev/null\n  LogLevel ERROR"]  # fmt: skip
    for name, machine in lab.machines.items():
        config = lab.folder / f"sshd_{name}"
        config.write_text(
            f"HostKey {lab.folder / 'host'}\nAuthorizedKeysFile {lab.folder / 'authorized_keys'}\nUsePAM no\n"
            f"PidFile none\nPermitRootLogin yes\nStrictModes no\nSetEnv TMPDIR={machine.temporary}\n"
        )
        proxy = shlex.join(machine.command(SSHD, "-i", "-f", str(config)))
        client.append(f"Host {name}\n  ProxyCommand {proxy}")
    (lab.folder / "ssh_config").write_text("\n".join(client) + "\n")
