# SPDX-License-Identifier: Apache-2.0
"""`show --apply all`: the script sets up a host like its node and restores its state. The host is a namespace."""

import subprocess
from pathlib import Path

import pytest

from hourglass import scenario
from hourglass.cli.apply_all import script
from hourglass.cli.exit_status import guarded

HOST = (
    "ip link add enp3s0 mtu 1400 txqueuelen 100 type veth peer name enp4s0; ip link set enp3s0 up;"
    " ip link set enp4s0 up; ethtool -K enp3s0 gro off; sysctl -qw net.ipv4.tcp_pacing_ss_ratio=150"
)
LOOK = (
    "tc qdisc; ip -o link | cut -d' ' -f2-; ethtool -k enp3s0; cat /sys/class/net/*/mtu;"
    " sysctl net.ipv4.tcp_pacing_ss_ratio net.ipv4.tcp_pacing_ca_ratio net.ipv4.tcp_congestion_control"
)
SETTINGS = (
    'testbed.node.0.real={ eth0 = "enp3s0" }',
    "stack.pacing.ss=180",
    "stack.cc=reno",
    "stack.client.device.eth0.mtu=1300",
    "stack.client.device.eth0.tso=false",
)


def host(*lines: str) -> subprocess.CompletedProcess[str]:
    """Run lines on a new host. Skips the test if this machine permits no namespaces."""
    text = "; ".join(("mount -t sysfs none /sys", HOST, *lines))
    result = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", text], capture_output=True, text=True, check=False
    )
    if "unshare" in result.stderr or "type veth" in result.stderr:
        pytest.skip(f"no namespaces here ({result.stderr.strip()}): run it as root")
    return result


@pytest.fixture
def testbed_script(tmp_path: Path) -> Path:
    path = tmp_path / "testbed.sh"
    path.write_text(script(scenario.load("L100M", list(SETTINGS))), "utf-8")
    return path


def test_undo_restores_the_earlier_state_of_a_host(testbed_script: Path, tmp_path: Path) -> None:
    state = f"HOURGLASS_STATE={tmp_path / 'state'}"
    result = host(
        f"({LOOK}) > {tmp_path}/before", f"{state} sh {testbed_script} apply client", f"({LOOK}) > {tmp_path}/applied",
        f"{state} sh {testbed_script} undo && ({LOOK}) > {tmp_path}/after",
    )  # fmt: skip
    before, applied, after = ((tmp_path / name).read_text() for name in ("before", "applied", "after"))
    assert after == before, result.stderr
    for word in ("qdisc htb 1: dev enp3s0 root", "ss_ratio = 180", "control = reno", "mtu 1300"):
        assert word in applied, result.stderr
        assert word not in before
    assert "tcp-segmentation-offload: off" in applied
    assert "tcp-segmentation-offload: on" in before
    assert not (tmp_path / "state").exists()


def test_a_line_that_fails_undoes_those_before_it(testbed_script: Path, tmp_path: Path) -> None:
    text = testbed_script.read_text().replace(
        "sysctl -w net.ipv4.tcp_pacing_ca_ratio=120", "sysctl -w net.ipv4.no_such=1", 1
    )
    testbed_script.write_text(text, "utf-8")
    state = f"HOURGLASS_STATE={tmp_path / 'state'}"
    run = f"{state} sh {testbed_script} apply client; echo status $?"
    result = host(f"({LOOK}) > {tmp_path}/before", run, f"({LOOK}) > {tmp_path}/after")
    assert "status 0" not in result.stdout, result.stderr
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text(), result.stderr
    assert not (tmp_path / "state").exists()


def test_a_custom_qdisc_is_not_replaced(testbed_script: Path, tmp_path: Path) -> None:
    state = f"HOURGLASS_STATE={tmp_path / 'state'}"
    custom = "tc qdisc add dev enp3s0 root handle 7: tbf rate 1gbit burst 100k limit 200k"
    result = host(
        custom,
        f"({LOOK}) > {tmp_path}/before",
        f"{state} sh {testbed_script} apply client",
        f"({LOOK}) > {tmp_path}/after",
    )
    assert "enp3s0 has a qdisc that Hourglass did not set: qdisc tbf 7:" in result.stderr
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


def test_every_node_has_its_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["show", "home", "--apply", "all"]) == 0
    text = capsys.readouterr().out
    nodes = [node.name for node in scenario.load("home").testbed.node]
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith('  "apply ')] == [
        f"apply {node}" for node in nodes
    ]
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
