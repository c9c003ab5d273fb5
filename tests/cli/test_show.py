# SPDX-License-Identifier: Apache-2.0
"""`list` and `show`."""

import json
from pathlib import Path

import pytest

from cli.golden import WIDTH
from hourglass import scenario
from hourglass.builders.kernel import registry
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.cli.exit_status import guarded
from hourglass.cli.show import lines_of
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan import BatchStep, EthtoolStep, ReachStep, WriteStep
from hourglass.engine.virtual import Virtual
from hourglass.plan import build


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))

    def run(*arguments):
        status = guarded(list(arguments))
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_list_has_every_declared_name(call):
    status, out, _ = call("list")
    declared = [name for name, _ in (*scenario.builtin(), *scenario.presets())]
    declared += [
        *scenario.TESTS,
        *scenario.CONGESTION_CONTROLS,
        *scenario.QDISCS,
        *scenario.MULTIQUEUE_QDISCS,
        *KERNELS,
    ]
    assert status == 0
    assert [name for name in declared if name not in out.replace(",", "").split()] == []
    assert max(map(len, out.splitlines())) <= WIDTH


def test_list_of_one_kind(call):
    _, out, _ = call("list", "tests")
    assert [heading for heading in out.splitlines() if heading and heading[0] != " "] == [
        "Tests", "for details: hourglass show NAME",
    ]  # fmt: skip
    assert "tcp_nup" in out


def test_kernels_for_tests_are_listed_only_on_request(call, monkeypatch):
    kernels = [BuiltKernel(name, "6.1.1", "0" * 16, Path(), Path(), 1000) for name in ("6.1", "6.1+kunit", "mine")]
    monkeypatch.setattr(registry, "kernels", lambda: kernels)
    for command in (["list", "kernels"], ["kernel", "list"]):
        out, complete = call(*command)[1], call(*command, "--all")[1]
        assert "mine" in out
        assert "+kunit" not in out
        assert "+kunit" in complete


@pytest.mark.parametrize("name", [name for name, _ in scenario.builtin()])
def test_a_plan_is_shown_without_json(call, name):
    lines = call("show", name, "--plan")[1].splitlines()
    assert [line for line in lines if "{" in line or "\\n" in line] == []


def test_a_flood_is_part_of_the_plan(call):
    _, out, _ = call("show", "L100M", "--plan", "--set", "test.name=udp_flood")
    assert "datagrams udp upload: client to server, 1470 B every 0.01176 s (1 Mbit/s), 5 s to 35 s" in out


def test_a_printed_scenario_can_be_loaded(call, tmp_path):
    name = scenario.builtin()[0][0]
    status, out, _ = call("show", name, "--set", "test.length=7")
    assert status == 0
    (tmp_path / "again.json").write_text(out)
    assert scenario.load(tmp_path / "again.json") == scenario.load(name, ["test.length=7"])


@pytest.mark.parametrize(
    ("name", "use"),
    [("ping", "--set test.name=ping"), ("bbr", "--set stack.cc=bbr"), ("fq_codel", "--set stack.qdisc=fq_codel"),
     ("dualpi2", "from Linux 6.17 on"), ("6.1", "--kernel 6.1")],
)  # fmt: skip
def test_every_kind_of_name_has_a_description_and_a_use(call, name, use):
    status, out, _ = call("show", name)
    assert status == 0
    assert out.startswith(f"{name} (")
    assert use in out
    assert json.loads(call("show", name, "--json")[1])["name"] == name


def test_plan_goes_with_scenarios_only(call):
    status, _, err = call("show", "bbr", "--plan")
    assert status == 2
    assert "--plan needs a scenario" in err


def test_the_plan_of_a_builtin_is_shown_as_lines(call):
    status, out, _ = call("show", scenario.builtin()[0][0], "--plan")
    assert status == 0
    assert any(line.startswith("client: ip ") for line in out.splitlines())
    assert any(line.startswith("flow ") for line in out.splitlines())


def test_every_step_is_a_line_after_its_node():
    setup = [
        BatchStep(do="ip", node="client", lines=["link add eth0 type wire", "link set eth0 up"], origin=None),
        BatchStep(do="tc", node="router", lines=["qdisc add dev eth0 root fq"], origin=None),
        WriteStep(do="write", node=None, path="/proc/sys/x", value="1", origin=None),
        WriteStep(do="write", node=None, path="trace", value="".join(f"{i}\n" for i in range(5000)), origin=None),
        EthtoolStep(do="ethtool", node="client", args=["-K", "eth0", "tso", "off"], origin=None),
        ReachStep(do="reach", node="client", address="10.0.1.2", timeout_ns=10**9, origin=None),
    ]
    short = scenario.load("L100M", ["test.name=voip-1up", "test.length=10", "test.delay=2"])
    plan = build(short, Virtual.capabilities)
    assert lines_of(plan.model_copy(update={"setup": setup})) == [
        "client: ip link add eth0 type wire",
        "client: ip link set eth0 up",
        "router: tc qdisc add dev eth0 root fq",
        "kernel: echo 1 > /proc/sys/x",
        "kernel: echo 0\n1\n2\n3\n4\n… 4995 more lines > trace",
        "client: ethtool -K eth0 tso off",
        "client: ping 10.0.1.2 until it answers, at most 1 s",
        "flow upload::1: client connects to server, client sends, cubic, 2 s to 12 s",
        "ping icmp: client to server, every 0.2 s, 0 s to 14 s",
        "ping udp: client to server, every 0.2 s, 0 s to 14 s",
        "datagrams voip: client to server, 172 B every 0.02 s (0.0688 Mbit/s), 0 s to 14 s",
    ]


def test_a_stream_of_datagrams_prints_its_paces() -> None:
    rows = [
        {"name": "camera", "interval": "40ms", "burst": 9},
        {"name": "steps", "rate": [[0, "1mbit"], [1, 0], [2, "4mbit"]], "size": 1000},
    ]
    source = {"testbed": {"preset": "L100M"}, "test": {"delay": 1, "length": 10, "datagrams": rows}}
    assert lines_of(build(scenario.load(source), Virtual.capabilities))[-2:] == [
        "datagrams camera: client to server, 9 x 1200 B every 0.04 s (2.16 Mbit/s), 1 s to 11 s",
        "datagrams steps: client to server, 1000 B every 0.008 s (1 Mbit/s) from 1 s, every 0.002 s (4 Mbit/s)"
        " from 3 s, 1 s to 11 s",
    ]
