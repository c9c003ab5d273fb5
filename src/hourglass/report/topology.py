# SPDX-License-Identifier: Apache-2.0
"""The testbed drawn: as SVG, nodes by their distance from the client, between them cables and air with their words;
and, for a narrow screen, as a list of the same.

Every text has a place of its own: a column is as wide as its widest text, a row as high as its highest, and between two
columns each row carries one link, so that no text stands upon another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from hourglass.contract.plan import Path
from hourglass.report.testbed import Edge, Settings, edges, queueing, words

LEAST = 0.78
"""A drawing is shrunk to this where there is no room, and scrolled where there is less."""
NODE_W, NODE_H, MARGIN, BEND, PAD = 84, 36, 12, 12, 10
"""px."""
LINE, LETTER = 15, 7.3
"""Height of a line, and width of a letter of the widest font in use, px."""

Spots = dict[str, tuple[int, int]]
"""(column, row) of each node."""


@dataclass(frozen=True)
class Label:
    """An edge, the row in which it crosses the gap right of column `gap`, its words."""

    edge: Edge
    gap: int
    row: int
    words: list[str]


@dataclass(frozen=True)
class Sheet:
    """Where things are, px: left end and width of each column's nodes, middle of each row."""

    left: list[float]
    width: list[float]
    middle: list[float]
    size: tuple[float, float]


def topology(paths: Sequence[Path], settings: Settings) -> str:
    """An `<svg>` element and the list; "" where no path is known."""
    found = edges(paths)
    if not found:
        return ""
    spots = _spots(paths, found)
    below = {name: queueing(name, paths) for name in spots}
    labels = list(_labels(found, spots, settings))
    sheet = _sheet(spots, below, labels)
    parts = [_edge(label, spots, sheet) for label in labels]
    parts += [_node(name, spots[name], below[name], sheet, _between(name, paths)) for name in spots]
    said = f"{len(spots)} nodes, {len(found)} links: {', '.join(spots)}"
    width, height = (round(side) for side in sheet.size)
    return (
        f'<svg class="topology" viewBox="0 0 {width} {height}" width="{width}"'
        f' style="min-width:{round(LEAST * width)}px" role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>'
        f'<ul class="tree">{_tree(paths[0].client, found, below, settings)}</ul>'
    )


def _between(name: str, paths: Sequence[Path]) -> bool:
    return any(hop.to_node == name for path in paths for hop in path.there[:-1])


def _spots(paths: Sequence[Path], found: Sequence[Edge]) -> Spots:
    """The column is the distance from the first client; row 0 is the way to its server."""
    start = paths[0].client
    columns, queue = {start: 0}, [start]
    for node in queue:
        for near, far in (edge.ends for edge in found):
            for here, other in ((near, far), (far, near)):
                if here == node and other not in columns:
                    columns[other] = columns[node] + 1
                    queue.append(other)
    way = [start, *(hop.to_node for hop in paths[0].there)]
    rows: dict[int, int] = {}
    spots = {}
    for name in dict.fromkeys((*way, *columns)):
        column = columns[name]
        spots[name] = (column, rows.get(column, 0 if name in way else 1))
        rows[column] = spots[name][1] + 1
    return spots


def _labels(found: Sequence[Edge], spots: Spots, settings: Settings) -> Iterator[Label]:
    """Each edge in a row of its own between its columns: the lower of its ends' rows, or the next that is free."""
    taken = set()
    for edge in sorted(found, key=lambda edge: max(spots[end][1] for end in edge.ends)):
        left, right = sorted(edge.ends, key=lambda end: spots[end])
        gap, row = spots[left][0], max(spots[left][1], spots[right][1])
        while (gap, row) in taken:
            row += 1
        taken.add((gap, row))
        yield Label(edge, gap, row, words(edge, settings, left))


def _sheet(spots: Spots, below: dict[str, list[str]], labels: Sequence[Label]) -> Sheet:
    columns = 1 + max(x for x, _ in spots.values())
    rows = 1 + max([*(y for _, y in spots.values()), *(label.row for label in labels)])
    width = [
        max([NODE_W, *(_wide([name, *below[name]]) for name in spots if spots[name][0] == x)]) for x in range(columns)
    ]
    gaps = [
        max([4 * BEND, *(_wide(label.words) + 2 * BEND for label in labels if label.gap == x)]) for x in range(columns)
    ]
    gaps[-1] = gaps[-1] if any(label.gap == columns - 1 for label in labels) else 0
    left = [MARGIN + sum(width[:x]) + sum(gaps[:x]) for x in range(columns)]
    middle, y = [], float(MARGIN)
    for row in range(rows):
        above = max([NODE_H / 2, *(LINE * len(label.words) + 6 for label in labels if label.row == row)])
        under = max([0, *(LINE * len(below[name]) for name in spots if spots[name][1] == row)]) + NODE_H / 2
        middle.append(y + above)
        y += above + under + PAD
    return Sheet(left, width, middle, (left[-1] + width[-1] + gaps[-1] + MARGIN, y + 4))


def _wide(texts: Sequence[str]) -> float:
    return PAD + LETTER * max(map(len, texts), default=0)


def _node(name: str, spot: tuple[int, int], lines: Sequence[str], sheet: Sheet, between: bool) -> str:
    x, y = sheet.left[spot[0]] + sheet.width[spot[0]] / 2, sheet.middle[spot[1]]
    half = max(NODE_W, _wide([name])) / 2
    texts = "".join(
        f'<text class="qdisc" x="{x:.1f}" y="{y + NODE_H / 2 + LINE * (place + 1) - 2:.1f}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<g class="node"><rect x="{x - half:.1f}" y="{y - NODE_H / 2:.1f}" width="{2 * half:.1f}" height="{NODE_H}"'
        f' rx="{NODE_H // 2 if between else 6}"/><text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(name)}</text>{texts}</g>'
    )


def _edge(label: Label, spots: Spots, sheet: Sheet) -> str:
    """A line by way of its row, with its words above it."""
    start, end = sorted(label.edge.ends, key=lambda name: spots[name])
    y = sheet.middle[label.row]
    left = sheet.left[label.gap] + sheet.width[label.gap] + BEND / 2
    (x1, y1), (x2, y2) = _side(start, spots, sheet, 1), _side(end, spots, sheet, -1)
    if spots[start][0] == spots[end][0]:
        x2, y2 = _side(end, spots, sheet, 1)
        corners = [(x1, y1), (left, y1), (left, y2), (x2, y2)]
        middle = left + _wide(label.words) / 2
    else:
        right = sheet.left[label.gap + 1] - BEND / 2
        corners = [(x1, y1), (left, y1), (left, y), (right, y), (right, y2), (x2, y2)]
        middle = (left + right) / 2
    texts = "".join(
        f'<text class="link" x="{middle:.1f}" y="{y - 6 - LINE * place:.1f}">{escape(line)}</text>'
        for place, line in enumerate(reversed(label.words))
    )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<g class="{label.edge.there.medium}"><polyline points="{points}"/>{texts}</g>'


def _side(name: str, spots: Spots, sheet: Sheet, way: int) -> tuple[float, float]:
    """The middle of a node's right (1) or left (-1) side."""
    column, row = spots[name]
    half = max(NODE_W, _wide([name])) / 2
    return sheet.left[column] + sheet.width[column] / 2 + way * half, sheet.middle[row]


def _tree(start: str, found: Sequence[Edge], below: dict[str, list[str]], settings: Settings) -> str:
    """The nodes from the client on, each below the one that it is joined to; a link that closes a circle comes last."""
    left = list(found)

    def item(node: str, by: str) -> str:
        inner = ""
        while mine := next((edge for edge in left if node in edge.ends), None):
            left.remove(mine)
            other = next(end for end in mine.ends if end != node)
            inner += item(other, ", ".join(words(mine, settings, node)))
        queues = f"<small>{escape('; '.join(below[node]))}</small>" if below[node] else ""
        link = f'<span class="link">{escape(by)}</span>' if by else ""
        return f"<li>{link}<b>{escape(node)}</b> {queues}{f'<ul>{inner}</ul>' if inner else ''}</li>"

    return item(start, "")
