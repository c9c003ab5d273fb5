# SPDX-License-Identifier: Apache-2.0
"""What every command says of itself."""

import os
import re
import subprocess
import sys

import pytest

from cli.golden import WIDTH
from hourglass.cli.errors import guarded

COMMANDS = [
    [], ["run"], ["exec"], ["shell"], ["agree"], ["list"], ["show"], ["doctor"], ["check"], ["compare"], ["diff"],
    ["plot"], ["report"], ["export"], ["sweep"], ["suite"], ["paper"], ["kernel"], ["kernel", "build"],
    ["kernel", "ab"], ["kernel", "bisect"], ["kernel", "patch"], ["kernel", "tune"], ["kernel", "list"],
    ["kernel", "selftests"],
]  # fmt: skip


@pytest.fixture
def told(capsys, monkeypatch):
    """The help of a command."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    def told(*words):
        assert guarded([*words, "-h"]) == 0
        short, _ = capsys.readouterr()
        assert guarded([*words, "--help"]) == 0
        assert capsys.readouterr().out == short
        return short

    return told


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_reads_well(told, words):
    text = told(*words)
    assert text.startswith(f"Usage: {' '.join(['hourglass', *words])} ")
    assert not re.search(r"[{}]|<\w|\w>|\[OPTIONS\].*\[OPTIONS\]|None", text)
    assert max(map(len, text.splitlines())) <= WIDTH
    examples = text.partition("Examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  {' '.join(['hourglass', *words])}") for line in examples)


def test_every_command_is_tried_here(told):
    listed = re.findall(r"^  (\w+) {2,}", told(), re.MULTILINE)
    assert set(listed) == {words[0] for words in COMMANDS if words}


def test_commands_stand_in_groups(told):
    headings = re.findall(r"^(\w.*):$", told(), re.MULTILINE)
    assert headings[:5] == ["Make a run", "Look things up", "Understand runs", "Many runs", "Kernels"]
    assert "Commands" not in headings


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", "Usage: hourglass run SCENARIO [OPTIONS]"),
        ("run", "--engine virtual|native"),
        ("compare", "Usage: hourglass compare RUN... [OPTIONS]"),
        ("plot", "Usage: hourglass plot KIND RUN... [OPTIONS]"),
        ("plot", "candlestick  goodput and latency"),
        ("sweep", "--keep records|summary"),
        ("sweep", "Default: records."),
        ("export", "--format flent|csv|parquet"),
        ("list", "scenarios, testbeds, tests, kernels, ccs"),
    ],
)
def test_choices_are_named(told, command, words):
    assert words in told(command)


def test_a_shell_completes_commands_and_scenarios():
    def completed(*words):
        command = [sys.executable, "-c", "from hourglass.cli import main; main()"]
        asked = {"_HOURGLASS_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words),
                 "COMP_CWORD": str(len(words) - 1)}  # fmt: skip
        done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert completed("hourglass", "comp") == ["compare"]
    assert "L100M" in completed("hourglass", "run", "L1")
