# SPDX-License-Identifier: Apache-2.0
"""The testbed as SVG, as the streams' paths have it: nodes by their distance from the client, between them cables and
air with rate and delay, shapers at their devices. What no stream passes is not drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hourglass.contract.plan import Hop, Path
from hourglass.results.lint.subject import ms_text, rate_text

COLUMN, ROW, NODE_W, NODE_H, MARGIN = 272, 92, 96, 40, 12
"""px of the drawing's own scale."""

Spots = dict[str, tuple[int, int]]
"""(column, row) of each node."""


@dataclass(frozen=True)
class Edge:
    """What joins two devices: the hop away from the client and, where a stream takes it, the one back."""

    there: Hop
    back: Hop | None


def topology(paths: Sequence[Path]) -> str:
    """An `<svg>` element; "" where no path is known."""
    edges = _edges(paths)
    if not edges:
        return ""
    spots = _spots(paths, edges)
    width = MARGIN * 2 + NODE_W + COLUMN * max(x for x, _ in spots.values())
    height = MARGIN * 2 + NODE_H + 26 + ROW * max(y for _, y in spots.values())
    parts = [_edge(edge, spots) for edge in edges] + [_node(name, spot, paths) for name, spot in spots.items()]
    words = f"{len(spots)} nodes, {len(edges)} links: {', '.join(spots)}"
    return (
        f'<svg class="topology" viewBox="0 0 {width} {height}"'
        f' style="min-width:{min(width, 560)}px;max-width:{width}px"'
        f' role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>'
    )


def _edges(paths: Sequence[Path]) -> list[Edge]:
    """Each pair of devices that some path passes, once."""
    hops = {_ends(hop): hop for path in paths for hop in (*path.there, *path.back)}
    found: dict[frozenset[str], Edge] = {}
    for (start, end), hop in hops.items():
        found.setdefault(frozenset((start, end)), Edge(hop, hops.get((end, start))))
    return list(found.values())


def _ends(hop: Hop) -> tuple[str, str]:
    return f"{hop.node}:{hop.device}", f"{hop.to_node}:{hop.to_device}"


def _spots(paths: Sequence[Path], edges: Sequence[Edge]) -> Spots:
    """The column is the distance from the first client; row 0 is the way to its server."""
    start = paths[0].client
    columns, queue = {start: 0}, [start]
    for node in queue:
        for one in (edge.there for edge in edges):
            for here, other in ((one.node, one.to_node), (one.to_node, one.node)):
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


def _corner(spot: tuple[int, int]) -> tuple[int, int]:
    return MARGIN + spot[0] * COLUMN, MARGIN + spot[1] * ROW


def _node(name: str, spot: tuple[int, int], paths: Sequence[Path]) -> str:
    x, y = _corner(spot)
    between = {hop.to_node for path in paths for hop in path.there[:-1]}
    qdiscs = dict.fromkeys(
        hop.qdisc for path in paths for hop in (*path.there, *path.back) if hop.node == name and hop.qdisc
    )
    kinds = ", ".join(dict.fromkeys(qdisc.split()[0] for qdisc in qdiscs))
    radius, title = 20 if name in between else 6, f"{name}: {', '.join(qdiscs)}"
    return (
        f'<g class="node"><title>{escape(title)}</title>'
        f'<rect x="{x}" y="{y}" width="{NODE_W}" height="{NODE_H}" rx="{radius}"/>'
        f'<text x="{x + NODE_W // 2}" y="{y + 25}">{escape(name)}</text>'
        f'<text class="qdisc" x="{x + NODE_W // 2}" y="{y + NODE_H + 15}">{escape(kinds)}</text></g>'
    )


def _edge(edge: Edge, spots: Spots) -> str:
    """A line with what it carries; the two directions where they differ, as they are drawn, left to right first."""
    hops = [edge.there, edge.back or edge.there]
    if spots[edge.there.node][0] > spots[edge.there.to_node][0]:
        hops.reverse()
    right, left = hops  # the hop to the right, the hop to the left
    (x1, y1), (x2, y2) = (_corner(spots[node]) for node in (right.node, right.to_node))
    x1, y1, y2 = x1 + NODE_W, y1 + NODE_H // 2, y2 + NODE_H // 2
    if spots[right.node][0] == spots[right.to_node][0]:
        x2 += NODE_W
    middle, above = (x1 + x2) // 2, (y1 + y2) // 2 - 8
    words = [_both(*(rate_text(hop.line_bps) for hop in (right, left)))]
    if right.delay_ns or left.delay_ns:
        words.append(_both(*(ms_text(hop.delay_ns) for hop in (right, left))))
    faults = list(dict.fromkeys((*right.impairments, *left.impairments)))
    text = f'<text class="link" x="{middle}" y="{above}">{escape(", ".join(words))}</text>'
    if faults:
        text += f'<text class="fault" x="{middle}" y="{above + 24}">{escape(", ".join(faults))}</text>'
    for hop, x, y, anchor in ((right, x1 + 6, y1 + 18, "start"), (left, x2 - 6, y2 + 32, "end")):
        if hop.shaper_bps and (hop is not left or left is not right):
            shaper = f"HTB {rate_text(hop.shaper_bps)}"
            text += f'<text class="shaper" x="{x}" y="{y}" style="text-anchor:{anchor}">{escape(shaper)}</text>'
    title = escape(f"{' to '.join(_ends(right))}: {', '.join([*words, *faults])}")
    line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
    return f'<g class="{edge.there.medium}"><title>{title}</title>{line}{text}</g>'


def _both(there: str, back: str) -> str:
    """A value, or those of the two directions."""
    return there if there == back else f"{there} \u2192 \u2190 {back}"
