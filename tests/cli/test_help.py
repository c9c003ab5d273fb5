# SPDX-License-Identifier: Apache-2.0
"""The help of every command."""

import os
import re
import subprocess
import sys

import pytest

from cli.golden import WIDTH
from hourglass.cli.commands import COMMANDS as COMMANDS_OF_ROOT
from hourglass.cli.commands import KERNEL
from hourglass.cli.exit_status import guarded
from hourglass.cli.help import _command, _listed_command

COMMANDS = [
    [], ["run"], ["exec"], ["box"], ["list"], ["show"], ["doctor"], ["check"], ["compare"], ["diff"], ["explain"],
    ["plot"], ["report"], ["export"], ["study"], ["score"], ["search"], ["tune"], ["mcp"], ["link", "from"],
    ["kernel"], ["kernel", "build"], ["kernel", "bisect"], ["kernel", "patch"], ["kernel", "tune"], ["kernel", "new"],
    ["kernel", "check-hooks"], ["kernel", "selftests"], ["kernel", "source"], ["kernel", "remove"],
]  # fmt: skip


@pytest.fixture
def help_of(capsys, monkeypatch):
    """Return a function that returns the help of a command."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    def help_of(*command):
        assert guarded([*command, "-h"]) == 0
        short, _ = capsys.readouterr()
        assert guarded([*command, "--help"]) == 0
        assert capsys.readouterr().out == short
        return short

    return help_of


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_reads_well(help_of, command):
    text = help_of(*command)
    assert text.startswith(f"Usage: {' '.join(['hourglass', *command])} ")
    assert not re.search(r"[{}]|<\w|\w>|\[OPTIONS\].*\[OPTIONS\]|None", text)
    assert max(map(len, text.splitlines())) <= WIDTH
    examples = text.partition("Examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  {' '.join(['hourglass', *command])}") for line in examples)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command], ids=" ".join)
def test_each_command_that_makes_runs_can_require_a_sandbox(help_of, command):
    options = set(re.findall(r"--[\w-]+", help_of(*command)))
    assert ("--require-sandbox" in options) == bool({"--seed", "--seeds", "--jobs"} & options)


def test_help_does_not_depend_on_the_order_of_requests(help_of):
    """click keeps a command's help option."""
    _command("exec", *COMMANDS_OF_ROOT["exec"]).make_context("exec", ["L100M", "client"])
    help_of("exec")


def test_every_command_is_in_the_list(help_of):
    listed = re.findall(r"^  (\w+) {2,}", help_of(), re.MULTILINE)
    assert set(listed) == {command[0] for command in COMMANDS if command}


def test_commands_are_grouped(help_of):
    headings = re.findall(r"^(\w.*):$", help_of(), re.MULTILINE)
    assert headings[:5] == ["Make a run", "Look something up", "Understand runs", "Many runs", "Kernels"]
    assert "Commands" not in headings


def test_a_list_has_the_first_sentences_of_its_commands():
    """They are read from the sources."""
    for name, (group, position) in (COMMANDS_OF_ROOT | KERNEL).items():
        sentence = _listed_command(name, group, position).help or ""
        paragraph = " ".join((_command(name, group, position).help or "").partition("\n\n")[0].split())
        assert sentence == (paragraph if group else "")


@pytest.mark.parametrize(
    ("words", "replacement"),
    [
        ("sweep a.toml -j 2 --no-picture", "study a.toml -j 2 --no-picture"),
        ("suite fairness --cc cubic,a.c --quick", "study fairness --cc cubic,a.c --quick"),
        ("shell --kernel 6.12 L100M server", "exec -it --kernel 6.12 L100M server"),
        ("kernel list --all", "list kernels --all"),
    ],
)
def test_earlier_commands_pass_their_arguments_on(monkeypatch, words, replacement):
    calls = []
    monkeypatch.setattr("hourglass.cli.earlier.call", lambda command: calls.append(" ".join(command)))
    assert guarded(words.split()) == 0
    assert calls == [replacement]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("exec", "Usage: hourglass exec SCENARIO NODE [-- COMMAND...] [OPTIONS]"),
        ("plot", "--picture FILE"),
        ("run", "Usage: hourglass run SCENARIO [OPTIONS]"),
        ("run", "--engine virtual|native"),
        ("compare", "Usage: hourglass compare RUN...|SCENARIO... [OPTIONS]"),
        ("plot", "Usage: hourglass plot KIND RUN... [OPTIONS]"),
        ("plot", "candlestick  goodput and latency"),
        ("study", "--keep records|summary"),
        ("study", "Default: records."),
        ("export", "--format flent|perfetto|qlog|wireshark|csv|parquet"),
        ("list", "scenarios, testbeds, tests, kernels, ccs"),
    ],
)
def test_choices_are_named(help_of, command, line):
    assert line in help_of(command)


def test_a_shell_completes_commands_and_scenarios():
    def completed(*command_line):
        command = [sys.executable, "-c", "from hourglass.cli import main; main()"]
        variables = {"_HOURGLASS_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(command_line),
                 "COMP_CWORD": str(len(command_line) - 1)}  # fmt: skip
        result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        return result.stdout.split()

    assert completed("hourglass", "comp") == ["compare"]
    assert "L100M" in completed("hourglass", "run", "L1")
