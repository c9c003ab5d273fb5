# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: figures, comparison and data into the template, with style, script and charting library."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hourglass.errors import HourglassError
from hourglass.report import data, figures, library
from hourglass.report.command import command
from hourglass.report.topology import topology
from hourglass.results.bootstrap import MIN_BLOCKS
from hourglass.results.compare import compare
from hourglass.results.groups import compare_groups, groups
from hourglass.results.labels import labels
from hourglass.results.recording import Recording

OPEN_RUNS = 1
"""Up to so many runs are shown opened."""


def write(runs: list[Recording], path: Path, cache: Path | None = None) -> None:
    """Writes the page about the runs to `path`. Raises `HourglassError` when it cannot be written.

    `cache`: a folder where the charting library, which takes seconds to make, is kept for the next page."""
    text = page(runs, cache)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise HourglassError(f"{path}: the report cannot be written: {error.strerror}") from error


def page(runs: list[Recording], cache: Path | None = None) -> str:
    """The page about the runs; the first is the one the others are held against."""
    assert runs, "a report of no runs"
    names = _names(runs)
    found = groups(runs)
    rows = compare(runs)
    group_of = {place: group.label for group in found for place in group.members}
    most = data.share_of_page(runs)
    several = len(found) < len(runs) and len(found) > 1
    return _environment().from_string(_file("page.html.j2")).render(
        title=_title(runs),
        runs=[_run(run, name, place) for place, (run, name) in enumerate(zip(runs, names, strict=True))],
        lead=_lead(runs),
        opened=len(runs) <= OPEN_RUNS,
        columns=[(row.figure, row.unit) for row in rows],
        table=[figures.held_against(rows, place) for place in range(len(runs))],
        groups=[(group.label, len(group.members)) for group in found] if several else [],
        group_table=_group_table(rows, found) if several else [],
        least_seeds=MIN_BLOCKS,
        overview=_json(data.overview(runs, names, [group_of[place] for place in range(len(runs))])),
        data=[_json(data.charts(run, most)) for run in runs],
        style=Markup(_file("report.css")),
        script=Markup(_file("report.js")),
        library=Markup(library.text(cache)),
    )  # fmt: skip


def foreign(run: Recording) -> bool:
    """Whether the run was measured by Flent."""
    return run.info.engine == "flent"


def _lead(runs: list[Recording]) -> str:
    """How many runs of which kind."""
    measured = sum(foreign(run) for run in runs)
    own = len(runs) - measured
    parts = [f"{own} run{'s' if own > 1 else ''} of the real Linux network stack in virtual time"] if own else []
    parts += [f"{measured} file{'s' if measured > 1 else ''} measured by Flent"] if measured else []
    return f"{' and '.join(parts)}."


def _names(runs: list[Recording]) -> list[str]:
    """Labels that tell the runs apart, numbered where they do not."""
    found = labels(runs)
    return found if len(set(found)) == len(found) else [f"{name} #{i + 1}" for i, name in enumerate(found)]


def _title(runs: list[Recording]) -> str:
    scenarios = list(dict.fromkeys(run.name for run in runs))
    named = ", ".join(scenarios[:3]) + (" and others" if len(scenarios) > 3 else "")
    return named if len(runs) == 1 else f"{named}: {len(runs)} runs"


def _group_table(rows: list[Any], found: list[Any]) -> list[list[figures.Figure]]:
    held = compare_groups(rows, found)
    return [figures.held_against(held, place) for place in range(len(found))]


def _run(run: Recording, name: str, place: int) -> dict[str, Any]:
    summary = run.summary.data()
    return {
        "place": place,
        "name": name,
        "path": str(run.path),
        "summary": summary,
        "test": run.test.name,
        "description": run.description,
        "facts": _facts(run),
        "flows": figures.flow_rows(summary),
        "pings": figures.ping_rows(summary),
        "radios": figures.radio_rows(summary),
        "drops": figures.drop_rows(summary),
        "reasons": figures.reason_rows(summary),
        "ping_layers": figures.ping_layer_rows(summary),
        "datagrams": figures.datagram_rows(summary),
        "fetches": figures.fetch_rows(summary),
        "totals": {key: figures.number(value) for key, value in summary["totals"].items()},
        "anatomy": figures.anatomy(summary),
        "topology": Markup(topology(run.scenario.model_dump(mode="json") if run.scenario else {})),
        "command": command(run),
        "repeats": "Measured by Flent; this measures the like" if foreign(run) else "Repeat it, byte by byte",
    }


def _facts(run: Recording) -> list[tuple[str, str]]:
    """What was run, as words: the test, the stack of all nodes and of single ones, kernel, seed, digest."""
    test, stack = run.test, run.scenario.stack.model_dump(mode="json") if run.scenario else {}
    facts = [
        ("test", f"{test.name}, {test.length_s:g} s under load, {test.delay_s:g} s before and after"),
        ("kernel", f"Linux {run.info.kernel.release}, {run.info.engine} engine"),
        *([] if foreign(run) else [("seed", str(run.info.seed))]),
    ]
    facts += [(key, str(stack[key])) for key in ("cc", "qdisc", "tsq", "gso") if key in stack]
    if "pacing" in stack:
        facts.append(("pacing", f"{stack['pacing']['ss']} % in slow start, {stack['pacing']['ca']} % after"))
    facts += [(key, value) for key, value in sorted((stack.get("sysctl") or {}).items())]
    own = [name for name, value in stack.items() if isinstance(value, dict) and name not in ("pacing", "sysctl")]
    facts += [(f"at {name}", ", ".join(f"{key} {value}" for key, value in stack[name].items())) for name in own]
    return [*facts, ("digest", run.info.digest)]


def _environment() -> Environment:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _json(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it can end one."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _file(name: str) -> str:
    return resources.files("hourglass.report").joinpath(name).read_text("utf-8")
