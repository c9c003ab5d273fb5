# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass link from`: estimate a link from a capture or a Flent file."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hourglass import files
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.cli.options import Json, writable
from hourglass.cli.tables import NOTHING
from hourglass.estimation import estimate_link
from hourglass.estimation.link_estimate import QUANTITIES
from hourglass.estimation.link_scenario import scenario_text
from hourglass.results.stats import short


@examples("""\
hourglass link from upload.pcap
hourglass link from upload.flent.gz --scenario my-link.toml""")
def link_from(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A pcap or pcapng file, or a .flent.gz file.")],
    scenario: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=writable("--scenario"), help="Also write a scenario with this link."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate a link: rate, base RTT, buffer, loss and cross traffic, with 95 % intervals.

    A capture must have both directions of TCP connections. The estimate is of the bottleneck in the direction with more
    data.
    """
    estimate = estimate_link(file)
    if scenario is not None:
        with files.writing(scenario, "the scenario"):
            files.write(scenario, scenario_text(estimate).encode())
    if json:
        output.show_json({"schema": 1, **asdict(estimate)})
        return
    table = output.bare()
    for title in ("link", "value", "95 %", "unit", ""):
        table.add_column(title, justify="left" if title in ("link", "unit", "") else "right")
    for name, (label, unit) in QUANTITIES.items():
        quantity = getattr(estimate, name)
        value = NOTHING if quantity.value is None else short(quantity.value)
        interval = NOTHING if quantity.interval is None else " to ".join(map(short, quantity.interval))
        table.add_row(label, value, interval, unit, quantity.remark)
    output.show(table)
    output.show("", f"{estimate.source}: {estimate.place}, {short(estimate.seconds)} s", whole_lines=True)
    if scenario is not None:
        output.show(f"scenario {scenario}", whole_lines=True)
