# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: figures, comparison and data into the template, with style, script and charting library."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.probe import LAYERS
from hourglass.contract.run import RunInfo
from hourglass.contract.summary import Anatomy, Summary
from hourglass.errors import InputError
from hourglass.report import data, library
from hourglass.report.cells import NOTHING, Held, held_against
from hourglass.report.command import command
from hourglass.report.testbed import facts as links
from hourglass.report.topology import topology
from hourglass.results.bootstrap import MIN_BLOCKS
from hourglass.results.compare import compare
from hourglass.results.groups import compare_groups, groups
from hourglass.results.labels import labels, told
from hourglass.results.recording import Recording
from hourglass.results.sections import Section, sections, shown
from hourglass.results.sections.traffic import fairness

SAID_OTHERWISE = ("test=", "kernel=", "engine=")
"""Settings with a column of their own, or none."""
TCP_DATA = "TCP data"
SEEN_PERCENT = 0.5
"""A smaller part of a bar is not in its legend."""
OPEN_RUNS = 1
"""Up to so many runs are shown opened."""


def write(runs: list[Recording], path: Path, cache: Path | None = None) -> None:
    """Writes the page about the runs to `path`. Raises `InputError` when it cannot be written.

    `cache`: a folder where the charting library, which takes seconds to make, is kept for the next page."""
    text = page(runs, cache)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError("out", str(path), f"the report cannot be written: {error.strerror}") from error


def page(runs: list[Recording], cache: Path | None = None) -> str:
    """The page about the runs; the first is the one the others are compared with."""
    assert runs, "a report of no runs"
    names = _names(runs)
    found = groups(runs)
    rows = compare(runs)
    group_of = {place: group.label for group in found for place in group.members}
    most = data.share_of_page(runs)
    several = len(found) < len(runs) and len(found) > 1
    shown_runs = [_run(*one) for one in zip(runs, names, _settings(runs), range(len(runs)), strict=True)]
    return _environment().from_string(_file("page.html.j2")).render(
        title=_title(runs),
        runs=shown_runs,
        settings=any(term not in one.name for one in shown_runs for term in one.settings),
        lead=_lead(runs),
        opened=len(runs) <= OPEN_RUNS,
        columns=[(row.figure, row.unit) for row in rows],
        table=[held_against(rows, place) for place in range(len(runs))],
        groups=[(group.label, len(group.members)) for group in found] if several else [],
        group_table=_group_table(rows, found) if several else [],
        least_seeds=MIN_BLOCKS,
        overview=_json(data.overview(runs, names, [group_of[place] for place in range(len(runs))])),
        data=[_json(data.charts(run, most)) for run in runs],
        style=Markup(_file("report.css")),
        script=Markup(_file("report.js")),
        library=Markup(library.text(cache)),
    )  # fmt: skip


def _lead(runs: list[Recording]) -> str:
    """How many runs of which kind."""
    counts = Counter(_kind(run) for run in runs)
    parts = [text.format("1 run" if n == 1 else f"{n} runs") for text, n in sorted(counts.items(), reverse=True)]
    return f"{' and '.join(parts)}."


def _kind(run: Recording) -> str:
    """What a run is, its number left open."""
    if run.info.elsewhere:
        return "{} measured by Flent"
    return f"{{}} of the real Linux network stack in {'virtual' if run.info.engine == VIRTUAL else 'real'} time"


def _names(runs: list[Recording]) -> list[str]:
    """Labels that tell the runs apart, numbered where they do not."""
    found = labels(runs)
    return found if len(set(found)) == len(found) else [f"{name} #{i + 1}" for i, name in enumerate(found)]


def _settings(runs: list[Recording]) -> list[list[str]]:
    """What differs between the runs besides name, test, kernel, seed and engine, of each run as "key=value",
    what decides most first."""
    terms = told(runs, seeds=False, weighed=True) if len(runs) > 1 else [[]]
    return [[one for one in each if not (one.startswith(SAID_OTHERWISE) or one.endswith("=-"))] for each in terms]


def _title(runs: list[Recording]) -> str:
    scenarios = list(dict.fromkeys(run.name for run in runs))
    named = ", ".join(scenarios[:3]) + (" and others" if len(scenarios) > 3 else "")
    return named if len(runs) == 1 else f"{named}: {len(runs)} runs"


def _group_table(rows: list[Any], found: list[Any]) -> list[list[Held]]:
    held = compare_groups(rows, found)
    return [held_against(held, place) for place in range(len(found))]


@dataclass(frozen=True)
class Tile:
    """A figure in large letters."""

    name: str
    value: str
    unit: str
    range: str = ""


@dataclass(frozen=True)
class Bar:
    """Where a kind of packet spends its time: each node's layers as (layer, share of the whole in %, its mean in ms),
    and how much of the whole came before."""

    kind: str
    way: str
    ms: str
    nodes: list[tuple[str, float, list[tuple[str, float, str]]]]


@dataclass(frozen=True)
class Shown:
    """A run as the template sees it."""

    place: int
    name: str
    settings: list[str]
    summary: Summary
    test: str
    description: str
    tiles: list[Tile]
    sections: list[Section]
    bars: list[Bar]
    layers: list[str]
    topology: Markup
    facts: list[tuple[str, str]]
    command: str
    repeats: str


def _run(run: Recording, name: str, settings: list[str], place: int) -> Shown:
    return Shown(
        place=place,
        name=name,
        settings=settings,
        summary=run.summary,
        test=run.test.name,
        description=run.description,
        tiles=list(_tiles(run.summary)),
        sections=[section.known() for section in sections(run.summary) if section.about and section.rows],
        bars=list(_bars(run.summary)),
        layers=_layers(run.summary),
        topology=Markup(topology(run.paths, run.experiment.settings)),
        facts=list(_facts(run)),
        command=command(run),
        repeats=_repeats(run.info),
    )


def _repeats(info: RunInfo) -> str:
    if info.elsewhere:
        return "Measured by Flent; this measures the like"
    return "Repeat it, byte by byte" if info.engine == VIRTUAL else "Measure it again"


def _tiles(summary: Summary) -> Iterator[Tile]:
    """The totals of the ways that have flows, the pings' medians, fairness."""
    totals = summary.totals
    if summary.flows and (totals.upload_mbps or not totals.download_mbps):
        yield Tile("upload", _number(totals.upload_mbps), "Mbit/s")
    if totals.download_mbps:
        yield Tile("download", _number(totals.download_mbps), "Mbit/s")
    for name, ping in summary.ping_ms.items():
        yield Tile(f"ping {name}", _number(ping.p50), "ms", f"p10 {_number(ping.p10)} \u00b7 p90 {_number(ping.p90)}")
    for name, index in fairness(totals).items():
        if index is not None:
            yield Tile(name, _number(index), "", "Jain\u2019s index")


def _bars(summary: Summary) -> Iterator[Bar]:
    """Of the flows' data, of each ping, of each connection with requests, and of programs' connections."""
    trips = {f"ping {name}": found for name, found in summary.ping_layers_ms.items()}
    trips |= {f"transactions {name}": found for name, found in summary.transaction_layers_ms.items()}
    for kind, found in {TCP_DATA: summary.layers_ms, **summary.connection_layers_ms}.items():
        if found:
            yield _bar(kind, found, "from write to read")
    for kind, found in trips.items():
        if found:
            yield _bar(kind, found, "there and back")


def _bar(kind: str, found: Anatomy, way: str) -> Bar:
    """`ms`: the mean of the whole way, which is not known where not all packets pass the same nodes."""
    every = [one for layers in found.values() for one in layers.values()]
    whole = f"{_number(sum(one.mean for one in every))} ms" if len({one.n for one in every}) == 1 else ""
    nodes, before = [], 0.0
    for node, layers in found.items():
        nodes.append((node, before, [(layer, 100 * one.share, shown(one.mean, "time", NOTHING))
                                     for layer, one in layers.items()]))  # fmt: skip
        before += sum(100 * one.share for one in layers.values())
    return Bar(kind, way, whole, nodes)


def _layers(summary: Summary) -> list[str]:
    """The layers that can be seen in a bar."""
    seen = {layer for bar in _bars(summary) for _, _, layers in bar.nodes for layer, percent, _ in layers
            if percent >= SEEN_PERCENT}  # fmt: skip
    return [layer for layer in LAYERS if layer in seen]


def _number(value: float | None) -> str:
    return shown(value, "number", NOTHING)


def _facts(run: Recording) -> Iterator[tuple[str, str]]:
    """What was run, as words: the test, the stack of all nodes and of single ones, kernel, seed, digest."""
    test = run.test
    yield "test", f"{test.name}, {test.length_s:g} s under load, {test.delay_s:g} s before and after"
    yield "kernel", f"Linux {run.info.kernel.release}, {run.info.engine} engine"
    if not run.info.elsewhere:
        yield "seed", str(run.info.seed)
    yield from links(run.paths, run.experiment.settings)
    told: dict[str, list[str]] = {}
    for key, value in run.experiment.settings.items():
        if key[0] == "stack" and value not in (None, {}):
            words = key[1:]
            if len(words) == 1 or words[0] in ("pacing", "sysctl"):
                told.setdefault(" ".join(word for word in words if word != "sysctl"), []).append(str(value))
            else:
                told.setdefault(f"at {words[0]}", []).append(f"{' '.join(words[1:])} {value}")
    yield from ((name, ", ".join(values)) for name, values in told.items())
    yield "digest", run.info.digest


def _environment() -> Environment:
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["shown"] = lambda value, kind: shown(value, kind, NOTHING)
    return made


def _json(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it can end one."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _file(name: str) -> str:
    return resources.files("hourglass.report").joinpath(name).read_text("utf-8")
