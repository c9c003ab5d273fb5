# SPDX-License-Identifier: Apache-2.0
"""`hourglass diff`: where two runs part."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

import hourglass
from hourglass.cli import output
from hourglass.cli.tables import NOTHING
from hourglass.results.diff import Change, Diff, Packet, Value

MOST = 12
"""Changes of one row that the terminal shows; `--json` has all."""


def diff_runs(first: Path, second: Path, json: bool) -> int:
    """Prints it; 0 when the records are the same bytes, else 1."""
    found = hourglass.diff(hourglass.load(first), hourglass.load(second))
    if json:
        output.show_json({"schema": 1, "runs": [str(first), str(second)], **asdict(found)})
    else:
        _show(found, first, second)
    return int(not found.same)


def _show(found: Diff, first: Path, second: Path) -> None:
    output.show(Text(f"A  {first}\nB  {second}\n"))
    if found.asked:
        output.show(_changes("asked", found.asked), Text())
    if found.same:
        output.show(Text("the same records, byte by byte"))
        return
    if found.packet:
        output.show(Text(f"the first packet that fared differently:\n{told(found.packet)}"))
        output.show(_changes("packet", found.packet.changes), Text())
    if found.socket_ns is not None:
        output.show(
            Text(f"its sender's socket when next sampled, at {_seconds(found.socket_ns)}"),
            _changes("socket", found.socket),
            Text(),
        )
    if found.tables:
        output.show(_tables(found))
    else:
        output.show(Text("nothing else differs but the order of the rows, or facts of the machine"))


def told(packet: Packet) -> str:
    """The first packet that fared differently, in a line."""
    where = f"in {packet.layer} at {packet.node}" if packet.layer else f"at {packet.node}"
    what = f"{'packet' if packet.data else 'bare packet'} {packet.number} of {packet.stream}, {packet.way}"
    return f"at {_seconds(packet.t_ns)}, {where}: {what}"


def _changes(head: str, changes: tuple[Change, ...]) -> Table:
    table = output.grid(head, "A", "B")
    for one in changes[:MOST]:
        table.add_row(one.what, _value(one.what, one.first), _value(one.what, one.second))
    if len(changes) > MOST:
        table.add_row(f"and {len(changes) - MOST} more")
    return table


def _tables(found: Diff) -> Table:
    table = output.grid("table", "rows A", "rows B", "differ", "first at", "of")
    table.columns[-1].justify = "left"
    for one in found.tables:
        about = " ".join(str(value) for value in one.about.values())
        changed = ", ".join(f"{c.what} {_value(c.what, c.first)} / {_value(c.what, c.second)}" for c in one.changes[:1])
        told = f"{about}: {changed}" if about else changed
        table.add_row(one.name, *map(str, (*one.rows, one.differ)), _seconds(one.t_ns), told)
    return table


def _value(what: str, value: Value) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if what.endswith("_ns") and isinstance(value, int):
        return _seconds(value) if what in ("t_ns", "end_ns") else f"{value / 1e6:.6f} ms"
    return str(value)


def _seconds(ns: int) -> str:
    """Exact: a difference of 1 ns is seen."""
    return f"{ns // 10**9}.{ns % 10**9:09d} s"
