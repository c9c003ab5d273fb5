# SPDX-License-Identifier: Apache-2.0
"""Compare, plot and report runs from Python: `hourglass.compare`, `hourglass.plot`, `hourglass.write_report`.

Each takes runs as you have them: recordings, paths of run directories, sweeps and Flent files, or a list of these.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from hourglass.errors import InputError, closest
from hourglass.flent import read
from hourglass.results import sweeps
from hourglass.results.recording import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs: TypeAlias = "Recording | str | Path | Iterable[Recording | str | Path]"


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook shows. `figure`: matplotlib's; change its axes, and the notebook shows the change."""

    figure: "Figure" = field(repr=False)

    @property
    def png(self) -> bytes:
        """The picture as a PNG file."""
        from hourglass.plots import style

        return style.png(self.figure)

    def _repr_png_(self) -> bytes:
        return self.png


def load(path: str | Path) -> Recording:
    """Return the recording of the run in directory `path`, or of the Flent file of that name. Raises `InputError`."""
    if read.is_flent(Path(path)):
        return read.load(Path(path))
    return sweeps.run(Path(path))


def load_all(paths: Iterable[str | Path]) -> list[Recording]:
    """Return the runs of several paths, in their order: run directories, Flent files and folders of sweeps. A sweep
    gives every complete run, labelled by the sweep's axes. Raises `InputError`."""
    listed = [Path(path) for path in paths]
    return [run for path in listed for run in (sweeps.runs(path) if sweeps.is_sweep(path) else [load(path)])]


def recordings(runs: Runs) -> list[Recording]:
    """Return the recordings of runs, in their order. Raises `InputError`."""
    several = [runs] if isinstance(runs, Recording | str | Path) else list(runs)
    return [run for each in several for run in ([each] if isinstance(each, Recording) else load_all([each]))]


def compare(*runs: Runs) -> pl.DataFrame:
    """Compare runs with the first of them: a row per figure and run. Raises `InputError`.

    Columns: `figure`, `name` (of `hourglass export`; "" for figures that a comparison computes), `unit`, `run` (its
    label), `value`, `change_percent` from the first run, `low` and `high` (the 95 % interval of the difference, in
    `unit`), `significant`.
    """
    from hourglass.results.compare import compare as rows_of
    from hourglass.results.labels import labels

    loaded = [run for each in runs for run in recordings(each)]
    if len(loaded) < 2:
        raise InputError("runs", len(loaded), "needs two or more runs, or the folder of a sweep")
    names = labels(loaded)
    cells = [
        (row.figure, row.name, row.unit, name, cell.value, cell.change_percent, *(cell.interval or (None, None)),
         cell.significant)
        for row in rows_of(loaded)
        for name, cell in zip(names, row.cells, strict=True)
    ]  # fmt: skip
    text, number = pl.String, pl.Float64
    schema = {"figure": text, "name": text, "unit": text, "run": text, "value": number, "change_percent": number}
    return pl.DataFrame(cells, {**schema, "low": number, "high": number, "significant": pl.Boolean}, orient="row")


def plot(kind: str, *runs: Runs, out: str | Path | None = None) -> Picture | Path:
    """Draw runs as one of `hourglass.plots.KINDS`: into the file `out`, or as a picture for a notebook.

    Raises `InputError`.
    """
    from hourglass.plots import KINDS, draw, style

    if kind not in KINDS:
        raise InputError("kind", kind, f"{closest(kind, KINDS)}A picture is one of {', '.join(KINDS)}")
    loaded = [run for each in runs for run in recordings(each)]
    if not loaded:
        raise InputError("runs", "none", "needs one run or more")
    if out is not None:
        draw(kind, loaded, Path(out))
        return Path(out)
    with style.collect_figures() as figures:
        draw(kind, loaded, Path("picture.png"))
    return Picture(*figures)


def write_report(runs: Runs, out: str | Path) -> Path:
    """Write the HTML page about runs to the file `out`. Raises `InputError`."""
    from hourglass import report

    loaded = recordings(runs)
    if not loaded:
        raise InputError("runs", "none", "needs one run or more")
    report.write(loaded, Path(out))
    return Path(out)
