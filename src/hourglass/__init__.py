# SPDX-License-Identifier: Apache-2.0
"""Hourglass: the real Linux network stack in virtual time.

Data flow through these folders in order: `scenario` → `plan` → `engine` → `results` → `plots`. `cli` calls them.

    import hourglass
    run = hourglass.run("L100M", seed=2)
    run.summary.totals.upload_mbps
    hourglass.write_report(run, "report.html")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hourglass.api import compare, load, load_all, plot, write_report
    from hourglass.results.diff import diff
    from hourglass.runner import run
    from hourglass.studies.run_check import check
    from hourglass.studies.score import evaluate, score
    from hourglass.studies.search import search
    from hourglass.studies.study import study
    from hourglass.studies.tuning import tune
    from hourglass.studies.what_if import explain

    sweep = study

__version__ = "0.3.0"

__all__ = [
    "check", "compare", "diff", "evaluate", "explain", "load", "load_all", "plot", "run", "score", "search", "study",
    "tune", "write_report",
]  # fmt: skip

FUNCTIONS = {
    "check": "studies.run_check",
    "compare": "api",
    "diff": "results.diff",
    "evaluate": "studies.score",
    "explain": "studies.what_if",
    "load": "api",
    "load_all": "api",
    "plot": "api",
    "run": "runner",
    "score": "studies.score",
    "search": "studies.search",
    "study": "studies.study",
    "tune": "studies.tuning",
    "write_report": "api",
}
"""The module of each function."""
RENAMED = {"sweep": "study"}
"""Earlier names, which this release still has."""
FOLDERS = ("engine", "errors", "plan", "plots", "report", "results", "scenario", "studies", "testing")


def __getattr__(name: str) -> Any:
    """Import functions and folders when you first use them, so that the command line starts fast."""
    name = RENAMED.get(name, name)
    if name in FUNCTIONS:
        return getattr(import_module(f"hourglass.{FUNCTIONS[name]}"), name)
    if name in FOLDERS:
        return import_module(f"hourglass.{name}")
    raise AttributeError(f"module 'hourglass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *FOLDERS, "__version__"])
