# SPDX-License-Identifier: Apache-2.0
"""Runs on machines that ssh reaches: three that sshd serves (machines.py).

They share one clock, so the estimates of their clocks can be compared with the truth: the clocks do not differ.
"""

import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.cli.exit_status import guarded
from hourglass.contract.kernels import nearest
from hourglass.engine.ssh.channel import OPTIONS_VARIABLE
from hourglass.errors import GuestError, InputError, MissingError
from tests.clocks import until

from .machines import NODES, QUIET, WALKER, Machine, Machines, need, serve

pytestmark = pytest.mark.guest

SEED = 16
SECOND_NS = 10**9
PULLS = 10
RUN = [
    sys.executable,
    "-c",
    "from hourglass.cli.exit_status import guarded; import sys; sys.exit(guarded(sys.argv[1:]))",
]


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    need()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(OPTIONS_VARIABLE, started.options)
        yield started


def assert_restored(machines: Machines, before: dict[str, dict[str, str]]) -> None:
    """Wait until every machine has its earlier state."""

    def changed() -> list[tuple[str, str, str, str]]:
        current = machines.state()
        states = [(name, kind, earlier) for name, kinds in before.items() for kind, earlier in kinds.items()]
        return [
            (name, kind, earlier, current[name][kind])
            for name, kind, earlier in states
            if current[name][kind] != earlier
        ]

    until(lambda: not changed(), lambda: f"not restored: {changed()}")


def test_a_run_has_one_clock_and_restores_the_machines(machines: Machines, tmp_path: Path) -> None:
    before = machines.at_rest()
    loaded = scenario.load(machines.scenario(name="rrul", length=2, delay=1))
    run = runner.run(loaded, tmp_path / "run", engine="ssh")
    assert_restored(machines, before)
    assert 10 < run.summary.totals.upload_mbps < 20
    # Eight flows fill the queue with more than a second: the last packets are still in flight at the end.
    early = pl.col("t_ns") < 2 * SECOND_NS
    assert not run.ping_rows.filter(early & pl.col("rtt_ns").is_null()).height
    assert run.ping_rows.filter(early).group_by("stream").len()["len"].to_list() == [10] * 4
    assert set(run.devices.select("node", "device").unique().rows()) == {
        ("client", "eth0"), ("router", "eth0"), ("router", "eth1"), ("server", "eth0")
    }  # fmt: skip
    assert set(run.tcp["sender"]) == {True, False}
    assert set(run.qdisc.filter(pl.col("device") == "eth1")["kind"]) >= {"htb", "pfifo_fast"}
    clocks = run.table("clock")
    assert clocks["node"].to_list() == ["client", "router", "server"]
    assert (clocks["offset_ns"].abs() <= clocks["uncertainty_ns"]).all(), clocks
    assert (clocks["set_ns"] == 0).all()
    delays = run.ping_rows.drop_nulls(["owd_up_ns", "owd_down_ns"])
    assert (delays["owd_up_ns"] + delays["owd_down_ns"] == delays["rtt_ns"]).all()
    releases = run.facts.filter(pl.col("key") == "kernel.release")
    assert releases["node"].to_list() == ["client", "router", "server"]
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.slow
def test_a_user_with_sudo_is_enough(machines: Machines, tmp_path: Path) -> None:
    path = machines.scenario(name="tcp_upload", length=2, delay=1)
    path.write_text(path.read_text().replace('"root@', f'"{WALKER}@'))
    before = machines.at_rest()
    run = runner.run(scenario.load(path), tmp_path / "run", engine="ssh")
    assert_restored(machines, before)
    assert 10 < run.summary.totals.upload_mbps < 20


@pytest.fixture
def ipv6(machines: Machines) -> Iterator[Machines]:
    """Yield the machines with IPv6, and with forwarding on the router. All cables are plugged in, so each interface has
    its address. Afterwards the interfaces are down, with the kernel's qdisc."""
    on = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0"
    down = [(machines.by_name[node], device) for node, devices in NODES.items() for device in devices if device != "c0"]
    for machine in machines.by_name.values():
        machine.run(on)
    machines.by_name["router"].run("sysctl -qw net.ipv6.conf.all.forwarding=1")
    for machine, device in down:
        machine.run(f"ip link set {device} up")
    for machine in machines.by_name.values():
        machine.run("while ip -6 addr | grep -q tentative; do sleep 0.1; done")
    yield machines
    for machine, device in down:
        machine.run(f"ip link set {device} down")
    machines.by_name["router"].run("sysctl -qw net.ipv6.conf.all.forwarding=0")
    for machine in machines.by_name.values():
        machine.run(QUIET)


@pytest.mark.slow
def test_a_run_over_ipv6_restores_the_machines(ipv6: Machines, tmp_path: Path) -> None:
    before = ipv6.at_rest()
    loaded = scenario.load(ipv6.scenario(name="tcp_upload", length=2, delay=1), ["testbed.ip=6"])
    run = runner.run(loaded, tmp_path / "run", engine="ssh")
    assert_restored(ipv6, before)
    assert 10 < run.summary.totals.upload_mbps < 20
    assert run.summary.ping_ms["icmp"].lost == 0


def test_a_router_that_does_not_forward_ipv6_is_refused(machines: Machines, tmp_path: Path) -> None:
    loaded = scenario.load(machines.scenario(name="ping", length=1), ["testbed.ip=6"])
    with pytest.raises(MissingError, match=r"router \(root@router\) does not forward IPv6"):
        runner.run(loaded, tmp_path / "run", engine="ssh")


@pytest.mark.slow
def test_sender_and_receiver_on_two_machines_are_one_stream(machines: Machines, tmp_path: Path) -> None:
    """The shaper's queue delays packets by more than the uncertainty of the clocks."""
    path = machines.scenario(name="udp_flood", length=1, delay=1, udp_bandwidth="25mbit", udp_ecn="ect1")
    run = runner.run(scenario.load(path), tmp_path / "run", engine="ssh")
    (flood,) = run.summary.datagrams
    assert flood.sent > 0
    assert flood.refused == 0
    rows = run.datagram_rows
    assert rows["seq"].to_list() == list(range(rows.height))
    assert flood.goodput_mbps == pytest.approx(20, rel=0.1)
    assert flood.owd_ms.p50 is not None
    uncertain = run.table("clock")["uncertainty_ns"].sum()
    assert rows["owd_ns"].drop_nulls().min() >= -uncertain
    arrived = rows.filter(pl.col("owd_ns").is_not_null())
    assert set(arrived["ecn"]) == {"ect1"}, "as its receiver reports"
    assert rows["ecn"].null_count() == rows.height - arrived.height


@pytest.mark.slow
def test_events_happen_on_their_machines(machines: Machines, tmp_path: Path) -> None:
    before = machines.at_rest()
    change = {"at": 1, "node": "router", "tc": "class change dev eth1 classid 1:1 htb rate 5mbit ceil 5mbit"}
    loaded = scenario.load(machines.scenario(name="tcp_upload", length=2, delay=0.5), [("event", [change])])
    run = runner.run(loaded, tmp_path / "run", engine="ssh")
    assert_restored(machines, before)
    assert run.events["done_ns"].null_count() == 0
    assert run.summary.totals.upload_mbps < 15


def test_a_step_that_a_machine_refuses_is_an_error_of_its_key(machines: Machines, tmp_path: Path) -> None:
    before = machines.at_rest()
    loaded = scenario.load(machines.scenario(name="ping", length=1), ["stack.server.qdisc=fq_codel nonsense"])
    with pytest.raises(InputError, match=r"stack\.server\.qdisc = .*on node server"):
        runner.run(loaded, tmp_path / "run", engine="ssh")
    assert_restored(machines, before)


REFUSED = {
    "testbed.node.1.host=root@nowhere.invalid": (3, "ssh does not reach router (root@nowhere.invalid)"),
    'testbed.node.0.real={eth0="enp9s0"}': (
        2,
        "testbed.node.0.real.eth0 = 'enp9s0': client (root@client) lacks this interface",
    ),
    "testbed.node.0.real={}": (2, "testbed.node.0.real.eth0 = none: is missing; name the interface of root@client"),
    "testbed.link.0.loss=1%": (2, "testbed.link.0.loss = '1%': a real cable does not support this"),
    'event=[{at=1, node="client", ip="rule add table 5"}]': (
        2,
        "event.0.ip = 'rule add table 5': must name one of the node's devices",
    ),
    'capture.pcap=["client:eth0"]': (2, "capture.pcap = "),
}


@pytest.mark.parametrize("change", REFUSED)
def test_an_invalid_setting_is_refused_in_one_line(
    change: str, machines: Machines, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message = REFUSED[change]
    path = machines.scenario(name="ping", length=2)
    assert (
        guarded(["run", str(path), "--engine", "ssh", "--set", change, "--out", str(machines.folder / "no")]) == status
    )
    notice, error = capsys.readouterr().err.strip().split("\n")
    assert notice.startswith(f"hourglass: {path} is not from this folder: reaches root@client, ")
    assert error.startswith(f"hourglass: error: {message}"), error


def test_a_plan_prints_every_line_and_executes_none(machines: Machines, capsys: pytest.CaptureFixture[str]) -> None:
    before = machines.at_rest()
    assert guarded(["show", str(machines.scenario(name="ping", length=1)), "--engine", "ssh", "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "client: ssh root@client hourglass-agent --serve client" in lines
    assert "router: tc qdisc replace dev r1 root handle 1: htb default 1" in lines
    assert "server: ip addr replace 10.0.1.2/24 dev s0" in lines
    assert not [line for line in lines if "eth0" in line or "netns" in line]
    assert machines.state() == before


@pytest.mark.slow
def test_a_lost_connection_ends_the_run_and_all_machines_are_restored(machines: Machines, tmp_path: Path) -> None:
    before = machines.at_rest()
    server = machines.by_name["server"]

    class Cutting(runner.SilentRunProgress):
        def time(self, reached_s: float, total_s: float) -> None:
            for pid in server.pids("sshd"):
                os.kill(pid, signal.SIGKILL)

    loaded = scenario.load(machines.scenario(name="tcp_upload", length=5, delay=1))
    with pytest.raises(GuestError, match=r"the connection to server \(root@server\) ended at"):
        runner.run(loaded, tmp_path / "run", engine="ssh", progress=Cutting())
    assert_restored(machines, before)


def reached(machine: Machine, name: str, front: subprocess.Popen[bytes]) -> bool:
    """Tell whether the machine has a process of the name, or the command ended."""
    return bool(machine.pids(name)) or front.poll() is not None


@pytest.mark.slow
def test_after_a_kill_at_any_moment_the_machines_are_restored(machines: Machines) -> None:
    """Kill the command, the agent or sshd at a random moment of a run, ten times."""
    rng, path = random.Random(SEED), machines.scenario(name="rrul", length=3, delay=1)
    before = machines.at_rest()
    for number in range(PULLS):
        victim = ("front", "sshd", "hourglass-agent")[number % 3]
        machine, after_s = rng.choice(list(machines.by_name.values())), rng.uniform(0, 4)
        command = [*RUN, "run", str(path), "--engine", "ssh", "--out", str(machines.folder / f"pull {number}")]
        front = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        waited_for = "sshd" if victim == "front" else "hourglass-agent"  # another sshd only inspected the machine
        until(partial(reached, machine, waited_for, front))
        time.sleep(after_s)
        for pid in [front.pid] if victim == "front" else machine.pids(victim):
            os.kill(pid, signal.SIGKILL)
            break  # the guard follows the agent
        status = front.wait()
        print(f"{victim} of {machine.name} killed {after_s:.2f} s after the connection: exit status {status}")
        assert status == (-signal.SIGKILL if victim == "front" else 3)
        assert_restored(machines, before)
        processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert not [line for line in processes.splitlines() if machines.options in line], processes


@pytest.mark.kernels
def test_the_guest_is_compared_with_machines_over_ssh(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = machines.at_rest()
    path = machines.scenario(name="tcp_upload", length=1, delay=0.2)
    status = guarded(["compare", str(path), "--vary", "engine=virtual,ssh", "--seeds", "1-6", "--out", str(tmp_path),
                      "--tolerance", "totals.upload_mbps=30%", "--json"])  # fmt: skip
    assert_restored(machines, before)
    printed = capsys.readouterr()
    assert printed.out, printed.err
    answer = json.loads(printed.out)
    verdicts = [line["cells"]["ssh"]["verdict"] for line in answer["lines"]]
    goodput = next(line["cells"] for line in answer["lines"] if line["figure"] == "totals.upload_mbps")
    assert (len(goodput["virtual"]["runs"]), len(goodput["ssh"]["runs"])) == (3, 6)
    assert 10 < goodput["virtual"]["value"] < 20
    assert 10 < goodput["ssh"]["value"] < 20
    assert status == (1 if "missed" in verdicts else 0)
    releases = {name: kernel["release"] for name, kernel in answer["kernels"].items()}
    assert releases["ssh"] == platform.release(), "that of the machines, which are this one"
    assert releases["virtual"].startswith(nearest(platform.release()))
    runs = [tmp_path / run for run in goodput["ssh"]["runs"]]
    assert {json.loads((run / "run.json").read_text())["host_load"] for run in runs} == {None}
