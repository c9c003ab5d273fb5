# SPDX-License-Identifier: Apache-2.0
"""Programs in nodes: unmodified, in virtual time, the same bytes twice, from wherever their root lies."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan_apps import Root
from hourglass.engine.approot import ready
from hourglass.results.recording import Recording
from hourglass.scenario import load

pytestmark = pytest.mark.guest

SCRIPT = "hostname -s 2>/dev/null || cat /etc/hostname; cat /etc/hosts; ls -laR /etc | cksum; ping -c 2 -i 5 server"
"""What would show where a root lies, whose it is, or that time is real."""


def run(kernel: str, place: Path, root: str) -> Recording:
    described: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"preset": "L100M"},
        "apps": {"root": root},
        "app": [
            {"node": "client", "name": "look", "command": ["sh", "-c", SCRIPT]},
            {"node": "server", "name": "fail", "command": ["sh", "-c", "sleep 3; exit 7"], "expect": 7},
            {"node": "server", "name": "stay", "command": ["sleep", "1000"], "expect": "running"},
        ],
    }
    return runner.run(load(described), place)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_run_is_the_same_with_another_copy_of_its_root(kernel: str, tmp_path: Path) -> None:
    made = ready(Root(kind="debian", place="12", packages=[])).folder
    copy = tmp_path / "another folder" / "root"
    shutil.copytree(made, copy, symlinks=True)
    runs = [run(kernel, tmp_path / "one", "debian:12"), run(kernel, tmp_path / "two", str(copy))]
    assert runs[0].info.digest == runs[1].info.digest
    for one in runs:
        assert [(app.status, check.ok) for app, check in zip(one.summary.apps, one.summary.checks, strict=True)] == [
            ("exit 0", True),
            ("exit 7", True),
            ("running", True),
        ]
        assert "10.0.1.2 server" in one.apps["look"].stdout
        assert "2 packets transmitted, 2 received" in one.apps["look"].stdout
        assert one.info.virtual_s < 6
        assert one.summary.apps[1].end_s == pytest.approx(3, abs=0.001)


def test_what_is_told_to_stop_is_judged_by_its_answer(tmp_path: Path) -> None:
    answers = [("exit 0", 0, True), ("exit 3", 0, False), ("exit 3", "running", True)]
    apps = [
        {
            "node": "client",
            "command": ["sh", "-c", f"trap '{says}' TERM; sleep 9 & wait"],
            "stop": 1,
            "expect": expected,
        }
        for says, expected, _ in answers
    ]
    plain = {"node": "client", "command": ["sleep", "9"], "stop": 1}
    described = {
        "testbed": {"preset": "L100M"}, "apps": {"root": "debian:12"},
        "app": [{**one, "name": f"a{n}"} for n, one in enumerate([*apps, plain, plain | {"expect": "SIGTERM"}])],
    }  # fmt: skip
    made = runner.run(load(described), tmp_path / "run").summary
    assert [one.ok for one in made.checks] == [*(ok for *_, ok in answers), True, True]
    assert [one.status for one in made.apps] == ["exit 0", "exit 3", "running", "running", "SIGTERM"]


def test_tcpdump_has_the_user_it_becomes(tmp_path: Path) -> None:
    """Debian's gives up root's rights for those of a user that its package's script adds."""
    words = "tcpdump -n -i eth0 --immediate-mode -c 2 -w /tmp/seen.pcap icmp & sleep 1; ping -c 1 server; wait $!"
    described = {
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["iputils-ping", "tcpdump"]},
        "app": [{"node": "client", "name": "tap", "command": ["sh", "-c", words], "expect": 0}],
    }
    made = runner.run(load(described), tmp_path / "run")
    assert "2 packets captured" in made.apps["tap"].stderr
    assert made.summary.checks[0].ok


@pytest.mark.parametrize("kernel", KERNELS)
def test_calls_are_counted_by_program_and_start(kernel: str, tmp_path: Path) -> None:
    code = "import os, sys\nfor _ in range(int(sys.argv[1])): os.getppid()\nsys.exit(1)"
    few, many = ({"node": "client", "name": name, "command": ["python3", "-B", "-c", code, name[1:]], "expect": "any"}
                 for name in ("n0000", "n1000"))  # fmt: skip
    both = {"node": "client", "name": "both", "command": ["sh", "-c", f"python3 -B -c '{code}' 0500; exit 0"]}
    described: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["python3"]},
        "app": [few, {**many, "restart": 1}, both],
    }
    one = runner.run(load(described), tmp_path / "run")
    starts = {name: app.starts["calls"].to_list() for name, app in one.apps.items()}
    ((least,), (first, second), (shell,)) = starts.values()
    assert least > 100
    assert first == least + 1000
    assert second == first
    assert shell > least + 500  # a child's are its program's
