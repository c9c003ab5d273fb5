# SPDX-License-Identifier: Apache-2.0
"""Draws the testbed as SVG, with nodes by distance from the client and labelled links, and as a list for narrow
screens.

Texts never overlap. A column is as wide as its widest text, and a row as high as its highest. Each row has at most one
link between two columns. Links of different nodes never share a vertical line: each node has a lane next to its column,
the lower ones nearer to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, count

from hourglass.contract.plan import Path
from hourglass.report.path_figures import PathFigures
from hourglass.report.testbed import SWITCH, Edge, Settings, edge_texts, edges, queueing, roles

MIN_SCALE = 0.78
"""The least scale of a drawing on a narrow page; below it, the drawing scrolls."""
NODE_W, NODE_H, MARGIN, BEND, PAD, LANE = 84, 36, 12, 12, 10, 6
"""px."""
LINE, LETTER = 15, 7.3
"""The height of a line, and the width of a letter in the widest font, px."""

ROUTER = "router"
NO_FIGURES = PathFigures()
Positions = dict[str, tuple[int, int]]
"""(column, row) of each node."""


@dataclass(frozen=True)
class EdgeLabel:
    """An edge, its row in the gap to the right of column `gap`, and its texts."""

    edge: Edge
    gap: int
    row: int
    texts: list[str]

    def ends(self, positions: Positions) -> tuple[str, str]:
        """Return its left (or upper) and its right (or lower) end."""
        left, right = sorted(self.edge.ends, key=lambda name: positions[name])
        return left, right


@dataclass(frozen=True)
class Lanes:
    """The lanes in the gaps between columns, for the links whose row is not that of their end: the number of each lane
    from its column, by (gap, end) or (gap, row) for a link within a column."""

    left: dict[tuple[int, str | int], int]
    right: dict[tuple[int, str | int], int]

    def bends(self, gap: int) -> tuple[float, float]:
        """Return the distances of the outermost lanes from the columns at both sides of a gap."""
        most = (max([0, *(lane for key, lane in side.items() if key[0] == gap)]) for side in (self.left, self.right))
        left, right = (BEND / 2 + LANE * lane for lane in most)
        return left, right


@dataclass(frozen=True)
class Geometry:
    """The geometry in px: left end and width of each column's nodes, middle of each row, lanes, total size."""

    left: list[float]
    width: list[float]
    middle: list[float]
    lanes: Lanes
    size: tuple[float, float]


def topology(paths: Sequence[Path], settings: Settings, figures: PathFigures = NO_FIGURES) -> str:
    """Return an `<svg>` element and the list, with the figures along the path, or "" if no path is known."""
    edge_list = edges(paths)
    if not edge_list:
        return ""
    positions = _positions(paths, edge_list)
    role_of = roles(settings)
    device_lines = {name: [*queueing(name, paths, role_of.get(name, "")), *figures.lines(name)] for name in positions}
    labels = list(_labels(edge_list, positions, settings, figures.rates_mbps))
    geometry = _geometry(positions, device_lines, labels)
    parts = [_edge(label, positions, geometry) for label in labels]
    parts += [
        _node(name, positions[name], device_lines[name], geometry, _shape(name, paths, role_of), figures.percent(name))
        for name in positions
    ]
    notes = {name: [SWITCH] * (role_of.get(name) == SWITCH) + lines for name, lines in device_lines.items()}
    description = f"{len(positions)} nodes, {len(edge_list)} links: {', '.join(positions)}"
    width, height = (round(side) for side in geometry.size)
    return (
        f'<svg class="topology" viewBox="0 0 {width} {height}" width="{width}"'
        f' style="min-width:{round(MIN_SCALE * width)}px" role="img" aria-label="{escape(description)}">'
        f"{''.join(parts)}</svg>"
        f'<ul class="tree">{_trees(paths[0].client, edge_list, notes, settings, figures.rates_mbps)}</ul>'
    )


def _shape(name: str, paths: Sequence[Path], role_of: Mapping[str, str]) -> str:
    """Return the role that a node is drawn as. A node that forwards packets on a path is a router, if not a switch."""
    role = role_of.get(name, "")
    forwards = any(hop.to_node == name for path in paths for hop in path.there[:-1])
    return ROUTER if forwards and role != SWITCH else role


def _positions(paths: Sequence[Path], edge_list: Sequence[Edge]) -> Positions:
    """Return each node's column (its distance from the first client) and row (0 for the path to its server, else not
    above the node before it)."""
    start = paths[0].client
    columns: dict[str, int] = {}
    before: dict[str, str] = {}
    for first in (
        start,
        *(end for edge in edge_list for end in edge.ends),
    ):  # nodes that the client does not reach are below
        if first not in columns:
            _set_distances(first, edge_list, columns, before)
    main_path = [start, *(hop.to_node for hop in paths[0].there)]
    rows: dict[int, int] = {}
    positions: Positions = {}
    for name in dict.fromkeys((*main_path, *columns)):
        column = columns[name]
        _, above = positions.get(before.get(name, ""), (0, 0))
        positions[name] = (column, max(above, rows.get(column, 0 if name in main_path else 1)))
        rows[column] = positions[name][1] + 1
    return positions


def _set_distances(start: str, edge_list: Sequence[Edge], columns: dict[str, int], before: dict[str, str]) -> None:
    """Set the distance of every node that is reachable from `start`, and the node before it."""
    columns[start], queue = 0, [start]
    for node in queue:
        for near, far in (edge.ends for edge in edge_list):
            for end, other in ((near, far), (far, near)):
                if end == node and other not in columns:
                    columns[other], before[other] = columns[node] + 1, node
                    queue.append(other)


def _labels(
    edge_list: Sequence[Edge], positions: Positions, settings: Settings, rates_mbps: Mapping[str, float]
) -> Iterator[EdgeLabel]:
    """Yield each edge with its row between the columns: the lower row of its ends, or the next free row. Edges within a
    column come last, and have a free row that they pass if there is one."""
    used: set[tuple[int, int]] = set()

    def order(edge: Edge) -> tuple[bool, int]:
        (left, upper), (right, lower) = (positions[end] for end in edge.ends)
        return left == right, max(upper, lower)

    for edge in sorted(edge_list, key=order):
        left, right = sorted(edge.ends, key=lambda end: positions[end])
        gap, rows = positions[left][0], (positions[left][1], positions[right][1])
        passed = range(max(rows), min(rows), -1) if gap == positions[right][0] else ()
        row = next(row for row in chain(passed, count(max(rows))) if (gap, row) not in used)
        used.add((gap, row))
        yield EdgeLabel(edge, gap, row, edge_texts(edge, settings, left, rates_mbps))


def _lanes(labels: Sequence[EdgeLabel], positions: Positions) -> Lanes:
    """Return the lanes. Of two lanes at a column, the one of the lower node is nearer, so that no line to a lane meets
    another node's."""
    left: dict[tuple[int, str | int], int] = {}
    right: dict[tuple[int, str | int], int] = {}
    for label in labels:
        first, last = label.ends(positions)
        if positions[first][0] == positions[last][0]:
            left[label.gap, label.row] = positions[last][1]
            continue
        for side, end in ((left, first), (right, last)):
            if positions[end][1] != label.row:
                side[label.gap, end] = positions[end][1]
    return Lanes(_numbered(left), _numbered(right))


def _numbered(rows: dict[tuple[int, str | int], int]) -> dict[tuple[int, str | int], int]:
    """Number the lanes of each gap, from the lowest row of a node to the highest."""
    counted: dict[int, int] = {}
    numbers = {}
    for gap, end in sorted(rows, key=lambda key: -rows[key]):
        numbers[gap, end] = counted.get(gap, 0)
        counted[gap] = numbers[gap, end] + 1
    return numbers


def _geometry(positions: Positions, device_lines: dict[str, list[str]], labels: Sequence[EdgeLabel]) -> Geometry:
    columns = 1 + max(x for x, _ in positions.values())
    rows = 1 + max([*(y for _, y in positions.values()), *(label.row for label in labels)])
    width = [
        max([NODE_W, *(_text_width([name, *device_lines[name]]) for name in positions if positions[name][0] == x)])
        for x in range(columns)
    ]
    lanes = _lanes(labels, positions)
    gaps = [
        max([4 * BEND, *(_text_width(label.texts) + BEND + sum(lanes.bends(x)) for label in labels if label.gap == x)])
        for x in range(columns)
    ]
    gaps[-1] = gaps[-1] if any(label.gap == columns - 1 for label in labels) else 0
    left = [MARGIN + sum(width[:x]) + sum(gaps[:x]) for x in range(columns)]
    middle, y = [], float(MARGIN)
    for row in range(rows):
        above = max([NODE_H / 2, *(LINE * len(label.texts) + 6 for label in labels if label.row == row)])
        under = (
            max([0, *(LINE * len(device_lines[name]) for name in positions if positions[name][1] == row)]) + NODE_H / 2
        )
        middle.append(y + above)
        y += above + under + PAD
    return Geometry(left, width, middle, lanes, (left[-1] + width[-1] + gaps[-1] + MARGIN, y + 4))


def _text_width(texts: Sequence[str]) -> float:
    return PAD + LETTER * max(map(len, texts), default=0)


def _node(
    name: str, position: tuple[int, int], lines: Sequence[str], geometry: Geometry, shape: str, delay_percent: float
) -> str:
    x, y = geometry.left[position[0]] + geometry.width[position[0]] / 2, geometry.middle[position[1]]
    half_width = max(NODE_W, _text_width([name])) / 2
    texts = "".join(
        f'<text class="qdisc" x="{x:.1f}" y="{y + NODE_H / 2 + LINE * (index + 1) - 2:.1f}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    radius, name_y = {ROUTER: NODE_H // 2, SWITCH: 0}.get(shape, 6), y + 4.5
    if shape == SWITCH:
        name_y = y - 1
        texts = f'<text class="role" x="{x:.1f}" y="{y + 12:.1f}">{SWITCH}</text>{texts}'
    return (
        f'<g class="node"><rect x="{x - half_width:.1f}" y="{y - NODE_H / 2:.1f}" width="{2 * half_width:.1f}"'
        f' height="{NODE_H}" rx="{radius}" style="--share:{delay_percent:.0f}%"/>'
        f'<text x="{x:.1f}" y="{name_y:.1f}">{escape(name)}</text>{texts}</g>'
    )


def _edge(label: EdgeLabel, positions: Positions, geometry: Geometry) -> str:
    """Return the line of an edge through its row, with its texts above it."""
    start, end = label.ends(positions)
    gap, y, lanes = label.gap, geometry.middle[label.row], geometry.lanes
    column = geometry.left[gap] + geometry.width[gap]
    (x1, y1), (x2, y2) = _side(start, positions, geometry, 1), _side(end, positions, geometry, -1)
    first, last = lanes.bends(gap)
    if positions[start][0] == positions[end][0]:
        x2, y2 = _side(end, positions, geometry, 1)
        left = column + BEND / 2 + LANE * lanes.left[gap, label.row]
        corners = [(x1, y1), (left, y1), (left, y), (left, y2), (x2, y2)]
        middle = column + first + _text_width(label.texts) / 2
    else:
        left = column + BEND / 2 + LANE * lanes.left.get((gap, start), 0)
        right = geometry.left[gap + 1] - BEND / 2 - LANE * lanes.right.get((gap, end), 0)
        corners = [(x1, y1), (left, y1), (left, y), (right, y), (right, y2), (x2, y2)]
        middle = (column + first + geometry.left[gap + 1] - last) / 2
    texts = "".join(
        f'<text class="link" x="{middle:.1f}" y="{y - 6 - LINE * index:.1f}">{escape(line)}</text>'
        for index, line in enumerate(reversed(label.texts))
    )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    kind = f"{label.edge.away.medium}{' blocked' if label.edge.blocked else ''}"
    return f'<g class="{kind}"><polyline points="{points}"/>{texts}</g>'


def _side(name: str, positions: Positions, geometry: Geometry, side: int) -> tuple[float, float]:
    """Return the middle of a node's right (1) or left (-1) side."""
    column, row = positions[name]
    half_width = max(NODE_W, _text_width([name])) / 2
    return geometry.left[column] + geometry.width[column] / 2 + side * half_width, geometry.middle[row]


def _trees(
    start: str,
    edge_list: Sequence[Edge],
    notes: Mapping[str, Sequence[str]],
    settings: Settings,
    rates_mbps: Mapping[str, float],
) -> str:
    """Return the client's tree, then the trees of nodes that have no connection to it. Each node is below the node that
    links to it; a link that closes a circle names its end again."""
    remaining = list(edge_list)
    drawn = set()

    def tree(node: str, link_text: str = "") -> str:
        link = f'<span class="link">{escape(link_text)}</span>' if link_text else ""
        if node in drawn:
            return f"<li>{link}<b>{escape(node)}</b></li>"
        drawn.add(node)
        inner = ""
        while edge := next((edge for edge in remaining if node in edge.ends), None):
            remaining.remove(edge)
            other = next(end for end in edge.ends if end != node)
            inner += tree(other, ", ".join(edge_texts(edge, settings, node, rates_mbps)))
        note = f"<small>{escape('; '.join(notes[node]))}</small>" if notes[node] else ""
        return f"<li>{link}<b>{escape(node)}</b> {note}{f'<ul>{inner}</ul>' if inner else ''}</li>"

    trees = [tree(start)]
    while remaining:
        trees.append(tree(remaining[0].ends[0]))
    return "".join(trees)
