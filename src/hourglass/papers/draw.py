# SPDX-License-Identifier: Apache-2.0
"""A figure drawn in the paper's form from its runs."""

from pathlib import Path

from hourglass.papers.model import Evidence, Figure
from hourglass.plots import paper
from hourglass.results.run import Run

QUANTITIES = {"goodput": "goodput, all flows (Mbit/s)", "tcp": "TCP RTT (ms)", "ping": "ping RTT (ms)"}


def draw(figure: Figure, evidence: Evidence, path: Path) -> bool:
    """Draws the figure at `path`; False when it has no picture, or lacks runs that failed."""
    path.unlink(missing_ok=True)
    try:
        return _draw(figure, evidence, path)
    except LookupError:
        return False


def _draw(figure: Figure, evidence: Evidence, path: Path) -> bool:
    title = f"{figure.id}  {figure.title}"
    if figure.form == "candles":
        wanted = ("goodput", "ping") if figure.id == "A-4" else ("tcp",)
        paper.candles(title, [_candles(evidence, what) for what in wanted], path)
    elif figure.form == "series":
        paper.series(title, _columns(evidence), path)
    elif figure.form == "bars":
        paper.bars(title, _bars(evidence), path)
    else:
        return False
    return True


def _candles(e: Evidence, what: str) -> paper.Panel:
    groups, kinds = e.values("scenario"), e.values("tsq")
    samples = [[paper.samples_of(e.runs(scenario=group, tsq=tsq), what) for group in groups] for tsq in kinds]
    return paper.Panel(QUANTITIES[what], groups, [e.result.grid.label("stack.tsq", tsq) for tsq in kinds], samples)


def _columns(e: Evidence) -> list[tuple[str, list[tuple[str, Run]]]]:
    return [
        (e.result.grid.label("stack.tsq", tsq), [(cc.upper(), e.runs(cc=cc, tsq=tsq)[0]) for cc in e.values("cc")])
        for tsq in e.values("tsq")
    ]


def _bars(e: Evidence) -> list[paper.Bar]:
    """A bar per setting, medians over the seeds."""
    words = [word for word, key in e.short.items() if key != "seed"]
    settings = e.table.select([e.short[word] for word in words]).unique(maintain_order=True)
    found = []
    for row in settings.iter_rows():
        where = dict(zip(words, row, strict=True))
        label = ", ".join(e.result.grid.label(e.short[word], value) for word, value in where.items())
        figures = [e.value(name, **where) for name in ("upload_mbps", "download_mbps", "ping_icmp_p50_ms")]
        found.append(paper.Bar(label, *figures))
    return found
