# SPDX-License-Identifier: Apache-2.0
"""`hourglass agree`: the same scenarios in the lab and on a real kernel, and how far each figure is from the lab's."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.text import Text

from hourglass.campaign import agree
from hourglass.campaign.agree import Way
from hourglass.cli import output
from hourglass.cli.errors import MISSED
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.results.agree import LEAST, Result

FEW = 10.0
"""Below so many %, hundredths are told."""
MARKS = {"agrees": "green", "differs": "red", "undecided": "yellow"}


def agree_cases(
    source: str,
    settings: list[str],
    engine: str,
    kernel: str | None,
    within: list[str],
    least: int,
    most: int,
    wire: bool,
    out: Path,
    page: Path | None,
    json: bool,
) -> int:
    """Runs the cases and prints what came out. The exit status: 1 when a figure differs."""
    if engines.chosen(engine).capabilities.virtual_time:
        raise InputError("--engine", engine, "an engine in real time: what the lab is held against")
    if not LEAST <= least <= most:
        raise InputError("--least", str(least), f"from {LEAST}, which an interval needs, to --most ({most})")
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--page", str(page), "the name must end in .html or .htm")
    cases = agree.read(source, settings)
    cases = replace(cases, tolerance={**cases.tolerance, **tolerances(within)})
    way = Way(engine, kernel, out, least, most, wire)
    load = agree.load_average()
    results = agree.run(cases, way, lambda text: print(text, file=sys.stderr, flush=True))
    about: dict[str, Any] = {"schema": 1, "made": agree.now(), "engine": engine,
             "release": results[0].real[0].summary.kernel, "lab": results[0].lab[0].summary.kernel,
             "load": [load, agree.load_average()], "cpus": agree.cpus()}  # fmt: skip
    if page is not None:
        from hourglass.report import agreement

        title = cases.description or "The lab and a real kernel"
        agreement.write(title, results, {**about, "machine": machine(about)}, page)
    if json:
        output.show_json({**about, "cases": [_case(one) for one in results]})
    else:
        show(results, about, page)
    return MISSED if any(row.verdict == "differs" for one in results for row in one.rows) else 0


def tolerances(within: Sequence[str]) -> dict[str, float]:
    """`tcp_rtt.p50=5%` …, as figures with their tolerance in %."""
    found = {}
    for text in within:
        name, _, percent = text.partition("=")
        try:
            found[name] = float(percent.removesuffix("%"))
        except ValueError:
            found[name] = 0.0
        if not name or found[name] <= 0:
            raise InputError("--within", text, "FIGURE=PERCENT, like tcp_rtt.p50=5")
    return found


def _case(one: Result) -> dict[str, object]:
    return {
        "name": one.name,
        "lab": [str(run.path) for run in one.lab],
        "real": [str(run.path) for run in one.real],
        "hosts": [asdict(host) for host in one.hosts],
        "figures": [asdict(row) for row in one.rows],
        "causes": one.causes,
    }


def show(results: Sequence[Result], about: dict[str, Any], page: Path | None) -> None:
    """The table, then what the data say of each miss."""
    table = output.bare()
    for header in ("figure", "lab", "real", "gap, %", "95 %", "n", "verdict"):
        table.add_column(header, justify="left" if header in ("figure", "verdict") else "right", no_wrap=True)
    for one in results:
        table.add_row(one.name)
        for row in one.rows:
            span = "-" if row.interval is None else " to ".join(map(percent, row.interval))
            told = Text(row.verdict, style=MARKS[row.verdict])
            values = (f"{row.lab:.4g}", f"{row.real:.4g}", percent(row.gap))
            table.add_row(f"  {row.figure}", *values, span, str(row.runs), told)
    output.show(table)
    for one in (one for one in results if one.causes):
        output.show("", f"{one.name}: what differs beside its figures", whole_lines=True)
        output.show("\n".join(f"  {cause}" for cause in one.causes), whole_lines=True)
    rows = [row for one in results for row in one.rows]
    good = sum(row.within for row in rows)
    where = f"lab: Linux {about['lab']}, {about['engine']}: Linux {about['release']}; {machine(about)}"
    output.show("", f"{good} of {len(rows)} figures within their tolerance; {where}", whole_lines=True)
    if page is not None:
        output.show(f"page     {page}", whole_lines=True)


def percent(value: float) -> str:
    """With as many digits as matter."""
    return f"{value:+.2f}" if abs(value) < FEW else f"{value:+.0f}"


def machine(about: dict[str, Any]) -> str:
    """How busy the machine was, and how large it is."""
    before, after = about["load"]
    return f"load average {before:.1f} to {after:.1f} on {about['cpus']} CPUs"
