# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass compare`: runs next to each other, or the values of a key over scenarios and seeds."""

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

import hourglass
from hourglass.cli import earlier, notice, output, pictures, tables
from hourglass.cli.help import examples
from hourglass.cli.options import RUNS, ManyRuns, Page, seed_list
from hourglass.cli.progress import display
from hourglass.cli.study import print_result
from hourglass.contract.capabilities import VIRTUAL
from hourglass.errors import InputError
from hourglass.results.compare import ComparisonCell, ComparisonRow, compare
from hourglass.results.groups import SeedGroup, compare_groups, groups, over_seeds
from hourglass.results.labels import labels
from hourglass.results.recording import Recording
from hourglass.results.study_axes import group_references, references, study_axes
from hourglass.studies import study
from hourglass.studies.comparison import KERNEL, comparison
from hourglass.studies.file import percent


@examples("""\
hourglass compare runs/A runs/B
hourglass compare --vary kernel=6.1,6.12 --junit moved.xml
hourglass compare R10M --vary stack.cc=before/my_cc.c,my_cc.c
hourglass compare R100M --vary engine=virtual,native""")
def compare_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...|SCENARIO...",
            help=f"{RUNS}; the first is the baseline. With --vary scenarios; default: five built-in ones.",
        ),
    ] = None,
    *,
    vary: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=A,B,...",
            help="Run the scenarios with each value of kernel, engine or a key; compare with the first value.",
        ),
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(metavar="FIGURE=%", help="With --vary: a figure and its largest difference; repeatable."),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="With --vary engine: modelled NICs in the guest, not veth pairs.")
    ] = False,
    options: ManyRuns,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --vary: folder of the study; default: studies/NAME.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw candlesticks of runs: a .png, .svg or .pdf file.")
    ] = None,
    page: Page = None,
) -> int:
    """Compare runs with a baseline, or values of one key over the same scenarios and seeds.

    For runs, prints figures side by side, with differences from the first run in %; * marks significant ones. In a
    grid of runs, each is compared with the reference at the same other settings. With --vary, makes the runs and exits
    with 1 if a figure moved beyond its seeds or its tolerance.
    """
    if vary is None:
        needs: dict[str, object] = {
            "--tolerance": tolerance,
            "--wire": wire,
            "--set": options.settings,
            "--seeds": options.seeds,
            "--kernel": options.kernel,
            "--engine": options.engine != VIRTUAL and options.engine,
            "--force": options.force,
            "--jobs": options.jobs,
            "--dask": options.dask,
            "--page": page,
            "--junit": options.junit,
            "--require-sandbox": options.require_sandbox,
        }
        refuse_without_vary(needs)
        if out is not None:
            earlier.notice(["compare", *(names or []), "--picture", str(out)])
        compare_runs([Path(name) for name in names or []], picture or out, options.json)
        return 0
    if picture is not None:
        raise InputError("--picture", str(picture), "draws runs and cannot be combined with --vary")
    axis, _, values = vary.partition("=")
    if axis == KERNEL and options.kernel is not None:
        raise InputError("--kernel", options.kernel, "cannot be combined with --vary kernel")
    words = earlier.options(
        wire=wire, tolerance=tolerance, set=options.settings, seeds=options.seeds, kernel=options.kernel
    )
    command = shlex.join(map(str, ["compare", *(names or []), "--vary", vary, *words]))
    with display() as progress:
        compared = comparison(
            names or [], axis, [value.strip() for value in values.split(",")], tolerance=tolerances(tolerance or []),
            seeds=seed_list(options.seeds), wire=wire, report=progress.kernel,
        )  # fmt: skip
        result = study(replace(compared, command=command), out, progress=progress, **options.making)
    return print_result(result, page, options)


def refuse_without_vary(options: dict[str, object]) -> None:
    """Refuse options that need `--vary`. Raises `InputError`."""
    for option, value in options.items():
        if value:
            raise InputError(option, value, "needs --vary: runs are compared as they are")


def tolerances(texts: list[str]) -> dict[str, float]:
    """Return the figures of `tcp_rtt.p50=5%` … with their tolerances in %. Raises `InputError`."""
    limits = {}
    for text in texts:
        name, _, limit = text.partition("=")
        if not name or not limit:
            raise InputError("--tolerance", text, "must be FIGURE=PERCENT, like tcp_rtt.p50=5%")
        limits[name] = percent(limit, f"--tolerance {name}")
    return limits


def compare_runs(paths: list[Path], out: Path | None, json: bool) -> None:
    """Compare each run with the one of the first choices at the same other settings. If only seeds differ, compare the
    means over seeds."""
    runs = hourglass.load_all(paths)
    if len(runs) < 2:
        allowed = "must be two or more, or the folder of a sweep; scenarios need --vary"
        raise InputError("RUN", ", ".join(map(str, paths)) or None, allowed)
    notice.report_doubts(runs)
    axes = study_axes(runs)
    compared_with = references(runs, axes)
    rows, names = compare(runs, compared_with), labels(runs)
    if out is not None:
        pictures.plots().candlestick(runs, names, out)
    if json:
        output.show_json(
            {
                "schema": 1,
                "runs": [str(run.path) for run in runs],
                "labels": names,
                "references": compared_with,
                "figures": [row_data(row) for row in rows],
            }
        )
        return
    output.show(_table(rows, runs, names, compared_with))
    if out is not None:
        output.show(f"picture  {out}", whole_lines=True)


def row_data(row: ComparisonRow) -> dict[str, object]:
    """Return the `--json` object of a figure with its value in each run."""
    return {"figure": row.figure, "name": row.name, "unit": row.unit, "runs": [_cell(cell) for cell in row.cells]}


def _cell(cell: ComparisonCell) -> dict[str, object]:
    return asdict(cell) | {"significant": cell.significant}


def _table(
    rows: list[ComparisonRow], runs: list[Recording], names: list[str], compared_with: list[int]
) -> RenderableType:
    seed_groups = groups(runs)
    if over_seeds(runs, seed_groups):
        compared_with = group_references(seed_groups, compared_with)
        rows = compare_groups(rows, seed_groups, compared_with)
        descriptions = [_group(group, runs) for group in seed_groups]
        tests, note = [group.test for group in seed_groups], tables.OF_SEEDS
    else:
        descriptions = [_described(run, name, runs[0]) for run, name in zip(runs, names, strict=True)]
        tests, note = [run.test.name for run in runs], tables.OF_RUNS
    notes = "\n".join(filter(None, (note, _other_tests(tests, compared_with))))
    return tables.comparison(rows, descriptions, compared_with, output.screen().width, notes)


def _other_tests(tests: list[str], compared_with: list[int]) -> str:
    """Return the note about runs of another test than their reference's, which have no *, or an empty string."""
    differing = [
        f"{tables.letter(index)} {test}"
        for index, (test, reference) in enumerate(zip(tests, compared_with, strict=True))
        if test != tests[reference]
    ]
    base = f"A's {tests[0]}" if len(set(compared_with)) == 1 else "the reference's"
    return f"no * if a different test than {base} loads the path: {', '.join(differing)}" if differing else ""


def _group(group: SeedGroup, runs: list[Recording]) -> str:
    first = runs[group.members[0]]
    about = [first.name, group.seeds, f"Linux {first.info.kernel.release}"]
    return f"{group.label} ({', '.join(filter(None, about))})"


def _described(run: Recording, name: str, first: Recording) -> str:
    same = ", the same records as A" if run is not first and run.info.digest == first.info.digest else ""
    label = "" if name in (run.name, run.path.resolve().name) else f"{name}  "
    return f"{label}{run.path} ({run.name}, Linux {run.info.kernel.release}{same})"
