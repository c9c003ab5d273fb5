# SPDX-License-Identifier: Apache-2.0
"""The command `agree` and its options; what it does is in `agree.py`."""

from pathlib import Path
from typing import Annotated

import typer

from hourglass.cli.options import Json, Settings

EXAMPLES = """\
hourglass agree L100M --set test.length=10
hourglass agree scenarios/agree/veth.toml --page agree.html
hourglass agree my-cable.toml --within ping.icmp.p50=10 --json"""


def agree(
    cases: Annotated[str, typer.Argument(metavar="CASES|SCENARIO", help="A file of cases, or one scenario.")],
    settings: Settings = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="The engine in real time that makes the real runs.")
    ] = "native",
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The lab's kernel; default: the one nearest to the real one.")
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="FIGURE=%", help="How far a figure may be from the lab's; as often as needed."),
    ] = None,
    least: Annotated[int, typer.Option(metavar="N", help="Real runs of a case before it can be decided.")] = 6,
    most: Annotated[int, typer.Option(metavar="N", help="Real runs of a case at most.")] = 15,
    wire: Annotated[bool, typer.Option("--wire", help="The lab has its NICs and cables, not veth pairs.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the runs go.")] = Path("runs/agree"),
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    json: Json = False,
) -> None:
    """Hold the lab against a real kernel, figure by figure.

    Runs the same scenarios in both, as often as noise demands, and says of each miss what the data show.
    """
    from hourglass.cli.agree import agree_cases

    raise typer.Exit(
        agree_cases(cases, settings or [], engine, kernel, within or [], least, most, wire, out, page, json)
    )
