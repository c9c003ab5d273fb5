# SPDX-License-Identifier: Apache-2.0
"""Runs on machines that ssh reaches: three that sshd serves (lab.py).

They share one clock, so what is found out about their clocks can be held against the truth: they do not differ.
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
from pathlib import Path

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.cli.errors import guarded
from hourglass.engine.ssh.channel import OPTIONS_VARIABLE
from hourglass.errors import GuestError, InputError, MissingError

from .lab import NODES, QUIET, WALKER, Lab, machines, need

pytestmark = pytest.mark.guest

SEED = 16
SECOND_NS = 10**9
PULLS = 10
QUIET_S = 20.0
"""So long it may take until a machine is as it was: what was killed is noticed at once, but the machine is busy."""
RUN = [sys.executable, "-c", "from hourglass.cli.errors import guarded; import sys; sys.exit(guarded(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    need()
    with tempfile.TemporaryDirectory() as folder, machines(Path(folder)) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIONS_VARIABLE, made.options)
        yield made


def as_before(lab: Lab, before: dict[str, dict[str, str]]) -> None:
    """Every machine comes to be what it was."""
    deadline = time.monotonic() + QUIET_S
    while (now := lab.state()) != before and time.monotonic() < deadline:
        time.sleep(0.2)
    for machine, state in before.items():
        for what, then in state.items():
            assert now[machine][what] == then, (machine, what)


def test_a_run_measures_by_one_clock_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    before = lab.at_rest()
    wanted = scenario.load(lab.scenario(name="rrul", length=2, delay=1))
    run = runner.run(wanted, tmp_path / "run", engine="ssh")
    as_before(lab, before)
    assert 10 < run.summary.totals.upload_mbps < 20
    # Eight flows fill the queue with more than a second: what was sent last is still on its way when all ends.
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
    ways = run.ping_rows.drop_nulls(["owd_up_ns", "owd_down_ns"])
    assert (ways["owd_up_ns"] + ways["owd_down_ns"] == ways["rtt_ns"]).all()
    releases = run.facts.filter(pl.col("key") == "kernel.release")
    assert releases["node"].to_list() == ["client", "router", "server"]
    assert not list((tmp_path / "run").glob(".*"))


def test_a_user_with_sudo_will_do(lab: Lab, tmp_path: Path) -> None:
    path = lab.scenario(name="tcp_upload", length=2, delay=1)
    path.write_text(path.read_text().replace('"root@', f'"{WALKER}@'))
    before = lab.at_rest()
    run = runner.run(scenario.load(path), tmp_path / "run", engine="ssh")
    as_before(lab, before)
    assert 10 < run.summary.totals.upload_mbps < 20


@pytest.fixture
def ipv6(lab: Lab) -> Iterator[Lab]:
    """The machines, whose owners have switched IPv6 on, and forwarding on the router; all cables are plugged in, so
    that each interface has its address already. Afterwards they are down, with the qdisc that the kernel gave them."""
    on = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0"
    down = [(lab.machines[node], device) for node, devices in NODES.items() for device in devices if device != "c0"]
    for machine in lab.machines.values():
        machine.run(on)
    lab.machines["router"].run("sysctl -qw net.ipv6.conf.all.forwarding=1")
    for machine, device in down:
        machine.run(f"ip link set {device} up")
    for machine in lab.machines.values():
        machine.run("while ip -6 addr | grep -q tentative; do sleep 0.1; done")
    yield lab
    for machine, device in down:
        machine.run(f"ip link set {device} down")
    lab.machines["router"].run("sysctl -qw net.ipv6.conf.all.forwarding=0")
    for machine in lab.machines.values():
        machine.run(QUIET)


def test_a_run_over_ipv6_leaves_nothing(ipv6: Lab, tmp_path: Path) -> None:
    before = ipv6.at_rest()
    wanted = scenario.load(ipv6.scenario(name="tcp_upload", length=2, delay=1), ["testbed.ip=6"])
    run = runner.run(wanted, tmp_path / "run", engine="ssh")
    as_before(ipv6, before)
    assert 10 < run.summary.totals.upload_mbps < 20
    assert run.summary.ping_ms["icmp"].lost == 0


def test_a_router_that_does_not_forward_ipv6_is_refused(lab: Lab, tmp_path: Path) -> None:
    wanted = scenario.load(lab.scenario(name="ping", length=1), ["testbed.ip=6"])
    with pytest.raises(MissingError, match=r"router \(root@router\) does not forward IPv6"):
        runner.run(wanted, tmp_path / "run", engine="ssh")


def test_what_one_machine_sends_and_another_receives_is_one_stream(lab: Lab, tmp_path: Path) -> None:
    """The queue of the shaper holds the packets back by more than the clocks are uncertain."""
    path = lab.scenario(name="udp_flood", length=1, delay=1, udp_bandwidth="25mbit", udp_ecn="ect1")
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
    assert set(arrived["ecn"]) == {"ect1"}, "as its receiver tells"
    assert rows["ecn"].null_count() == rows.height - arrived.height


def test_events_are_carried_out_on_their_machines(lab: Lab, tmp_path: Path) -> None:
    before = lab.at_rest()
    change = {"at": 1, "node": "router", "tc": "class change dev eth1 classid 1:1 htb rate 5mbit ceil 5mbit"}
    wanted = scenario.load(lab.scenario(name="tcp_upload", length=2, delay=0.5), [("event", [change])])
    run = runner.run(wanted, tmp_path / "run", engine="ssh")
    as_before(lab, before)
    assert run.events["done_ns"].null_count() == 0
    assert run.summary.totals.upload_mbps < 15


def test_a_step_that_a_machine_refuses_is_the_users_key(lab: Lab, tmp_path: Path) -> None:
    before = lab.at_rest()
    wanted = scenario.load(lab.scenario(name="ping", length=1), ["stack.server.qdisc=fq_codel nonsense"])
    with pytest.raises(InputError, match=r"stack\.server\.qdisc = .*on node server"):
        runner.run(wanted, tmp_path / "run", engine="ssh")
    as_before(lab, before)


REFUSED = {
    "testbed.node.1.host=root@nowhere.invalid": (3, "ssh does not reach router (root@nowhere.invalid)"),
    'testbed.node.0.real={eth0="enp9s0"}': (2, "testbed.node.0.real.eth0 = 'enp9s0': client (root@client) has no such"),
    "testbed.node.0.real={}": (2, "testbed.node.0.real.eth0 = none: which interface of root@client it is"),
    "testbed.link.0.loss=1%": (2, "testbed.link.0.loss = '1%': a real cable has none"),
    'event=[{at=1, node="client", ip="rule add table 5"}]': (
        2,
        "event.0.ip = 'rule add table 5': names none of",
    ),
    'capture.pcap=["client:eth0"]': (2, "capture.pcap = "),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(change: str, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = REFUSED[change]
    path = lab.scenario(name="ping", length=2)
    assert guarded(["run", str(path), "--engine", "ssh", "--set", change, "--out", str(lab.folder / "no")]) == status
    error = capsys.readouterr().err.strip()
    assert error.startswith(f"hourglass: error: {said}"), error
    assert error.count("\n") == 0


def test_every_line_that_would_be_carried_out_is_shown_and_none_is(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lab.at_rest()
    assert guarded(["run", str(lab.scenario(name="ping", length=1)), "--engine", "ssh", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "client: ssh root@client hourglass-agent --serve client" in said
    assert "router: tc qdisc replace dev r1 root handle 1: htb default 1" in said
    assert "server: ip addr replace 10.0.1.2/24 dev s0" in said
    assert not [line for line in said if "eth0" in line or "netns" in line]
    assert lab.state() == before


def test_a_machine_that_is_cut_off_ends_the_run_and_all_is_given_back(lab: Lab, tmp_path: Path) -> None:
    before = lab.at_rest()
    server = lab.machines["server"]

    class Cutting(runner.Silent):
        def time(self, reached_s: float, total_s: float) -> None:
            for pid in server.pids("sshd"):
                os.kill(pid, signal.SIGKILL)

    wanted = scenario.load(lab.scenario(name="tcp_upload", length=5, delay=1))
    with pytest.raises(GuestError, match=r"the connection to server \(root@server\) ended at"):
        runner.run(wanted, tmp_path / "run", engine="ssh", progress=Cutting())
    as_before(lab, before)


def test_a_pull_of_the_plug_at_any_moment_leaves_nothing(lab: Lab) -> None:
    """Front, agent or sshd is killed at a random moment of a run, ten times."""
    rng, path = random.Random(SEED), lab.scenario(name="rrul", length=3, delay=1)
    before = lab.at_rest()
    for number in range(PULLS):
        victim = ("front", "sshd", "hourglass-agent")[number % 3]
        machine, after_s = rng.choice(list(lab.machines.values())), rng.uniform(0, 4)
        words = [*RUN, "run", str(path), "--engine", "ssh", "--out", str(lab.folder / f"pull {number}")]
        front = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        waited_for = "sshd" if victim == "front" else "hourglass-agent"  # another sshd only looked round
        while not machine.pids(waited_for) and front.poll() is None:
            time.sleep(0.01)
        time.sleep(after_s)
        for pid in [front.pid] if victim == "front" else machine.pids(victim):
            os.kill(pid, signal.SIGKILL)
            break  # the guard comes after the agent
        status = front.wait()
        print(f"{victim} of {machine.name} killed {after_s:.2f} s after the connection: exit status {status}")
        assert status == (-signal.SIGKILL if victim == "front" else 3)
        as_before(lab, before)
        mine = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert not [line for line in mine.splitlines() if lab.options in line], mine


def test_the_lab_is_held_against_machines_that_ssh_reaches(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lab.at_rest()
    path = lab.scenario(name="tcp_upload", length=1, delay=0.2)
    status = guarded(["agree", str(path), "--engine", "ssh", "--most", "6", "--out", str(tmp_path), "--json",
                      "--within", "totals.upload_mbps=30"])  # fmt: skip
    as_before(lab, before)
    printed = capsys.readouterr()
    assert printed.out, printed.err
    said = json.loads(printed.out)
    (case,) = said["cases"]
    assert (len(case["lab"]), len(case["real"]), case["hosts"]) == (3, 6, [])
    goodput = next(row for row in case["figures"] if row["figure"] == "totals.upload_mbps")
    assert 10 < goodput["lab"] < 20
    assert 10 < goodput["real"] < 20
    assert status == (1 if any(row["verdict"] == "differs" for row in case["figures"]) else 0)
    assert said["release"] == platform.release(), "that of the machines, which are this one"
