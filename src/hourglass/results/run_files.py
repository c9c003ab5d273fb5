# SPDX-License-Identifier: Apache-2.0
"""The files of a run directory and of a sweep's folder. ARCHITECTURE.md describes their content."""

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
