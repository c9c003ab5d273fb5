# SPDX-License-Identifier: Apache-2.0
"""`hourglass plot`: runs as a picture of one kind, or the list of the kinds."""

from pathlib import Path

from rich.table import Table

import hourglass
from hourglass.cli import output, pictures
from hourglass.errors import InputError

LIST = "list"


def plot_runs(kind: str, places: list[Path], out: Path | None) -> None:
    """Draws the runs into `out`, or `<kind>.png` here."""
    plots = pictures.plots()
    if kind == LIST and not places:
        output.show(listing({name: each.description for name, each in plots.KINDS.items()}))
        return
    if kind not in plots.KINDS:
        raise InputError("KIND", kind, f"is one of {', '.join(plots.KINDS)}")
    if not places:
        raise InputError("RUN", "", f"which runs? hourglass plot {kind} RUN...")
    picture = out or Path(f"{kind}.png")
    plots.draw(kind, [hourglass.load(place) for place in places], picture)
    output.show(f"picture  {picture}", whole_lines=True)


def listing(kinds: dict[str, str]) -> Table:
    """Name and description of each kind."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, description in kinds.items():
        table.add_row(name, description)
    return table
