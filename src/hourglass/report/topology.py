# SPDX-License-Identifier: Apache-2.0
"""The testbed as SVG: nodes by their distance from the client, cables with rate and delay, shapers at their devices."""

from html import escape
from typing import Any

COLUMN, ROW, NODE_W, NODE_H, MARGIN = 272, 92, 96, 40, 12
"""px of the drawing's own scale."""


def topology(scenario: dict[str, Any]) -> str:
    """An `<svg>` element; "" for a run that has no testbed (measured elsewhere)."""
    testbed = scenario.get("testbed") or {}
    links = testbed.get("link") or []
    if not links:
        return ""
    test = scenario.get("test", {})
    spots = _spots([node["name"] for node in testbed["node"]], links, test.get("client", ""), test.get("server", ""))
    width = MARGIN * 2 + NODE_W + COLUMN * max(x for x, _ in spots.values())
    height = MARGIN * 2 + NODE_H + 26 + ROW * max(y for _, y in spots.values())
    shapers = {shaper["at"]: shaper["rate"] for shaper in testbed.get("shaper") or []}
    parts = [_link(link, spots, shapers) for link in links]
    roles = {node["name"]: node.get("role", "host") for node in testbed["node"]}
    qdiscs = {name: (scenario["stack"].get(name) or {}).get("qdisc") or scenario["stack"]["qdisc"] for name in spots}
    parts += [_node(name, roles[name], qdiscs[name], spot) for name, spot in spots.items()]
    words = f"{len(spots)} nodes, {len(links)} links: {', '.join(spots)}"
    return (
        f'<svg class="topology" viewBox="0 0 {width} {height}"'
        f' style="min-width:{min(width, 560)}px;max-width:{width}px"'
        f' role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>'
    )


def _spots(nodes: list[str], links: list[dict[str, Any]], client: str, server: str) -> dict[str, tuple[int, int]]:
    """(column, row) of each node: the column is the distance from the client, the row 0 is the way to the server."""
    ends = [[end.split(":")[0] for end in link["ends"]] for link in links]
    start = client if client in nodes else nodes[0]
    columns, before, queue = {start: 0}, {}, [start]
    for node in queue:
        for pair in ends:
            if node in pair:
                other = pair[1 - pair.index(node)]
                if other not in columns:
                    columns[other], before[other] = columns[node] + 1, node
                    queue.append(other)
    way, node = {start}, server
    while node in before:
        way.add(node)
        node = before[node]
    rows: dict[int, int] = {}
    spots = {}
    for name in [*(n for n in nodes if n in way), *(n for n in nodes if n not in way)]:
        column = columns.get(name, 0)
        spots[name] = (column, rows.get(column, 0 if name in way else 1))
        rows[column] = spots[name][1] + 1
    return spots


def _corner(spot: tuple[int, int]) -> tuple[int, int]:
    return MARGIN + spot[0] * COLUMN, MARGIN + spot[1] * ROW


def _node(name: str, role: str, qdisc: str, spot: tuple[int, int]) -> str:
    x, y = _corner(spot)
    radius = 20 if role == "router" else 6
    kind = qdisc.split()[0]
    return (
        f'<g class="node {escape(role)}"><title>{escape(name)}: {escape(role)}, {escape(qdisc)}</title>'
        f'<rect x="{x}" y="{y}" width="{NODE_W}" height="{NODE_H}" rx="{radius}"/>'
        f'<text x="{x + NODE_W // 2}" y="{y + 25}">{escape(name)}</text>'
        f'<text class="qdisc" x="{x + NODE_W // 2}" y="{y + NODE_H + 15}">{escape(kind)}</text></g>'
    )


def _link(link: dict[str, Any], spots: dict[str, tuple[int, int]], shapers: dict[str, str]) -> str:
    ends = [(*end.split(":"), *_corner(spots[end.split(":")[0]])) for end in link["ends"]]
    a, b = ends[0][0], ends[1][0]
    flipped = spots[a][0] > spots[b][0]
    left, right = (ends[1], ends[0]) if flipped else (ends[0], ends[1])
    x1, y1, x2, y2 = left[2] + NODE_W, left[3] + NODE_H // 2, right[2], right[3] + NODE_H // 2
    if spots[a][0] == spots[b][0]:
        x2 = right[2] + NODE_W
    middle, above = (x1 + x2) // 2, (y1 + y2) // 2 - 8
    words = [_both(link.get("rate", ""), flipped)]
    if (delay := _both(link.get("delay", "0s"), flipped)) not in ("0s", "0ns"):
        words.append(delay)
    faults = [f"{key} {_both(link[key], flipped)}" for key in ("loss", "jitter", "corrupt", "duplicate", "reorder")
              if link.get(key) and _both(link[key], flipped) not in ("0%", "0s", "0ns")]  # fmt: skip
    faults += [key for key in ("trace", "outage") if link.get(key)]
    text = f'<text class="link" x="{middle}" y="{above}">{escape(", ".join(words))}</text>'
    if faults:
        text += f'<text class="fault" x="{middle}" y="{above + 24}">{escape(", ".join(faults))}</text>'
    for end, x, y, anchor in ((left, x1 + 6, y1 + 18, "start"), (right, x2 - 6, y2 + 18, "end")):
        if rate := shapers.get(f"{end[0]}:{end[1]}"):
            text += f'<text class="shaper" x="{x}" y="{y}" style="text-anchor:{anchor}">HTB {escape(rate)}</text>'
    title = escape(f"{link['ends'][0]} to {link['ends'][1]}: {', '.join([*words, *faults])}")
    return f'<g class="cable"><title>{title}</title><line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>{text}</g>'


def _both(value: Any, flipped: bool) -> str:
    """A link's value, or its two directions as they are drawn, left to right first."""
    if isinstance(value, list):
        there, back = reversed(value) if flipped else value
        return f"{there} \u2192 \u2190 {back}"
    return str(value)
