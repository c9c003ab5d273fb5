# SPDX-License-Identifier: Apache-2.0
"""Make the study of `hourglass compare SCENARIO… --vary AXIS=A,B`: a few values of one key, compared over the same
scenarios and seeds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hourglass.builders.kernel import registry
from hourglass.errors import InputError
from hourglass.results.intervals import MIN_BLOCKS, MIN_VALUES
from hourglass.studies.file import EVERY
from hourglass.studies.grid import BASE, ENGINE
from hourglass.studies.reader import Study, read

KERNEL = "kernel"
SCENARIOS = ("L100M", "R10M", "asymmetric", "rtt-fair", "wifi-ath9k")
"""The default scenarios: a queue at the host and at the router, ACKs over a slow line, unequal round trips, and a
radio."""
TOLERANCE = {"totals.upload_mbps": 1.0, "totals.download_mbps": 1.0, "tcp_rtt.p50": 5.0}
"""The default tolerances of engines: figure = % of the guest's."""
MOST_SEEDS = 15
"""The most seeds of a comparison that is repeated until its figures are decided."""


def comparison(
    scenarios: Sequence[str],
    axis: str,
    values: Sequence[str],
    *,
    tolerance: Mapping[str, float] | None = None,
    seeds: Sequence[int] = (),
    wire: bool = False,
    report: Callable[[float, str], None] = lambda _, __: None,
) -> Study:
    """Return the study that compares the values of an axis (`kernel`, `engine`, or a key of the scenario) with the
    first of them.

    With a `tolerance`, by figure in %, seeds are added until each figure is decided; engines have a default. Without
    one, all figures are compared over five seeds. Kernels are built first; a tree has its default name.

    Raises `InputError`, and `HourglassError` if a kernel cannot be built."""
    if len(set(values)) != len(values) or len(values) < 2:
        raise InputError("--vary", f"{axis}={','.join(values)}", "must have two different values or more, like A,B")
    if axis == KERNEL:
        values = [registry.ensure_tree(value, report).name for value in values]
        if len(set(values)) != len(values):
            raise InputError("--vary", values[0], "is the name of two kernels; rename a folder or file")
    limits = {**(TOLERANCE if axis == ENGINE else {}), **(tolerance or {})}
    figures: list[dict[str, Any]] = [{"name": name, "tolerance": f"{limit}%"} for name, limit in limits.items()]
    numbers = [*seeds] or [*range(1, 1 + (MOST_SEEDS if limits else MIN_BLOCKS))]
    table: dict[str, Any] = {"range": f"{numbers[0]}-{numbers[-1]}"}
    if limits:
        table |= {"until": "decided"} | ({} if axis == ENGINE else {"reference": MIN_VALUES})
    names = list(dict.fromkeys(scenarios)) or list(SCENARIOS)
    return read(
        {
            "name": "-".join(["compare", axis, *("-".join(Path(value).parts[-2:]) for value in values)]).replace(
                "/", "-"
            ),
            "description": f"{', '.join(names)}: {axis} {', '.join(values)}",
            "axes": {BASE: names},
            "compare": {"axis": axis, "values": list(values), "reference": values[0]}
            | ({"wire": True} if wire else {}),
            "seeds": table,
            "figure": figures or [{"name": EVERY}],
        }
    )
