# SPDX-License-Identifier: Apache-2.0
"""A test's exit status and lines → its verdict, the reason, its cases."""

import subprocess

import pytest

from hourglass.selftests.build import MODPROBE
from hourglass.selftests.verdict import LONGEST, SelftestVerdict, verdict


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        ("exit 0", "TAP version 13\nok 1 ipv4\nok 2 ipv6\n", SelftestVerdict("ok", "", 2)),
        ("exit 0", "OK\n", SelftestVerdict("ok")),
        ("exit 0", "ok 1 a\nnot ok 2 b\n", SelftestVerdict("missed", "not ok 2 b", 1, 1)),
        ("exit 1", "TEST: a   [ OK ]\nTEST: b   [FAIL]\n", SelftestVerdict("missed", "TEST: b [FAIL]", 1, 1)),
        ("exit 0", "ok 1 # SKIP no such device\n", SelftestVerdict("skipped", "ok 1 # SKIP no such device")),
        (
            "exit 0",
            "Error: Failed to load TC action module.\nok 1 a # skipped - teardown\nok 2 b # skipped\n",
            SelftestVerdict("skipped", "Error: Failed to load TC action module."),
        ),
        ("exit 1", "a    [ OK ]\nb    [ fail ] expected 2\n", SelftestVerdict("missed", "b [ fail ] expected 2", 1, 1)),
        ("exit 4", "SKIP: no ip tool\n", SelftestVerdict("skipped", "SKIP: no ip tool")),
        ("exit 4", "", SelftestVerdict("skipped", "no output")),
        ("exit 4", "Error: Unknown device type.\nleaving\n", SelftestVerdict("skipped", "Error: Unknown device type.")),
        ("exit 4", "this machine is not it\n\n", SelftestVerdict("skipped", "this machine is not it")),
        (
            "exit 255",
            "Missing xdp_dummy.bpf.o. Run 'make' first",
            SelftestVerdict("skipped", "Missing xdp_dummy.bpf.o. Run 'make' first"),
        ),
        (
            "exit 255",
            "./gone: No such file or directory\n",
            SelftestVerdict("skipped", "./gone: No such file or directory"),
        ),
        ("exit 1", "ok 1 a\n./b: c: command not found\n", SelftestVerdict("missed", "./b: c: command not found", 1)),
        ("exit 1", "Error: Unknown device type.\n", SelftestVerdict("skipped", "Error: Unknown device type.")),
        (
            "exit 1",
            "ok 1 a\nnot ok 2 b\n# error c\nsh: /sys/bus/netdevsim/new_device: nonexistent\n",
            SelftestVerdict("missed", "not ok 2 b; sh: /sys/bus/netdevsim/new_device: nonexistent", 1, 1),
        ),
        ("exit 1", "not ok 1 ipv4\nexpected: 1460\n", SelftestVerdict("missed", "not ok 1 ipv4; expected: 1460", 0, 1)),
        ("SIGSEGV", "", SelftestVerdict("missed", "SIGSEGV: no output")),
        ("running", "ok 1 a\n", SelftestVerdict("missed", "not over after 60 s", 1)),
    ],
)  # fmt: skip
def test_a_verdict_is_of_the_exit_status_and_the_lines(status: str, output: str, expected: SelftestVerdict) -> None:
    assert verdict(status, output, 60) == expected


def test_a_reason_fits_a_row_of_a_table() -> None:
    outcome = verdict("exit 1", f"\x1b[31mnot ok 1 a | {'b' * 300}\n", 60)
    assert outcome.reason.startswith("not ok 1 a / b")
    assert len(outcome.reason) == LONGEST


def test_modprobe_of_the_root_refuses_only_modules_that_test_the_kernel() -> None:
    command = ["sh", "-c", MODPROBE, "modprobe", "-q"]
    assert subprocess.run([*command, "vrf"], check=False).returncode == 0
    refused = subprocess.run([*command, "test_bpf"], capture_output=True, text=True, check=False)
    outcome = verdict(f"exit {refused.returncode}", f"test_bpf: [FAIL]\n{refused.stderr}", 10)
    assert (outcome.word, outcome.reason) == ("skipped", "modprobe: FATAL: Module not found: -q test_bpf")
