# SPDX-License-Identifier: Apache-2.0
"""Programs in nodes: unmodified, in virtual time, with the same bytes twice, independent of the path of their root."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan.apps import Root
from hourglass.engine.program_root import ready
from hourglass.errors import InputError
from hourglass.results.recording import Recording
from hourglass.scenario import load

pytestmark = pytest.mark.guest

SCRIPT = "hostname -s 2>/dev/null || cat /etc/hostname; cat /etc/hosts; ls -laR /etc | cksum; ping -c 2 -i 5 server"
"""A script with an output that depends on the path and owner of a root, and on real time, if it can see them."""


def run(kernel: str, folder: Path, root: str) -> Recording:
    data: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"preset": "L100M"},
        "apps": {"root": root},
        "app": [
            {"node": "client", "name": "look", "command": ["sh", "-c", SCRIPT]},
            {"node": "server", "name": "fail", "command": ["sh", "-c", "sleep 3; exit 7"], "expect": 7},
            {"node": "server", "name": "stay", "command": ["sleep", "1000"], "expect": "running"},
        ],
    }
    return runner.run(load(data), folder)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_run_is_the_same_with_another_copy_of_its_root(kernel: str, tmp_path: Path) -> None:
    root_folder = ready(Root(kind="debian", place="12", packages=[])).folder
    copy = tmp_path / "another folder" / "root"
    shutil.copytree(root_folder, copy, symlinks=True)
    runs = [run(kernel, tmp_path / "one", str(root_folder)), run(kernel, tmp_path / "two", str(copy))]
    assert runs[0].info.digest == runs[1].info.digest
    for recording in runs:
        assert [
            (app.status, check.ok) for app, check in zip(recording.summary.apps, recording.summary.checks, strict=True)
        ] == [
            ("exit 0", True),
            ("exit 7", True),
            ("running", True),
        ]
        assert "10.0.1.2 server" in recording.apps["look"].stdout
        assert "2 packets transmitted, 2 received" in recording.apps["look"].stdout
        assert recording.info.virtual_s < 6
        assert recording.summary.apps[1].end_s == pytest.approx(3, abs=0.001)


def test_the_verdict_on_a_stopped_program_follows_its_end(tmp_path: Path) -> None:
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
    data = {
        "testbed": {"preset": "L100M"}, "apps": {"root": "debian:12"},
        "app": [{**app, "name": f"a{n}"} for n, app in enumerate([*apps, plain, plain | {"expect": "SIGTERM"}])],
    }  # fmt: skip
    summary = runner.run(load(data), tmp_path / "run").summary
    assert [check.ok for check in summary.checks] == [*(ok for *_, ok in answers), True, True]
    assert [app.status for app in summary.apps] == ["exit 0", "exit 3", "running", "running", "SIGTERM"]


def test_tcpdump_has_the_user_it_becomes(tmp_path: Path) -> None:
    """Debian's tcpdump drops root rights and becomes a user that its package's script adds. The received packet has
    the checksum of the whole segment [the pseudo header's, which the sender's kernel leaves to the NIC]."""
    capture = "tcpdump -n -i eth0 --immediate-mode -c 2 -w /tmp/seen.pcap icmp & sleep 1; ping -c 1 server; wait $!"
    sums = "tcpdump -n -vv -i eth0 --immediate-mode -c 1 tcp"
    rows = [("client", "tap", ["sh", "-c", capture]), ("server", "sums", sums.split())]
    data = {
        "testbed": {"preset": "L100M"},
        "test": {"name": "tcp_nup", "length": 1, "delay": 1},
        "apps": {"packages": ["iputils-ping", "tcpdump"]},
        "app": [
            {"node": node, "name": name, "user": "root", "command": command, "expect": 0}
            for node, name, command in rows
        ],
    }
    recording = runner.run(load(data), tmp_path / "run")
    assert "2 packets captured" in recording.apps["tap"].stderr
    assert "(correct)" in recording.apps["sums"].stdout
    assert all(check.ok for check in recording.summary.checks)


@pytest.mark.parametrize("kernel", KERNELS)
def test_calls_are_counted_by_program_and_start(kernel: str, tmp_path: Path) -> None:
    code = "import os, sys\nfor _ in range(int(sys.argv[1])): os.getppid()\nsys.exit(1)"
    few, many = ({"node": "client", "name": name, "command": ["python3", "-B", "-c", code, name[1:]], "expect": "any"}
                 for name in ("n0000", "n1000"))  # fmt: skip
    both = {"node": "client", "name": "both", "command": ["sh", "-c", f"python3 -B -c '{code}' 0500; exit 0"]}
    data: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["python3"]},
        "app": [few, {**many, "restart": 1}, both],
    }
    recording = runner.run(load(data), tmp_path / "run")
    starts = {name: app.starts["calls"].to_list() for name, app in recording.apps.items()}
    ((least,), (first, second), (shell,)) = starts.values()
    assert least > 100
    assert first == least + 1000
    assert second == first
    assert shell > least + 500  # a child's calls count for its program


def test_a_measurement_that_loses_everything_is_a_missed_check(tmp_path: Path) -> None:
    """irtt ends with 0 although no reply arrives. A script replaces it."""
    irtt = {"text": "#!/bin/sh\necho 'packets sent/received: 1/0 (100.00% loss)'", "executable": True}
    data = {
        "testbed": {"preset": "L100M"},
        "app": [
            {"name": "ping", "node": "client", "command": ["ping", "-c", "2", "-i", "0.1", "server"]},
            {"name": "irtt", "node": "client", "command": ["/srv/irtt", "client"], "files": {"/srv/irtt": irtt}},
        ],
    }
    summary = runner.run(load(data), tmp_path / "run").summary
    ends = {app.id: (app.status, app.lost) for app in summary.apps}
    assert (ends["ping"], ends["irtt"]) == (("exit 0", 0), ("exit 0", 1))
    assert {check.figure: check.ok for check in summary.checks} == {
        "app.ping": True, "app.irtt": False
    }  # fmt: skip
    assert [(warning.id, warning.text) for warning in summary.warnings] == [
        ("program-total-loss", "irtt: its only packet was lost")
    ]


def test_irtt_runs_with_its_default_options(tmp_path: Path) -> None:
    """It takes equal times of receipt and reply for one time, and such a reply for a short one. A further read of a
    clock takes 1 ns."""
    client = ["irtt", "client", "-d", "3s", "server"]
    data = {
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["irtt"]},
        "app": [
            {"name": "server", "node": "server", "command": ["irtt", "server"], "ready": {"listen": "udp:2112"}},
            {"name": "irtt", "node": "client", "command": client, "after": ["server"]},
        ],
    }
    run = runner.run(load(data), tmp_path / "run")
    assert {check.figure: check.ok for check in run.summary.checks} == {"app.server": True, "app.irtt": True}
    assert "packets sent/received: 3/3 (0.00% loss)" in run.apps["irtt"].stdout


POLLS = """
import mmap, os
rounds = 0
shared = mmap.mmap(-1, 4096)
if not os.fork():
    shared[0] = 1
    os._exit(0)
while not shared[0]: {work}
print("seen")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "warnings"), [("pass", 0), ("rounds += 1", 1)])
def test_a_program_that_polls_memory_lets_others_run(work: str, warnings: int, tmp_path: Path) -> None:
    """PostgreSQL does so until the workers of a parallel index build have started. One that counts its rounds is not
    proven to poll: it may compute."""
    data = {
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["python3"]},
        "app": [{"name": "polls", "node": "client", "command": ["python3", "-B", "-c", POLLS.format(work=work)]}],
    }
    first, second = (runner.run(load(data), tmp_path / name) for name in ("one", "two"))
    assert first.apps["polls"].stdout == "seen\n"
    assert [line for line in first.info.warnings if "polled memory" in line] == first.info.warnings
    assert len(first.info.warnings) == warnings
    assert first.info.digest == second.info.digest


def test_the_last_lines_of_a_program_that_others_wait_for_are_quoted(tmp_path: Path) -> None:
    script = "seq 9; echo reading /etc/server.conf; echo 'line 3: unknown word' >&2; exit 1"
    data = {
        "testbed": {"preset": "L100M"},
        "app": [
            {"name": "server", "node": "server", "command": ["sh", "-c", script], "ready": {"listen": "tcp:80"}},
            {"name": "client", "node": "client", "command": ["true"], "after": ["server"]},
        ],
    }
    with pytest.raises(InputError) as failed:
        runner.run(load(data), tmp_path / "run")
    assert str(failed.value) == (
        f"app.0 = {('sh -c ' + script)!r}: on node server, server ended (exit status 1) before it was ready, "
        "and client waits for it; its last output: 9 | reading /etc/server.conf | line 3: unknown word; "
        f"all of it: {tmp_path}/run.failed/apps/server.stdout and .stderr"
    )
    assert (tmp_path / "run.failed/apps/server.stdout").read_text().startswith("1\n2\n")
    about = json.loads((tmp_path / "run.failed/run.json").read_text())
    assert (about["code"], about["fields"]["program"]) == ("program-not-ready", "server")


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"command": ["no-such-program"]}, "program-missing", "no-such-program: the root lacks this program"),
        ({"user": "nobody-here"}, "user-missing", "its user nobody-here is not in the /etc/passwd of its root"),
        ({"folder": "/nowhere"}, "system", "its folder /nowhere: No such file or directory"),
        (
            {"ready": {"file": "/x", "within": 1}},
            "program-late",
            "sleep was not ready within 1 s, waiting for the file /x; it printed nothing",
        ),
    ],
)
def test_a_program_that_does_not_start_has_a_code(tmp_path: Path, change: dict[str, Any], code: str, text: str) -> None:
    app = {"node": "client", "command": ["sleep", "9"]} | change
    with pytest.raises(InputError) as failed:
        runner.run(load({"testbed": {"preset": "L100M"}, "app": [app]}), tmp_path / "run")
    assert failed.value.code == code
    assert text in str(failed.value)


@pytest.mark.parametrize("kernel", KERNELS)
def test_packages_are_configured_and_files_have_their_owners(kernel: str, tmp_path: Path) -> None:
    """FRR's scripts make a user with two groups, PAM's scripts the settings of vtysh, and tmpfiles.d a folder in /run.
    An ordinary user has a name, opens its own output, and may not read what belongs to others. A named user has its
    home."""
    script = """
        id -nG frr
        stat -c "%U:%G %a %n" /etc/shadow /etc/frr /etc/frr/frr.conf /run/frr /run/lock /usr/bin/chage
        grep -c pam_permit /etc/pam.d/common-auth
        dpkg-query -f '${db:Status-Abbrev}\\n' -W | sort -u
        awk 1 < /dev/null && readlink /usr/bin/awk
        dpkg-query -f '${Conffiles}' -W frr | grep -c /etc/frr/frr.conf
        cut -d " " -f 2,3 /etc/mtab | head -n 1
    """
    looks = "whoami; id -gn; echo $HOME; echo line >/dev/stdout; echo line >/dev/stderr; exec cat /etc/frr/frr.conf"
    apps = [
        {"name": "root", "node": "client", "user": "root", "command": ["sh", "-ec", script]},
        {"name": "user", "node": "client", "command": ["sh", "-c", looks], "expect": 1},
        {"name": "home", "node": "client", "user": "frr", "command": ["sh", "-c", "echo $HOME; getent passwd frr"]},
    ]
    data = {"kernel": kernel, "testbed": {"preset": "L100M"}, "apps": {"packages": ["frr"]}, "app": apps}
    recording = runner.run(load(data), tmp_path / "run")
    assert recording.apps["root"].stdout.splitlines() == [
        "frr frrvty",
        "root:shadow 640 /etc/shadow",
        "frr:frr 750 /etc/frr",
        "frr:frr 640 /etc/frr/frr.conf",
        "frr:frr 755 /run/frr",
        "root:root 1777 /run/lock",
        "root:shadow 2755 /usr/bin/chage",
        "1",
        "ii ",
        "/etc/alternatives/awk",
        "1",
        "/ overlay",
    ]
    assert recording.apps["user"].stdout.split() == ["user", "user", "/tmp", "line"]
    assert recording.apps["user"].stderr == "line\ncat: /etc/frr/frr.conf: Permission denied\n"
    home, entry = recording.apps["home"].stdout.split("\n", 1)
    assert home == entry.split(":")[5] != "/tmp"
    assert recording.summary.warnings == []
