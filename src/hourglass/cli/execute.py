# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass exec`: a command in a node of a scenario's testbed, with its output and exit status."""

from typing import Annotated

import typer

from hourglass import scenario
from hourglass.cli import notice
from hourglass.cli.guest_command import NAME, Echo, report_warnings, run, status, with_command, words
from hourglass.cli.help import examples
from hourglass.cli.options import KeptRun, Kernel, Packages, RequireSandbox, Seed, Settings, Source, User
from hourglass.errors import InputError


@examples(
    """\
hourglass exec L100M client -- ping -c 3 server
hourglass exec --seed 2 L100M client -- ping -c 100 -i 0.1 server
hourglass exec --package curl my-office.toml client -- curl -s http://server/
hourglass exec -it L100M""",
    allow_interspersed_args=False,
)
def execute(
    source: Source,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="The node of the command; of a shell: the test's client.")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="The program and its arguments.")
    ] = None,
    terminal: Annotated[
        bool, typer.Option("-it", help="Open a shell instead, in real time; nothing is stored.")
    ] = False,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="ROOT", help="Root of the program: debian:12, a folder or an image; default: apps.root."),
    ] = None,
    packages: Packages = None,
    user: User = None,
    require_sandbox: RequireSandbox = False,
    out: KeptRun = None,
) -> int:
    """Run a command in a node, in virtual time, and print its output.

    Options come before SCENARIO. The exit status is the command's. The scenario's programs run too, but not its test.
    """
    if terminal:
        from hourglass.cli.shell import shell

        if command or out is not None:
            raise InputError("-it", command or str(out), "opens a shell: it takes no COMMAND and stores nothing")
        return shell(source, node, settings or [], seed, kernel, root, packages or [], user)
    if node is None or not command:
        raise InputError("COMMAND", None, "is missing: exec SCENARIO NODE -- COMMAND, or exec -it SCENARIO [NODE]")
    base = scenario.load(source, settings or [], seed=seed, kernel=kernel)
    notice.warn(source, base)
    resolved = with_command(base, node, words(command), root, packages or [], user)
    with Echo(NAME) as echo:
        recording = run(resolved, out, echo.begin)
    report_warnings(recording)
    return status(recording.apps[NAME])
