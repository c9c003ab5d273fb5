# SPDX-License-Identifier: Apache-2.0
"""`hourglass study`: make the runs, print the table or the verdicts, write the pages."""

import sys
from pathlib import Path
from typing import Annotated, cast

import polars as pl
import typer
from rich.table import Table

from hourglass import files
from hourglass.cli import comparisons, output, pictures
from hourglass.cli.exit_status import MISSED, SOME_FAILED
from hourglass.cli.help import examples
from hourglass.cli.options import ManyRuns, NoPicture, Page
from hourglass.cli.progress import display
from hourglass.errors import InputError
from hourglass.results.labels import short_names
from hourglass.results.stats import short
from hourglass.scenario.source_files import read_toml
from hourglass.studies import json_data, junit, old_formats, pareto, wording
from hourglass.studies import study as make_study
from hourglass.studies.grid import text
from hourglass.studies.markdown_page import markdown
from hourglass.studies.reader import built_in
from hourglass.studies.store import Keep as KeptPart
from hourglass.studies.study import StudyResult
from hourglass.studies.table import OF_A_CC
from hourglass.studies.verdict_page import page as study_page
from hourglass.studies.verdicts import CellVerdict

MOST_ROWS = 40
"""The most settings that are printed; the table has more."""
MOST_VERDICTS = 20
STUDY_KEYS = {"case", "part", "axes", "compare", "figure", "zip", "seeds", "repetitions"}
"""Keys of studies that scenarios lack."""

COLUMNS = {
    "upload_mbps": "up Mbit/s",
    "download_mbps": "down Mbit/s",
    "tcp_rtt_p50_ms": "RTT ms",
    "ping_icmp_p50_ms": "ping p50 ms",
    "ping_icmp_p99_ms": "p99 ms",
    "fairness": "fairness",
    "upload_fairness": "fair up",
    "download_fairness": "fair down",
}
LATENCIES = ("ping_icmp_p99_ms", "ping_icmp_p50_ms", "tcp_rtt_p50_ms")


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="A study's file (TOML), or bbr, fairness, l4s, responsiveness, rfc9743, robustness or score.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", "--cc", metavar="A,B,...", help="Values of the compared axis, or files; default: the study's."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="One seed, and fewer settings.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the study; default: studies/NAME.")]
Keep = Annotated[str, typer.Option(metavar="records|summary", help="Store all of each run, or only its figures.")]
Baseline = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Compare with this one; default: the study's for the kernel.")
]
Update = Annotated[
    bool, typer.Option("--update-baseline", help="Write the figures as the baseline; figures of other cells remain.")
]


@examples("""\
hourglass study queues.toml
hourglass study fairness --quick
hourglass study robustness --cc cubic,my_cc.c --junit verdicts.xml
hourglass study bbr --kernel 6.12 --update-baseline""")
def study(
    file: File,
    *,
    columns: Columns = None,
    quick: Quick = False,
    runs: ManyRuns,
    out: Out = None,
    keep: Keep = "records",
    baseline: Baseline = None,
    update: Update = False,
    page: Page = None,
    no_picture: NoPicture = False,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Print a file of an earlier release in the current format; run nothing.")
    ] = False,
) -> int:
    """Run a grid of scenarios, compare figures with criteria, a reference or a baseline, and write one page.

    Exits with 1 when a verdict is missed or regressed. Cached runs are reused, so an interrupted study resumes.
    """
    if rewrite:
        print_rewritten(Path(file))
        return 0
    names = [name.strip() for name in columns.split(",")] if columns is not None else []
    if not all(names):
        raise InputError("--cc", columns, "must be values with commas between them, like cubic,bbr")
    with display(file) as progress:
        result = make_study(
            file, out, columns=names, quick=quick, keep=cast(KeptPart, keep), baseline=baseline,
            update_baseline=update, progress=progress, **runs.making,
        )  # fmt: skip
    return print_result(result, page, runs, not no_picture)


def print_result(result: StudyResult, page_file: Path | None, options: ManyRuns, picture: bool = False) -> int:
    """Write the pages, print the result and return the exit status."""
    if result.lines:
        write_pages(result, page_file)
    if options.junit is not None:
        junit.write(options.junit, json_data.junit(result))
    if options.json:
        output.show_json(json_data.data(result))
    else:
        show(result, picture)
    for failure in result.failures:
        print(f"hourglass: failed: {failure.cell}: {failure.reason}; console log: {failure.log}", file=sys.stderr)
    return MISSED if result.missed else SOME_FAILED if result.failures else 0


def is_study(source: str) -> bool:
    """Tell if a word names a study or its file, not a scenario."""
    if source in built_in():
        return True
    path = Path(source)
    return path.suffix == ".toml" and path.is_file() and bool(STUDY_KEYS & read_toml("FILE", path)[0].keys())


def print_rewritten(path: Path) -> None:
    """Print a file of an earlier release in the current format."""
    data, original = read_toml("FILE", path)
    head = [line for line in original.splitlines() if line.startswith("#")][:1]
    print("\n".join([*head, old_formats.written(old_formats.current(data))]), end="")


def write_pages(result: StudyResult, page_file: Path | None) -> None:
    """Write the pages into the folder of the study, and the HTML page also to another file."""
    name = result.study.name
    with files.writing(result.out, "the page"):
        files.write(result.out / f"{name}.html", study_page(result).encode())
        files.write(result.out / f"{name}.md", markdown(result).encode())
    if page_file is not None:
        with files.writing(page_file, "the page"):
            files.write(page_file, study_page(result, page_file.parent).encode())


def show(result: StudyResult, picture: bool) -> None:
    """Print the medians of a table, or the verdicts; then the files."""
    lines = []
    if result.path.is_file() and list(result.parts) == [""]:
        done = result.table.filter(pl.col("status") == "done")
        if len(done) and not result.study.reference:
            output.show(medians(result, done))
        lines = ["", f"runs     {result.counts}", f"table    {result.path}"]
        if picture and len(done) and not result.study.reference:
            lines.append(f"picture  {draw(result, done)}")
    if result.lines:
        if result.study.reference:
            comparisons.show(result)
        show_verdicts(result)
        lines += [] if lines else [f"runs     {result.counts}"]
        lines += [] if result.study.reference else [f"baseline {result.baseline or 'none'}"]
        lines += [f"page     {result.out / f'{result.study.name}.html'}"]
    output.show("\n".join(lines), whole_lines=True)


def show_verdicts(result: StudyResult) -> None:
    """Print the misses and regressions, a line each; then the counts."""
    verdicts = [verdict for verdict in result.verdicts if not verdict.line.is_compared]
    listed = [verdict for verdict in verdicts if verdict.counts]
    listed += [verdict for verdict in verdicts if verdict.verdict in ("missed", "undecided") and not verdict.counts]
    for verdict in listed[:MOST_VERDICTS]:
        output.show(_line(verdict), whole_lines=True)
    if len(listed) > MOST_VERDICTS:
        output.show(f"… and {len(listed) - MOST_VERDICTS} more")
    for id, why in result.skipped.items():
        output.show(f"skipped {id}: {why}", whole_lines=True)
    output.show("", f"{wording.about(result)}: {wording.counts(result)}", whole_lines=True)


def _line(verdict: CellVerdict) -> str:
    line = verdict.line
    unit = f" {line.figure.unit}" if line.figure.unit and verdict.cell.value is not None else ""
    why = "; ".join(filter(None, (verdict.reason, verdict.limit and f"criterion: {verdict.limit}")))
    where = " / ".join(filter(None, (line.part.id, line.label, line.figure.title)))
    return f"{verdict.verdict:9} {verdict.cell.column:10} {where}: {verdict.text}{unit} ({why})"


def medians(result: StudyResult, done: pl.DataFrame) -> Table | str:
    """Return a row per setting: medians over the seeds."""
    settings = [key for key in result.grid.keys if key != "seed"]
    used = [name for name in COLUMNS if name in done.columns and (done[name].fill_null(0) != 0).any()]
    omitted = ("fairness",) if set(pareto.FAIRNESS_BY_DIRECTION) <= set(used) else pareto.FAIRNESS_BY_DIRECTION
    shares = {name: f"{name.removesuffix(OF_A_CC)} Mbit/s" for name in done.columns if name.endswith(OF_A_CC)}
    titles = COLUMNS | shares
    columns = [*(name for name in used if name not in omitted), *shares]
    grouped = done.group_by(settings, maintain_order=True) if settings else None
    figures = [pl.col(name).median() for name in columns]
    rows = grouped.agg(figures) if grouped is not None else done.select(figures)
    if len(rows) > MOST_ROWS:
        return f"{len(rows)} settings; see the table"
    table = output.bare()
    for name in short_names([tuple(key.split(".")) for key in settings]).values():
        table.add_column(name, overflow="fold")
    for name in columns:
        table.add_column(titles[name], justify="right")
    for row in rows.iter_rows(named=True):
        labels = [result.grid.label(key, row[key]) for key in settings]
        table.add_row(*labels, *("-" if row[name] is None else short(row[name]) for name in columns))
    return table


def draw(result: StudyResult, done: pl.DataFrame) -> Path:
    """Draw the picture of the whole study next to its table."""
    latency = next(name for name in LATENCIES if name in done.columns)
    points = pareto.points(result.table, list(result.grid.keys), latency)
    settings = [key for key in result.grid.keys if key != "seed"]
    labels = {key: [result.grid.label(key, text(value)) for value in points[key]] for key in settings}
    same = pareto.conditions(list(result.grid.keys))
    path = result.out / "sweep.png"
    pictures.plots().sweep(result.grid.name, points, labels, same, pareto.THROUGHPUT, latency, path)
    return path
