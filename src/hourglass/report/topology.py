# SPDX-License-Identifier: Apache-2.0
"""Draws the testbed as SVG, with nodes by distance from the client and labelled links, and as a list for narrow
screens.

Texts never overlap: a column is as wide as its widest text, a row as high as its highest, and each row has at most one
link between two columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hourglass.contract.plan import Path
from hourglass.report.path_figures import PathFigures
from hourglass.report.testbed import Edge, Settings, edge_texts, edges, queueing

MIN_SCALE = 0.78
"""The least scale of a drawing on a narrow page; below it, the drawing scrolls."""
NODE_W, NODE_H, MARGIN, BEND, PAD = 84, 36, 12, 12, 10
"""px."""
LINE, LETTER = 15, 7.3
"""The height of a line, and the width of a letter in the widest font, px."""

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


@dataclass(frozen=True)
class Geometry:
    """The geometry in px: left end and width of each column's nodes, middle of each row, total size."""

    left: list[float]
    width: list[float]
    middle: list[float]
    size: tuple[float, float]


def topology(paths: Sequence[Path], settings: Settings, figures: PathFigures = NO_FIGURES) -> str:
    """Return an `<svg>` element and the list, with the figures along the path, or "" if no path is known."""
    edge_list = edges(paths)
    if not edge_list:
        return ""
    positions = _positions(paths, edge_list)
    device_lines = {name: [*queueing(name, paths), *figures.lines(name)] for name in positions}
    labels = list(_labels(edge_list, positions, settings, figures.rates_mbps))
    geometry = _geometry(positions, device_lines, labels)
    parts = [_edge(label, positions, geometry) for label in labels]
    parts += [
        _node(
            name, positions[name], device_lines[name], geometry, _forwards(name, paths, settings), figures.percent(name)
        )
        for name in positions
    ]
    description = f"{len(positions)} nodes, {len(edge_list)} links: {', '.join(positions)}"
    width, height = (round(side) for side in geometry.size)
    return (
        f'<svg class="topology" viewBox="0 0 {width} {height}" width="{width}"'
        f' style="min-width:{round(MIN_SCALE * width)}px" role="img" aria-label="{escape(description)}">'
        f"{''.join(parts)}</svg>"
        f'<ul class="tree">{_trees(paths[0].client, edge_list, device_lines, settings, figures.rates_mbps)}</ul>'
    )


def _forwards(name: str, paths: Sequence[Path], settings: Settings) -> bool:
    """Return whether a node forwards packets, on a path or by its role."""
    roles = (key for key, value in settings.items() if key[-1] == "role" and value == "router")
    return any(hop.to_node == name for path in paths for hop in path.there[:-1]) or any(
        settings.get((*key[:-1], "name")) == name for key in roles
    )


def _positions(paths: Sequence[Path], edge_list: Sequence[Edge]) -> Positions:
    """Return each node's column (its distance from the first client) and row (0 for the path to its server)."""
    start = paths[0].client
    columns: dict[str, int] = {}
    for first in (
        start,
        *(end for edge in edge_list for end in edge.ends),
    ):  # nodes that the client does not reach are below
        if first not in columns:
            _set_distances(first, edge_list, columns)
    main_path = [start, *(hop.to_node for hop in paths[0].there)]
    rows: dict[int, int] = {}
    positions = {}
    for name in dict.fromkeys((*main_path, *columns)):
        column = columns[name]
        positions[name] = (column, rows.get(column, 0 if name in main_path else 1))
        rows[column] = positions[name][1] + 1
    return positions


def _set_distances(start: str, edge_list: Sequence[Edge], columns: dict[str, int]) -> None:
    """Set the distance of every node that is reachable from `start`."""
    columns[start], queue = 0, [start]
    for node in queue:
        for near, far in (edge.ends for edge in edge_list):
            for end, other in ((near, far), (far, near)):
                if end == node and other not in columns:
                    columns[other] = columns[node] + 1
                    queue.append(other)


def _labels(
    edge_list: Sequence[Edge], positions: Positions, settings: Settings, rates_mbps: Mapping[str, float]
) -> Iterator[EdgeLabel]:
    """Yield each edge with its row between the columns: the lower row of its ends, or the next free row."""
    used = set()
    for edge in sorted(edge_list, key=lambda edge: max(positions[end][1] for end in edge.ends)):
        left, right = sorted(edge.ends, key=lambda end: positions[end])
        gap, row = positions[left][0], max(positions[left][1], positions[right][1])
        while (gap, row) in used:
            row += 1
        used.add((gap, row))
        yield EdgeLabel(edge, gap, row, edge_texts(edge, settings, left, rates_mbps))


def _geometry(positions: Positions, device_lines: dict[str, list[str]], labels: Sequence[EdgeLabel]) -> Geometry:
    columns = 1 + max(x for x, _ in positions.values())
    rows = 1 + max([*(y for _, y in positions.values()), *(label.row for label in labels)])
    width = [
        max([NODE_W, *(_text_width([name, *device_lines[name]]) for name in positions if positions[name][0] == x)])
        for x in range(columns)
    ]
    gaps = [
        max([4 * BEND, *(_text_width(label.texts) + 2 * BEND for label in labels if label.gap == x)])
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
    return Geometry(left, width, middle, (left[-1] + width[-1] + gaps[-1] + MARGIN, y + 4))


def _text_width(texts: Sequence[str]) -> float:
    return PAD + LETTER * max(map(len, texts), default=0)


def _node(
    name: str, position: tuple[int, int], lines: Sequence[str], geometry: Geometry, forwards: bool, delay_percent: float
) -> str:
    x, y = geometry.left[position[0]] + geometry.width[position[0]] / 2, geometry.middle[position[1]]
    half_width = max(NODE_W, _text_width([name])) / 2
    texts = "".join(
        f'<text class="qdisc" x="{x:.1f}" y="{y + NODE_H / 2 + LINE * (index + 1) - 2:.1f}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    return (
        f'<g class="node"><rect x="{x - half_width:.1f}" y="{y - NODE_H / 2:.1f}" width="{2 * half_width:.1f}"'
        f' height="{NODE_H}" rx="{NODE_H // 2 if forwards else 6}" style="--share:{delay_percent:.0f}%"/>'
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(name)}</text>{texts}</g>'
    )


def _edge(label: EdgeLabel, positions: Positions, geometry: Geometry) -> str:
    """Return the line of an edge through its row, with its texts above it."""
    start, end = sorted(label.edge.ends, key=lambda name: positions[name])
    y = geometry.middle[label.row]
    left = geometry.left[label.gap] + geometry.width[label.gap] + BEND / 2
    (x1, y1), (x2, y2) = _side(start, positions, geometry, 1), _side(end, positions, geometry, -1)
    if positions[start][0] == positions[end][0]:
        x2, y2 = _side(end, positions, geometry, 1)
        corners = [(x1, y1), (left, y1), (left, y2), (x2, y2)]
        middle = left + _text_width(label.texts) / 2
    else:
        right = geometry.left[label.gap + 1] - BEND / 2
        corners = [(x1, y1), (left, y1), (left, y), (right, y), (right, y2), (x2, y2)]
        middle = (left + right) / 2
    texts = "".join(
        f'<text class="link" x="{middle:.1f}" y="{y - 6 - LINE * index:.1f}">{escape(line)}</text>'
        for index, line in enumerate(reversed(label.texts))
    )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<g class="{label.edge.there.medium}"><polyline points="{points}"/>{texts}</g>'


def _side(name: str, positions: Positions, geometry: Geometry, side: int) -> tuple[float, float]:
    """Return the middle of a node's right (1) or left (-1) side."""
    column, row = positions[name]
    half_width = max(NODE_W, _text_width([name])) / 2
    return geometry.left[column] + geometry.width[column] / 2 + side * half_width, geometry.middle[row]


def _trees(
    start: str,
    edge_list: Sequence[Edge],
    device_lines: dict[str, list[str]],
    settings: Settings,
    rates_mbps: Mapping[str, float],
) -> str:
    """Return the client's tree, then the trees of nodes that have no connection to it. Each node is below the node that
    links to it; a link that closes a cycle comes last."""
    remaining = list(edge_list)

    def tree(node: str, link_text: str = "") -> str:
        inner = ""
        while edge := next((edge for edge in remaining if node in edge.ends), None):
            remaining.remove(edge)
            other = next(end for end in edge.ends if end != node)
            inner += tree(other, ", ".join(edge_texts(edge, settings, node, rates_mbps)))
        queues = f"<small>{escape('; '.join(device_lines[node]))}</small>" if device_lines[node] else ""
        link = f'<span class="link">{escape(link_text)}</span>' if link_text else ""
        return f"<li>{link}<b>{escape(node)}</b> {queues}{f'<ul>{inner}</ul>' if inner else ''}</li>"

    trees = [tree(start)]
    while remaining:
        trees.append(tree(remaining[0].ends[0]))
    return "".join(trees)
