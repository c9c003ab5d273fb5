# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel ab`: two kernels, or two files on one kernel, over the same scenarios."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from hourglass.campaign.ab import OUT, SUITE, Compared, Comparison, ab
from hourglass.cli import output, tables
from hourglass.cli.compare import row_data
from hourglass.cli.diff import told
from hourglass.cli.errors import MISSED
from hourglass.cli.progress import shown
from hourglass.contract.summary import Check
from hourglass.results.compare import Row
from hourglass.results.stats import short
from hourglass.testing.judge import Verdict


def compare_kernels(
    first: str,
    second: str,
    scenarios: list[str],
    settings: list[str],
    seeds: int,
    kernel: str | None,
    at: str | None,
    out: Path | None,
    jobs: int | None,
    junit: Path | None,
    json: bool,
) -> int:
    """Prints what moved; 1 when any figure did."""
    with shown() as progress:
        found = ab(
            first, second, scenarios or SUITE, seeds=seeds, overrides=settings, kernel=kernel, at=at, out=out or OUT,
            jobs=jobs, progress=progress,
        )  # fmt: skip
    if junit is not None:
        from hourglass.testing import junit as form

        form.write(junit, [_verdict(one) for one in found.scenarios])
    if json:
        output.show_json(_data(found))
    else:
        _show(found)
    return MISSED if found.moved else 0


def _show(found: Comparison) -> None:
    for letter, side in zip("AB", found.sides, strict=True):
        output.show(f"{letter}  {side.name}: Linux {side.kernel.release}, key {side.kernel.key[:12]}", whole_lines=True)
    for one in found.scenarios:
        seeds = len(one.pairs)
        same = "the same records" if one.same == seeds else f"{one.same} of {seeds} seeds have the same records"
        output.show(Text(), Text(f"{one.scenario}  {same}", style="bold"))
        if one.moved:
            output.show(tables.changes(one.moved), "* by more than its seeds differ")
        elif one.first is not None:
            output.show("no figure moved by more than its seeds differ")
        if one.first is not None and one.first.packet is not None:
            seed = next(a.info.seed for a, b in one.pairs if a.info.digest != b.info.digest)
            output.show(Text(f"first felt with seed {seed} {told(one.first.packet)}"))
    moved = [one.scenario for one in found.scenarios if one.moved]
    output.show(Text(), f"moved: {', '.join(moved)}" if moved else "no figure moved")


def _verdict(one: Compared) -> Verdict:
    """A scenario as a test: a bound missed for each figure that moved."""
    run = one.pairs[0][1]
    kept = [] if one.moved else [Check(figure="records", bound="as of A", value=None, unit="", ok=True, reason="")]
    return Verdict(one.scenario, run, kept + [_missed(row) for row in one.moved])


def _missed(row: Row) -> Check:
    first, second = row.cells
    bound = f"== {short(first.value or 0)} {row.unit}".strip()
    return Check(figure=row.name or row.figure, bound=bound, value=second.value, unit=row.unit, ok=False, reason="")


def _data(found: Comparison) -> dict[str, Any]:
    return {
        "schema": 1,
        "kernels": [{"name": one.name, "release": one.kernel.release, "key": one.kernel.key} for one in found.sides],
        "moved": found.moved,
        "scenarios": [
            {
                "scenario": one.scenario,
                "runs": [[str(run.path) for run in pair] for pair in one.pairs],
                "same": one.same,
                "moved": [row_data(row) for row in one.moved],
                "first": None if one.first is None or one.first.packet is None else asdict(one.first.packet),
            }
            for one in found.scenarios
        ],
    }
