# SPDX-License-Identifier: Apache-2.0
"""`hourglass exec`: one command in a node of a scenario's testbed, as if it ran here."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hourglass import runner, scenario
from hourglass.cli import progress
from hourglass.errors import GuestError, InputError
from hourglass.results.apps import Program
from hourglass.results.files import APPS_FOLDER
from hourglass.scenario import Scenario
from hourglass.scenario.app_values import DEBIAN_ROOT
from hourglass.scenario.check_apps import END_S, NONE
from hourglass.scenario.check_streams import check_node

NAME = "exec"
KILLED = 128
"""A shell's status of a program that a signal ended is this and the signal's number."""


def execute(
    source: str,
    node: str,
    command: Sequence[str],
    settings: list[str],
    seed: int | None,
    kernel: str | None,
    root: str | None,
    packages: list[str],
    out: Path | None,
) -> int:
    """Runs the command; gives its exit status. The scenario's own programs run beside it, its test does not."""
    words = list(command[1:]) if command[:1] == ["--"] else list(command)
    if words[:1] and words[0].startswith("-"):
        raise InputError("COMMAND", words[0], "is no program's name; options of exec stand before SCENARIO")
    wanted = with_command(scenario.load(source, settings, seed=seed, kernel=kernel), node, words, root, packages)
    with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary, progress.shown() as shown:
        try:
            done = runner.run(wanted, out or Path(temporary) / "run", progress=shown, force=out is None)
        except GuestError as error:
            raise (
                error if out else GuestError(error.reason, tail=error.tail)
            ) from None  # its log is gone with the folder
        written = {one: (done.path / APPS_FOLDER / f"{NAME}.{one}").read_bytes() for one in ("stdout", "stderr")}
        ended = done.apps[NAME]
    sys.stdout.buffer.write(written["stdout"])
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(written["stderr"])
    sys.stderr.buffer.flush()
    return status(ended)


def status(ended: Program) -> int:
    """The exit status of a program, as a shell has it."""
    last = ended.last
    if last is None or (last["exit"] is None and last["signal"] is None):
        return KILLED
    return int(last["exit"]) if last["exit"] is not None else KILLED + int(last["signal"])


def with_command(
    base: Scenario,
    node: str,
    command: list[str],
    root: str | None,
    packages: Sequence[str],
    name: str = NAME,
    length_s: int = END_S,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Scenario:
    """The scenario with the command as a program more, of that name, and as the whole test."""
    check_node("NODE", node, [one.name for one in base.testbed.node])
    data: dict[str, Any] = base.model_dump(mode="json")
    ready = [one["name"] for one in data["app"] if one["ready"]]
    own = {"name": name, "node": node, "command": command, "env": dict(env), "after": ready, "expect": "any"}
    if root is not None:
        own["root"] = root if root.startswith(DEBIAN_ROOT) else str(Path(root).absolute())
    data["apps"]["packages"] = [*data["apps"]["packages"], *packages]
    data["app"] = [*(one for one in data["app"] if one["name"] != name), own]
    data["test"] = {
        "name": NONE,
        "length": length_s,
        "client": data["test"]["client"],
        "server": data["test"]["server"],
    }
    return scenario.load(data)
