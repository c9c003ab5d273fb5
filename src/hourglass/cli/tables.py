# SPDX-License-Identifier: Apache-2.0
"""The tables of the terminal: pure functions from figures to what `rich` draws, 80 columns wide, ASCII only."""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hourglass.contract.probe import LAYERS
from hourglass.results.compare import Cell, Row
from hourglass.results.stats import known_sum, percent, short

PERCENTILES = ("p10", "p50", "p90", "p99")
NOTHING = "-"
"""What stands where there is no figure."""

FIGURE_WIDTH, UNIT_WIDTH, BASE_WIDTH, OTHER_WIDTH = 21, 9, 10, 20
"""Columns of the comparison with margins: the figure, its unit, the first run, each further run with its change."""


def figures(summary: dict[str, Any], test: str) -> Group:
    """All figures of one run: flows, pings, radios, layers, drops."""
    title = f"{summary['scenario']}  {test}  Linux {summary['kernel']}  seed {summary['seed']}"
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    if summary["flows"]:
        parts += [_flows(summary), Text(), Text(_totals(summary["totals"])), Text()]
    if summary["ping_ms"]:
        parts += [_pings(summary["ping_ms"]), Text()]
    if summary["datagrams"]:
        parts += [_datagrams(summary["datagrams"]), Text()]
    if summary["fetches"]:
        parts += [_fetches(summary["fetches"]), Text()]
    if summary["wifi"]:
        parts += [_wifi(summary["wifi"]), Text()]
    if summary["layers_ms"] or any(summary["ping_layers_ms"].values()):
        parts += [_anatomy(summary["layers_ms"], summary["ping_layers_ms"]), Text()]
    return Group(*parts, _drops(summary["drops"]), Text())


def footer(summary: dict[str, Any], place: Path, picture: Path | None) -> Text:
    """What to beware of, where the run is and what it took; not wrapped, so that paths can be copied."""
    lines = [f"warning  {_warning(warning)}" for warning in summary["warnings"]]
    lines += [""] if lines else []
    lines.append(f"run      {place}")
    if picture is not None:
        lines.append(f"picture  {picture}")
    virtual_s, wall_s = summary["virtual_s"], summary["wall_s"]
    speed = f" ({virtual_s / wall_s:.1f} x real time)" if wall_s else ""
    lines.append(f"time     {virtual_s:g} s virtual in {wall_s:.2f} s{speed}")
    lines.append(f"digest   {summary['digest'][:12]}")
    return Text("\n".join(lines))


def _warning(warning: dict[str, str]) -> str:
    """One line: what was found and what to do about it."""
    remedy = f"; {warning['remedy']}" if warning["remedy"] else ""
    return f"[{warning['id']}] {warning['text']}{remedy}"


def _grid(*columns: tuple[str, str]) -> Table:
    """A table without lines; columns are (header, "left" | "right")."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header, side in columns:
        right = side == "right"
        table.add_column(header, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def _flows(summary: dict[str, Any]) -> Table:
    numbers = ("Mbit/s", "retrans", *(f"RTT {p}" for p in PERCENTILES))
    table = _grid(("flow", "left"), ("cc", "left"), *((name, "right") for name in numbers))
    for flow in summary["flows"]:
        _flow(table, flow["id"], flow["cc"], flow["goodput_mbps"], flow["retransmits"], flow["tcp_rtt_ms"])
    if len(summary["flows"]) > 1:
        totals = summary["totals"]
        retransmits = known_sum([flow["retransmits"] for flow in summary["flows"]])
        _flow(table, "all", "", totals["upload_mbps"] + totals["download_mbps"], retransmits, summary["tcp_rtt_ms"])
    return table


def _flow(table: Table, name: str, cc: str, mbps: float, retransmits: int | None, rtt_ms: dict[str, Any]) -> None:
    table.add_row(name, cc, _number(mbps), _number(retransmits), *(_number(rtt_ms[p]) for p in PERCENTILES))


def _totals(totals: dict[str, Any]) -> str:
    return (
        f"upload {_number(totals['upload_mbps'])} Mbit/s   download {_number(totals['download_mbps'])} Mbit/s   "
        f"fairness {_number(totals['fairness'])}   (TCP RTT in ms)"
    )


def _pings(pings: dict[str, Any]) -> Table:
    table = _grid(("ping (ms)", "left"), *((name, "right") for name in (*PERCENTILES, "max", "answered", "lost")))
    for probe, rtt_ms in pings.items():
        values = [_number(rtt_ms[key]) for key in (*PERCENTILES, "max")]
        table.add_row(probe, *values, str(rtt_ms["n"]), str(rtt_ms["lost"]))
    return table


def _datagrams(streams: list[dict[str, Any]]) -> Table:
    """One-way streams: what arrived, how late, how unevenly, what was lost; of a telephone how it sounds."""
    numbers = ("Mbit/s", "p10", "p50", "p90", "p99", "jitter", "sent", "lost", "MOS")
    table = _grid(("one way (ms)", "left"), *((name, "right") for name in numbers))
    for one in streams:
        cells = [
            one["goodput_mbps"],
            *(one["owd_ms"][p] for p in PERCENTILES),
            one["jitter_ms"],
            one["sent"],
            one["lost"],
        ]
        table.add_row(one["id"], *(_number(cell) for cell in (*cells, one.get("mos"))))
    return table


def _fetches(clients: list[dict[str, Any]]) -> Table:
    """Completion times, of all fetches and by size."""
    table = _grid(
        ("fetch (ms)", "left"), ("bytes", "right"), *((name, "right") for name in (*PERCENTILES, "max", "done", "not"))
    )
    for one in clients:
        several = len(one["by_bytes"]) > 1
        parts = {"all": one["done_ms"]} | one["by_bytes"] if several else one["by_bytes"]
        for size, times in parts.items():
            last = str(one["unfinished"]) if size == next(iter(parts)) else ""
            table.add_row(one["id"], size, *(_number(times[key]) for key in (*PERCENTILES, "max", "n")), last)
    return table


SMALL_SHARE, SMALL_MS = 0.001, 0.001
"""Layers below both, in the mean and at p99, have no line."""


def _anatomy(data: dict[str, Any], pings: dict[str, Any]) -> Table:
    """Where the time goes: of TCP data from write to read, and of the round trips of the first probe that has any."""
    probe = next((name for name, anatomy in pings.items() if anatomy), None)
    kinds = {"data": data} if data else {}
    kinds |= {f"{probe}": pings[probe]} if probe else {}
    keys = ("p50", "p99", "share")
    numbers = [f"{kind} {key}" if key == "p50" else key for kind in kinds for key in keys]
    table = _grid(("time (ms)", "left"), ("layer", "left"), *((name, "right") for name in numbers))
    nodes = dict.fromkeys(node for anatomy in kinds.values() for node in anatomy)
    last = None
    for node in nodes:
        for layer in LAYERS:
            figures = [anatomy.get(node, {}).get(layer) for anatomy in kinds.values()]
            if any(one and _matters(one) for one in figures):
                table.add_row(node if node != last else "", layer, *(text for one in figures for text in _layer(one)))
                last = node
    return table


def _matters(figures: dict[str, Any]) -> bool:
    return figures["share"] >= SMALL_SHARE or (figures["p99"] or 0) >= SMALL_MS


def _layer(figures: dict[str, Any] | None) -> list[str]:
    if figures is None:
        return [NOTHING] * 3
    return [*(_ms(figures[key]) for key in ("p50", "p99")), f"{figures['share']:.1%}"]


def _ms(value: float | None) -> str:
    """Whole microseconds below 10: a table of layers is no place for ns."""
    if value is None or not 0 < value < 1:
        return _number(value)
    return f"{value:.3f}"


def _drops(drops: dict[str, dict[str, dict[str, int]]]) -> RenderableType:
    """The devices that dropped packets during the run, or one line that none did."""
    rows = [
        (node, device, counts)
        for node, devices in drops.items()
        for device, counts in devices.items()
        if any(counts.values())
    ]
    if not rows:
        return Text("no drops")
    places = ("qdisc", "nic", "cable")
    table = _grid(("drops (packets)", "left"), ("device", "left"), *((place, "right") for place in places))
    for node, device, counts in rows:
        table.add_row(node, device, *(str(counts[place]) for place in places))
    return table


def _wifi(radios: dict[str, dict[str, dict[str, Any]]]) -> Table:
    """A radio a row: PPDUs, the MPDUs of one (mean, max), air time, collided PPDUs, MPDUs sent again, packets in
    mac80211's queues (mean); of an access point the shares of air time to and from its stations."""
    numbers = ("PPDUs", "MPDUs", "max", "air %", "lost %", "again %", "TXQ")
    table = _grid(("Wi-Fi", "left"), *((name, "right") for name in numbers), ("shares of air, %", "left"))
    for node, devices in radios.items():
        for one in devices.values():
            sizes, ppdus, mpdus = one["subframes"], one["ppdus"], one["mpdus"]
            parts = percent(one["collisions"], ppdus), percent(one["retries"], mpdus)
            shares = [f"{name} {100 * share:.0f}" for name, share in one["air_share"].items() if share is not None]
            cells = (sizes["mean"], sizes["max"], one["air_percent"], *parts, one["txq"]["mean"])
            told = " ".join(shares) if len(shares) > 1 else ""
            table.add_row(node, str(ppdus), *(_number(cell) for cell in cells), told)
    return table


def _number(value: float | None) -> str:
    """Three significant digits; counts in full."""
    if value is None:
        return NOTHING
    return str(value) if isinstance(value, int) else short(value)


def comparison(rows: Sequence[Row], runs: Sequence[str], width: int = 80) -> Group:
    """The runs, named A, B, …, side by side; as many tables as the width needs, A in each of them."""
    names = [_letter(place) for place in range(len(runs))]
    parts: list[RenderableType] = [Text(f"{name}  {run}") for name, run in zip(names, runs, strict=True)]
    room = max(1, (width - FIGURE_WIDTH - UNIT_WIDTH - BASE_WIDTH) // OTHER_WIDTH)
    for first in range(1, len(runs), room):
        parts += [Text(), _side_by_side(rows, names, range(first, min(first + room, len(runs))))]
    note = "change from A in %; * = the 95 % interval of the difference leaves out 0\n(bootstrap over 1 s blocks)"
    return Group(*parts, Text(), Text(note, style="dim"))


def _letter(place: int) -> str:
    """A … Z, then A1 … Z1, and so on."""
    letters = string.ascii_uppercase
    return letters[place % len(letters)] + (str(place // len(letters)) if place >= len(letters) else "")


def _side_by_side(rows: Sequence[Row], names: Sequence[str], others: range) -> Table:
    columns = [(names[0], "right")]
    for other in others:
        columns += [(names[other], "right"), ("change", "right")]
    table = _grid(("figure", "left"), ("unit", "left"), *columns)
    for row in rows:
        cells = [_number(row.cells[0].value)]
        for other in others:
            cells += [_number(row.cells[other].value), _change(row.cells[other])]
        table.add_row(row.figure, row.unit, *cells)
    return table


def _change(cell: Cell) -> str:
    """ "+12.3 *": the change in percent, and the mark or a blank, so that the digits stay in line."""
    if cell.change_percent is None:
        return f"{NOTHING}  "
    return f"{round(cell.change_percent, 1) + 0.0:+.1f} {'*' if cell.significant else ' '}"
