# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass run`: a scenario → a run directory, its table and its picture."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from hourglass import runner, scenario
from hourglass.cli import notice, pictures, progress
from hourglass.cli.exit_status import MISSED
from hourglass.cli.help import examples
from hourglass.cli.options import Engine, Json, Kernel, NoPicture, RequireSandbox, Seed, Settings, Source
from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.kernels import UNTUNED, version_of
from hourglass.engine import engines
from hourglass.errors import HourglassError
from hourglass.visible import visible_json


@examples("""\
hourglass run L100M
hourglass run L100M --set stack.tsq=off --seed 2 --kernel 6.12
hourglass run my-office.toml --set 'stack.router.qdisc=cake bandwidth 49mbit'""")
def run(
    source: Source,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    engine: Engine = VIRTUAL,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run directory; default: runs/NAME-HASH.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another scenario's run in --out.")] = False,
    json: Json = False,
    no_picture: NoPicture = False,
    require_sandbox: RequireSandbox = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", hidden=True, help="Earlier name of `hourglass show --plan`.")
    ] = False,
) -> int:
    """Run a scenario and print its throughput and latency.

    Exits with 1 if a bound of the scenario is missed. If the run fails, --json prints the error's code.
    """
    if dry_run:
        from hourglass.cli import earlier

        overrides = [f"{key}={value}" for key, value in (("seed", seed), ("kernel", kernel)) if value is not None]
        words = earlier.options(set=[*(settings or []), *overrides], engine=engine)
        return earlier.call(["show", source, "--plan", *words])
    kernels = (setting.partition("=")[2] for setting in settings or [] if setting.startswith("kernel="))
    engines.get(engine, kernel or next(kernels, None))
    resolved = scenario.load(source, settings or [], seed=seed, kernel=kernel)
    notice.warn(source, resolved)

    with pictures.PictureProcess() as drawing:

        def preload() -> None:
            import_module("hourglass.cli.tables")
            if not no_picture:
                drawing.load()

        try:
            with progress.display() as display:
                recording = runner.run(
                    resolved, out, engine=engine, progress=display, preload=preload, recorded=drawing.begin, force=force
                )
        except HourglassError as error:
            if json:
                from hourglass.cli import output

                output.show_json({"schema": 1, "status": "failed", **error.data()})
            raise
        try:
            if json:
                print(visible_json(recording.summary.to_json()), flush=True)
            else:
                from hourglass.cli import output, tables

                output.show(tables.figures(recording.summary, recording.test.name), tables.warnings(recording.summary))
        except BrokenPipeError:  # `| head -1` ends the table, not the picture
            if not no_picture:
                drawing.finish(recording)
            raise
        picture_path = None if no_picture else drawing.finish(recording)
    if not json:
        guest = recording.info.kernel
        tuned = guest.tuned or version_of(guest.release) >= UNTUNED
        output.show(tables.footer(recording.summary, recording.path, picture_path, tuned), whole_lines=True)
    return 0 if all(check.ok for check in recording.summary.checks) else MISSED
