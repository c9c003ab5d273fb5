# SPDX-License-Identifier: Apache-2.0
"""A study as data for `--json`, and its verdicts for JUnit XML."""

from typing import Any

from hourglass.contract.summary import CheckVerdict
from hourglass.studies import wording
from hourglass.studies.run_check import RunVerdict
from hourglass.studies.study import StudyResult
from hourglass.studies.verdicts import CellVerdict


def data(result: StudyResult) -> dict[str, Any]:
    """Return the object of `--json`."""
    return {
        "schema": 1,
        "study": result.study.name,
        "kernel": result.kernel,
        "axis": result.study.axis,
        "columns": list(result.columns),
        "reference": result.study.reference,
        "kernels": {name: {"release": kernel.release, "key": kernel.key} for name, kernel in result.kernels.items()},
        "baseline": result.baseline,
        "quick": result.options.quick,
        "ok": not result.failures and not result.missed,
        "repeated": list(result.repeated),
        "skipped": dict(result.skipped),
        "causes": [
            {"part": line.part.id, "setting": line.label, "column": column, "causes": causes}
            for line, column, causes in result.causes
        ],
        "failed": [
            {"cell": failure.cell, "code": failure.code, "reason": failure.reason, "log": str(failure.log)}
            for failure in result.failures
        ],
        "lines": [
            {
                "id": line[0].line.id, "part": line[0].line.part.id, "setting": line[0].line.label,
                "figure": line[0].line.figure.name, "unit": line[0].line.figure.unit,
                "cells": {verdict.cell.column: _cell(result, verdict) for verdict in line if verdict.cell.runs},
            }
            for line in result.matrix
        ],
    }  # fmt: skip


def _cell(result: StudyResult, verdict: CellVerdict) -> dict[str, Any]:
    return {
        "value": verdict.cell.value, "seeds": list(verdict.cell.values), "verdict": verdict.verdict,
        "bound": verdict.limit, "source": verdict.criterion.source if verdict.criterion else "",
        "reason": verdict.reason, "counts": verdict.counts, "gap": verdict.gap, "interval": verdict.interval,
        "runs": [wording.run_path(result, key) for key in verdict.cell.runs],
    }  # fmt: skip


def junit(result: StudyResult) -> list[RunVerdict]:
    """Return a suite for each column, a case for each of its cells. A failure is a verdict that counts, or a run that
    failed."""
    suites = []
    for number, column in enumerate(result.columns):
        cells = [line[number] for line in result.matrix if line[number].cell.runs]
        name = ".".join(filter(None, (result.study.name, result.kernel, column)))
        suites.append(RunVerdict(name, None, [_check(verdict) for verdict in cells]))
    return suites


def _check(verdict: CellVerdict) -> CheckVerdict:
    reason = verdict.reason
    if verdict.counts:
        reason = f"{reason or 'missed'}; run: {' '.join(verdict.cell.runs)}"
    return CheckVerdict(
        figure=verdict.line.id, bound=verdict.limit or "as before", value=verdict.cell.value,
        unit=verdict.line.figure.unit, ok=not verdict.counts and verdict.verdict != "failed", reason=reason,
    )  # fmt: skip
