# SPDX-License-Identifier: Apache-2.0
"""Hourglass: the real Linux network stack in virtual time.

The way of the data, one folder each: `scenario` → `plan` → `engine` → `results` → `plots`; `cli` calls them in that
order.

    import hourglass
    run = hourglass.run(hourglass.scenario.load("L100M"))
    run.summary.totals.upload_mbps
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hourglass.campaign.sweep import sweep
    from hourglass.results.diff import diff
    from hourglass.results.recording import Recording
    from hourglass.runner import run
    from hourglass.testing.judge import check

__version__ = "0.2.0"

__all__ = ["check", "diff", "load", "load_all", "run", "sweep"]


def load(path: str | Path) -> "Recording":
    """What was measured: the run in directory `path`, or the Flent file of that name. Raises `InputError`."""
    from hourglass.flent import read

    if read.is_flent(Path(path)):
        return read.load(Path(path))
    from hourglass.results import sweeps

    return sweeps.run(Path(path))


def load_all(paths: Iterable[str | Path]) -> "list[Recording]":
    """The runs of several places, in their order: run directories, Flent files, and folders of sweeps, of which every
    run that was made is one, told apart by the sweep's axes. Raises `InputError`."""
    from hourglass.results import sweeps

    places = [Path(path) for path in paths]
    return [run for place in places for run in (sweeps.runs(place) if sweeps.is_sweep(place) else [load(place)])]


def __getattr__(name: str) -> Any:
    """The functions and the folders are imported when first used, so that the command line starts fast."""
    if name == "run":
        from hourglass.runner import run

        return run
    if name == "check":
        from hourglass.testing.judge import check

        return check
    if name == "diff":
        from hourglass.results.diff import diff

        return diff
    if name == "sweep":
        from hourglass.campaign.sweep import sweep

        return sweep
    if name in ("campaign", "papers", "scenario", "plan", "engine", "results", "plots", "report", "testing"):
        from importlib import import_module

        return import_module(f"hourglass.{name}")
    raise AttributeError(f"module 'hourglass' has no attribute {name!r}")
