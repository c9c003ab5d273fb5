# SPDX-License-Identifier: Apache-2.0
"""`hourglass plot`: runs as a picture of one kind, or the list of the kinds."""

from pathlib import Path

import hourglass
from hourglass.cli import output, pictures
from hourglass.errors import InputError

LIST = "list"


def plot_runs(kind: str, places: list[Path], out: Path | None) -> None:
    """Draws the runs into `out`, or `<kind>.png` here."""
    plots = pictures.plots()
    if kind == LIST and not places:
        output.show(output.listing((name, each.description) for name, each in plots.KINDS.items()))
        return
    if kind not in plots.KINDS:
        raise InputError("KIND", kind, f"is one of {', '.join(plots.KINDS)}")
    if not places:
        raise InputError("RUN", "", f"which runs? hourglass plot {kind} RUN...")
    picture = out or Path(f"{kind}.png")
    plots.draw(kind, hourglass.load_all(places), picture)
    output.show(f"picture  {picture}", whole_lines=True)
