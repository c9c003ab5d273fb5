# SPDX-License-Identifier: Apache-2.0
"""The files of a run directory and of a sweep's folder. ARCHITECTURE.md describes their content. And the names of Flent
files, which are opened like runs."""

from pathlib import Path

RUN_FILE = "run.json"
SCENARIO_FILE = "scenario.json"
PLAN_FILE = "plan.json"
RECORDS_FILE = "records.arrows"
CONSOLE_FILE = "console.log"
SUMMARY_FILE = "summary.json"
PICTURE_FILE = "run.png"
APPS_FOLDER = "apps"

TABLE_FILE = "table.parquet"
RUNS_FOLDER = "runs"

FLENT_SUFFIXES = (".flent", ".flent.gz", ".flent.bz2", ".flnt")


def flent_stem(path: Path) -> str:
    """Return the name of a Flent file without its suffix."""
    suffix = next((suffix for suffix in FLENT_SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(suffix)
