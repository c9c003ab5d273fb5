# SPDX-License-Identifier: Apache-2.0
"""`hourglass run`: a scenario → a run directory, its table and its picture."""

from importlib import import_module
from pathlib import Path

from hourglass import runner, scenario
from hourglass.cli import pictures, progress
from hourglass.cli.errors import MISSED
from hourglass.engine import engines


def run_scenario(
    source: str,
    settings: list[str],
    seed: int | None,
    kernel: str | None,
    engine: str,
    out: Path | None,
    json: bool,
    picture: bool,
    force: bool,
    dry_run: bool = False,
) -> int:
    """Runs the scenario and prints what came out, as tables or as the JSON object. The exit status: 1 when it misses a
    bound of its own."""
    named = (one.partition("=")[2] for one in settings if one.startswith("kernel="))
    engines.chosen(engine, kernel or next(named, None))
    wanted = scenario.load(source, settings, seed=seed, kernel=kernel)
    if dry_run:
        from hourglass.cli.dryrun import show_lines

        show_lines(wanted, engine)
        return 0

    with pictures.Beside() as drawing:

        def preload() -> None:
            import_module("hourglass.cli.tables")
            if picture:
                drawing.load()

        with progress.shown() as shown:
            done = runner.run(
                wanted, out, engine=engine, progress=shown, preload=preload, recorded=drawing.begin, force=force
            )
        if json:
            print(done.summary.to_json(), flush=True)
        else:
            from hourglass.cli import output, tables

            output.show(tables.figures(done.summary, done.test.name), tables.warnings(done.summary))
        drawn = drawing.finish(done) if picture else None
    if not json:
        output.show(tables.footer(done.summary, done.path, drawn, done.info.kernel.tuned), whole_lines=True)
    return 0 if all(check.ok for check in done.summary.checks) else MISSED
