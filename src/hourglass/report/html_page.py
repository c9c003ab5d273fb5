# SPDX-License-Identifier: Apache-2.0
"""Assembles the page: figures, comparison and data in the template, with style, script and charting library."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from hourglass import files
from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.plan import Path as PlanPath
from hourglass.contract.probe import LAYERS
from hourglass.contract.run_json import RunInfo
from hourglass.contract.summary import Anatomy, Summary
from hourglass.report import data
from hourglass.report.command import command
from hourglass.report.comparison_cells import NO_VALUE, ComparedFigure, compared_figures
from hourglass.report.path_figures import path_figures
from hourglass.report.rendering import json_text, packed, render
from hourglass.report.testbed import facts as links
from hourglass.report.testbed import testbed_paths
from hourglass.report.topology import NO_FIGURES, topology
from hourglass.results.compare import compare, sampled_figures
from hourglass.results.explain import Explanation, explanation_of
from hourglass.results.goodput_latency import latency
from hourglass.results.groups import compare_groups, groups
from hourglass.results.intervals import MIN_BLOCKS
from hourglass.results.labels import difference_terms, labels
from hourglass.results.recording import Recording
from hourglass.results.sections import Section, sections, value_text
from hourglass.results.sections.traffic_sections import fairness
from hourglass.results.study_axes import group_references, reference_text, references, study_axes

OMITTED_SETTINGS = ("test=", "kernel=", "engine=")
"""Settings that have a separate column, or are not shown."""
TCP_DATA = "TCP data"
LEGEND_MIN_PERCENT = 0.5
"""The least part of a bar that its legend lists."""
DETAILED_RUNS = 10
"""A page of more runs has no parts that read all records: explanations, figures of a window, journeys, rates. Its runs
are compressed, and the script opens them."""
SCRIPTS = ("charts.js", "report.js", "study.js")
OPEN_RUNS = 1
"""The most runs of a page that shows them expanded."""


def write(runs: list[Recording], path: Path) -> None:
    """Write the page about the runs to `path`. Raises `InputError` if it cannot be written."""
    text = page(runs)
    with files.output(path, "the report") as temporary:
        temporary.write_text(text, "utf-8")


def page(runs: list[Recording]) -> str:
    """Return the page about the runs; the first is the reference of the comparison."""
    assert runs, "a report needs at least one run"
    names = _names(runs)
    run_groups = groups(runs)
    axes = study_axes(runs)
    compared_with = references(runs, axes)
    group_of = {index: group.label for group in run_groups for index in group.members}
    points_per_series = data.points_per_series(runs)
    several = len(run_groups) < len(runs) and len(run_groups) > 1
    is_detailed = len(runs) <= DETAILED_RUNS
    run_views, scripts, latencies, sampled = [], [], [], []
    for index, (run, name, settings) in enumerate(zip(runs, names, _settings(runs), strict=True)):
        run_views.append(_run_view(run, name, settings, index, is_detailed=is_detailed))
        scripts.append(_run_script(run, run_views[-1], points_per_series))
        latencies.append(latency(run))
        sampled.append(sampled_figures(run, keep=is_detailed))
    rows = compare(runs, compared_with, sampled)
    study = data.study_data(axes, rows, len(runs))
    overview = data.overview(runs, names, [group_of[index] for index in range(len(runs))], latencies)
    return render(
        "page.html.j2",
        SCRIPTS,
        title=_title(runs),
        runs=run_views,
        settings=any(term not in view.name for view in run_views for term in view.settings),
        lead=_lead(runs),
        opened=len(runs) <= OPEN_RUNS,
        detailed=is_detailed,
        alone=len(runs) == 1,
        columns=[(row.figure, row.unit) for row in rows],
        table=[compared_figures(rows, index) for index in range(len(runs))],
        groups=[(group.label, group.seeds) for group in run_groups] if several else [],
        group_table=_group_table(rows, run_groups, compared_with) if several else [],
        reference=reference_text(axes) if len(runs) > 2 else "",
        study=study is not None,
        least_seeds=MIN_BLOCKS,
        overview=json_text(overview | {"study": study}),
        data=scripts,
    )  # fmt: skip


def _run_script(run: Recording, view: "RunView", points_max: int) -> str:
    """Return the data of a run as text. Those of one of many runs are compressed, with its body."""
    if view.is_detailed:
        return json_text(data.run_data(run, points_max, is_detailed=True))
    body = render("run.html.j2", run=view, alone=False)
    return packed(data.run_data(run, points_max, is_detailed=False) | {"body": body})


def _lead(runs: list[Recording]) -> str:
    """Return the number of runs of each kind, as a sentence."""
    counts = Counter(_kind(run) for run in runs)
    parts = [text.format("1 run" if n == 1 else f"{n} runs") for text, n in sorted(counts.items(), reverse=True)]
    return f"{' and '.join(parts)}."


def _kind(run: Recording) -> str:
    """Return the kind of a run, with a placeholder for the number."""
    if run.info.elsewhere:
        return "{} measured by Flent"
    return f"{{}} of the real Linux network stack in {'virtual' if run.info.engine == VIRTUAL else 'real'} time"


def _names(runs: list[Recording]) -> list[str]:
    """Return unique labels of the runs, numbered if necessary."""
    names = labels(runs)
    return names if len(set(names)) == len(names) else [f"{name} #{i + 1}" for i, name in enumerate(names)]


def _settings(runs: list[Recording]) -> list[list[str]]:
    """Return each run's settings as "key=value" that differ between the runs, the most important first, except name,
    test, kernel, seed and engine."""
    terms = difference_terms(runs, seeds=False, ranked=True) if len(runs) > 1 else [[]]
    return [
        [term for term in run_terms if not (term.startswith(OMITTED_SETTINGS) or term.endswith("=-"))]
        for run_terms in terms
    ]


def _title(runs: list[Recording]) -> str:
    """Return the names of the sweeps, or of the scenarios, and the number of runs."""
    scenarios = list(dict.fromkeys(run.sweep or run.name for run in runs))
    scenario_names = ", ".join(scenarios[:3]) + (" and others" if len(scenarios) > 3 else "")
    return scenario_names if len(runs) == 1 else f"{scenario_names}: {len(runs)} runs"


def _group_table(rows: list[Any], run_groups: list[Any], of_runs: list[int]) -> list[list[ComparedFigure]]:
    comparison = compare_groups(rows, run_groups, group_references(run_groups, of_runs))
    return [compared_figures(comparison, index) for index in range(len(run_groups))]


@dataclass(frozen=True)
class Tile:
    """A figure in large letters."""

    name: str
    value: str
    unit: str
    range: str = ""


@dataclass(frozen=True)
class LayerBar:
    """The time by layer of a kind of packet. For each node: its name, the share before it in %, and its layers as
    (layer, share of the whole in %, mean in ms)."""

    kind: str
    path: str
    ms: str
    nodes: list[tuple[str, float, list[tuple[str, float, str]]]]


@dataclass(frozen=True)
class RunView:
    """A run as the template uses it."""

    index: int
    name: str
    is_detailed: bool
    settings: list[str]
    summary: Summary
    test: str
    description: str
    tiles: list[Tile]
    explanation: Explanation | None
    sections: list[Section]
    bars: list[LayerBar]
    layers: list[str]
    topology: Markup
    delay_of: str
    facts: list[tuple[str, str]]
    command: str
    repeats: str


def _run_view(run: Recording, name: str, settings: list[str], index: int, *, is_detailed: bool) -> RunView:
    along_path = path_figures(run) if is_detailed else NO_FIGURES
    paths = testbed_paths(run)
    return RunView(
        index=index,
        name=name,
        is_detailed=is_detailed,
        settings=settings,
        summary=run.summary,
        test=run.test.name,
        description=run.description,
        tiles=list(_tiles(run.summary)),
        explanation=explanation_of(run) if is_detailed else None,
        sections=[
            section.without_empty_columns() for section in sections(run.summary) if section.about and section.rows
        ],
        bars=list(_bars(run.summary)),
        layers=_layers(run.summary),
        topology=Markup(topology(paths, run.experiment.settings, along_path)),
        delay_of=along_path.packets,
        facts=list(_facts(run, paths)),
        command=command(run),
        repeats=_repeat_label(run.info),
    )


def _repeat_label(info: RunInfo) -> str:
    if info.elsewhere:
        return "Measured by Flent; a similar measurement"
    return "Reproduce this run exactly" if info.engine == VIRTUAL else "Repeat this measurement"


def _tiles(summary: Summary) -> Iterator[Tile]:
    """Yield the totals of directions with flows, the pings' medians, and fairness if a direction has several flows."""
    totals = summary.totals
    if summary.flows and (totals.upload_mbps != 0 or totals.download_mbps == 0):
        yield Tile("upload", _number(totals.upload_mbps), "Mbit/s")
    if summary.flows and totals.download_mbps != 0:
        yield Tile("download", _number(totals.download_mbps), "Mbit/s")
    for name, ping in summary.ping_ms.items():
        yield Tile(f"ping {name}", _number(ping.p50), "ms", f"p10 {_number(ping.p10)} \u00b7 p90 {_number(ping.p90)}")
    indices = fairness(totals)
    for name, index in indices.items():
        if index is not None and len(summary.flows) > len(indices):
            yield Tile(name, _number(index), "", "Jain\u2019s index")


def _bars(summary: Summary) -> Iterator[LayerBar]:
    """Yield the bars of the flows' data, programs' connections, pings, and connections with requests."""
    trips = {f"ping {name}": anatomy_of_stream for name, anatomy_of_stream in summary.ping_layers_ms.items()}
    trips |= {
        f"transactions {name}": anatomy_of_stream for name, anatomy_of_stream in summary.transaction_layers_ms.items()
    }
    for kind, anatomy_of_kind in {TCP_DATA: summary.layers_ms, **summary.connection_layers_ms}.items():
        if anatomy_of_kind:
            yield _bar(kind, anatomy_of_kind, "from write to read")
    for kind, anatomy_of_kind in trips.items():
        if anatomy_of_kind:
            yield _bar(kind, anatomy_of_kind, "there and back")


def _bar(kind: str, node_layers: Anatomy, path: str) -> LayerBar:
    """Return a bar. `ms` is the mean of the whole path, or "" if the packets pass different nodes."""
    layer_figures = [figures for layers in node_layers.values() for figures in layers.values()]
    mean = (
        f"{_number(sum(figures.mean for figures in layer_figures))} ms"
        if len({figures.n for figures in layer_figures}) == 1
        else ""
    )
    nodes, before = [], 0.0
    for node, layers in node_layers.items():
        nodes.append((node, before, [(layer, 100 * figures.share, value_text(figures.mean, "time", NO_VALUE))
                                     for layer, figures in layers.items()]))  # fmt: skip
        before += sum(100 * figures.share for figures in layers.values())
    return LayerBar(kind, path, mean, nodes)


def _layers(summary: Summary) -> list[str]:
    """Return the layers that are visible in a bar."""
    visible = {layer for bar in _bars(summary) for _, _, layers in bar.nodes for layer, percent, _ in layers
            if percent >= LEGEND_MIN_PERCENT}  # fmt: skip
    return [layer for layer in LAYERS if layer in visible]


def _number(value: float | None) -> str:
    return value_text(value, "number", NO_VALUE)


def _facts(run: Recording, paths: Sequence[PlanPath]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a run: test, kernel, seed, links, the stack of all nodes and of single ones, digest."""
    test = run.test
    yield "test", f"{test.name}, {test.length_s:g} s under load, {test.delay_s:g} s before and after"
    yield "kernel", f"Linux {run.info.kernel.release}, {run.info.engine} engine"
    if not run.info.elsewhere:
        yield "seed", str(run.info.seed)
    yield from links(paths, run.experiment.settings)
    stack_facts: dict[str, list[str]] = {}
    for key, value in run.experiment.settings.items():
        if key[0] == "stack" and value not in (None, {}):
            key_parts = key[1:]
            if len(key_parts) == 1 or key_parts[0] in ("pacing", "sysctl"):
                stack_facts.setdefault(" ".join(part for part in key_parts if part != "sysctl"), []).append(str(value))
            else:
                stack_facts.setdefault(f"at {key_parts[0]}", []).append(f"{' '.join(key_parts[1:])} {value}")
    yield from ((name, ", ".join(values)) for name, values in stack_facts.items())
    yield "digest", run.info.digest
