# SPDX-License-Identifier: Apache-2.0
"""Native runs over interfaces of the machine. A namespace replaces the machine, the two ends of a veth pair its NICs
with a cable between them. Its states before and after a run are compared, however the run ended.

The guard's details, at every moment of a run, are tested in agent/tests/guard.rs.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import hourglass
from hourglass import plan as plans
from hourglass import scenario
from hourglass.cli.exit_status import guarded
from hourglass.contract.plan import TakeStep
from hourglass.engine import native
from hourglass.engine.native import Native
from hourglass.errors import InputError, MissingError
from tests.clocks import until

pytestmark = pytest.mark.guest

CABLE = """
name = "cable"
[testbed]
node = [{ name = "client", real = { eth0 = "enp3s0" } }, { name = "server", real = { eth0 = "enp4s0" } }]
link = [{ ends = ["client:eth0", "server:eth0"] }]
shaper = [{ at = "client:eth0", rate = "20mbit" }]
[test]
name = "tcp_upload"
length = 1
delay = 0.5
client = "client"
server = "server"
"""
MACHINE = (
    "ip link add enp3s0 mtu 1400 type veth peer name enp4s0",
    "ip link add enp5s0 type veth peer name enp6s0",
    "ethtool -K enp3s0 gro off tso off",
    "ip addr add 192.0.2.1/24 dev enp3s0",
    "ip link set enp3s0 up",
    "ip link set enp4s0 up",
    "ip link set enp5s0 up",
    "ip route add default via 192.0.2.254",
    "tc qdisc add dev enp3s0 root handle 5: tbf rate 1gbit burst 100k limit 200k",
)
LOOK = (
    "ip -d -o link; ip -o addr; ip route show table all; tc qdisc; ethtool -k enp3s0; ethtool -k enp4s0;"
    " sysctl -a 2>/dev/null | grep -F net.ipv | grep -F .enp"
)


@dataclass(frozen=True)
class Machine:
    """A namespace that a process holds."""

    holder: int

    def argv(self, *argv: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", *argv]

    def shell(self, line: str) -> str:
        return subprocess.run(self.argv("sh", "-c", line), capture_output=True, text=True, check=True).stdout

    def settled(self) -> str:
        """Return the machine's state once it no longer changes."""
        last = ""
        for _ in range(100):
            current = "\n".join(sorted(self.shell(LOOK).splitlines()))  # the kernel lists devices by creation
            if current == last and "tentative" not in current:
                return current
            last = current
            time.sleep(1.1)
        raise AssertionError(f"does not settle: {last}")

    def hourglass(self, *arguments: str) -> subprocess.Popen[str]:
        command = "import sys; from hourglass.cli.exit_status import guarded; sys.exit(guarded(sys.argv[1:]))"
        argv = self.argv(sys.executable, "-c", command, *arguments)
        return subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        Native.ready()
    except MissingError as reason:
        pytest.skip(f"no native runs here: {reason}")
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as holder:
        try:
            own_namespace = Path("/proc/self/ns/net").readlink()
            until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own_namespace)
            host = Machine(holder.pid)
            for line in MACHINE:
                host.shell(line)
            yield host
        finally:
            holder.kill()


@pytest.fixture
def cable(tmp_path: Path) -> Path:
    path = tmp_path / "cable.toml"
    path.write_text(CABLE, "utf-8")
    return path


def test_a_run_over_real_interfaces_restores_them(machine: Machine, cable: Path, tmp_path: Path) -> None:
    before = machine.settled()
    arguments = ("run", str(cable), "--engine", "native", "--no-picture", "--out", str(tmp_path / "run"))
    output = (child := machine.hourglass(*arguments)).communicate()[0]
    assert child.returncode == 0, output
    run = hourglass.load(tmp_path / "run")
    assert 18 < run.summary.totals.upload_mbps < 20, "HTB at the interface's egress"
    assert machine.settled() == before


def test_a_refused_line_restores_the_interfaces(machine: Machine, cable: Path, tmp_path: Path) -> None:
    before = machine.settled()
    arguments = ("run", str(cable), "--engine", "native", "--out", str(tmp_path / "run"))
    output = (child := machine.hourglass(*arguments, "--set", "stack.server.qdisc=pfifo nonsense")).communicate()[0]
    assert child.returncode == 2, output
    assert "stack.server.qdisc" in output
    assert machine.settled() == before


@pytest.mark.slow
def test_a_killed_command_restores_the_interfaces(machine: Machine, cable: Path, tmp_path: Path) -> None:
    before = machine.settled()
    for number in range(3):
        arguments = ("run", str(cable), "--engine", "native", "--no-picture", "--out", str(tmp_path / f"run{number}"))
        child = machine.hourglass(*arguments)
        time.sleep(random.uniform(0.5, 4.0))
        child.kill()
        child.communicate()  # until the guard has closed its end of the pipe
        assert machine.settled() == before


@pytest.mark.slow
def test_a_missing_interface_is_an_error_of_its_key(machine: Machine, cable: Path, tmp_path: Path) -> None:
    before = machine.settled()
    arguments = ("run", str(cable), "--engine", "native", "--out", str(tmp_path / "run"))
    child = machine.hourglass(*arguments, "--set", "testbed.node.1.real.eth0=enp9s0")
    output = child.communicate()[0]
    assert child.returncode == 2, output
    assert "testbed.node.1.real.eth0 = 'enp9s0'" in output
    assert "No such device" in output
    assert machine.settled() == before


def cable_scenario(*settings: str) -> scenario.Scenario:
    import tomllib

    return scenario.load(tomllib.loads(CABLE), list(settings))


def test_only_named_interfaces_are_taken() -> None:
    plan = plans.build(cable_scenario(), Native.capabilities)
    interfaces = [(step.node, step.real, step.device) for step in plan.setup if isinstance(step, TakeStep)]
    assert interfaces == [("client", "enp3s0", "eth0"), ("server", "enp4s0", "eth0")]
    assert not [line for step in plan.setup for line in getattr(step, "lines", []) if "veth" in line]


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("testbed.node.1.real={}", r"testbed\.node\.0\.real\.eth0"),
        ("testbed.node.1.real.eth0=enp3s0", r"testbed\.node\.0\.real\.eth0"),
        ("testbed.link.0.loss=1%", r"testbed\.link\.0\.loss"),
        ("testbed.link.0.jitter=1ms", r"testbed\.link\.0\.jitter"),
    ],
)
def test_an_invalid_setting_is_refused(setting: str, key: str) -> None:
    with pytest.raises(InputError, match=key):
        plans.build(cable_scenario(setting), Native.capabilities)


def test_a_cable_may_have_any_rate_and_delay() -> None:
    plan = plans.build(cable_scenario("testbed.link.0.rate=10gbit", "testbed.link.0.delay=5ms"), Native.capabilities)
    assert plan.paths[0].there[0].delay_ns == 5_000_000


def test_taking_interfaces_needs_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.os, "geteuid", lambda: 1000)
    with pytest.raises(MissingError, match=r"enp3s0 \(testbed\.node\.0\.real\.eth0\) can be moved only by root"):
        Native().run(plans.build(cable_scenario(), Native.capabilities), tmp_path)


def test_a_plan_prints_all_lines_in_order(cable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["show", str(cable), "--engine", "native", "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    order = [
        "client: ip netns add client; ip link set lo up",
        "client: ip link set enp3s0 netns client name eth0",
        "client: ip addr add 10.0.0.1/24 dev eth0",
        "client: tc qdisc add dev eth0 root handle 1: htb default 1",
        "at the end, server: ip link set eth0 netns 1 name enp4s0; then its earlier state",
        "at the end, client: ip link set eth0 netns 1 name enp3s0; then its earlier state",
    ]
    assert [line for line in lines if line in order] == order
    assert not (cable.parent / "runs").exists()
