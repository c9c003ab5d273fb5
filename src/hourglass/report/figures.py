# SPDX-License-Identifier: Apache-2.0
"""The tables of a page as cells of text: rounded as the terminal rounds them, with the exact value beside."""

from dataclasses import dataclass
from typing import Any

from hourglass.results.compare import Cell, Row
from hourglass.results.stats import known_sum, percent, short

PERCENTILES = ("p10", "p50", "p90", "p99")
NOTHING = "\u2013"


@dataclass(frozen=True)
class Figure:
    """A cell: its text, the value for sorting, and when it is held against another run, how it differs."""

    text: str
    value: float | None
    change: str = ""
    significant: bool = False
    interval: str = ""


def number(value: float | None) -> Figure:
    """Three significant digits; counts in full; a dash for nothing."""
    if value is None:
        return Figure(NOTHING, None)
    return Figure(str(value) if isinstance(value, int) else short(value), value)


def flow_rows(summary: dict[str, Any]) -> list[tuple[str, str, list[Figure]]]:
    """(flow, cc, figures) of each flow, and of all together when there are several."""
    rows = [(f["id"], f["cc"], f["goodput_mbps"], f["retransmits"], f["tcp_rtt_ms"]) for f in summary["flows"]]
    if len(rows) > 1:
        totals = summary["totals"]
        rows.append(("all", "", totals["upload_mbps"] + totals["download_mbps"],
                     known_sum([f["retransmits"] for f in summary["flows"]]), summary["tcp_rtt_ms"]))  # fmt: skip
    return [
        (name, cc, [number(rate), number(retrans), *(number(rtt[p]) for p in PERCENTILES)])
        for name, cc, rate, retrans, rtt in rows
    ]


def ping_rows(summary: dict[str, Any]) -> list[tuple[str, list[Figure]]]:
    """(probe, figures) of each probe."""
    keys = (*PERCENTILES, "max", "n", "lost")
    return [(probe, [number(rtt[key]) for key in keys]) for probe, rtt in summary["ping_ms"].items()]


def datagram_rows(summary: dict[str, Any]) -> list[tuple[str, list[Figure]]]:
    """(stream, figures) of each one-way stream; MOS is a dash for what is no telephone."""
    return [
        (one["id"], [number(one["goodput_mbps"]), *(number(one["owd_ms"][p]) for p in PERCENTILES),
                     *(number(one.get(key)) for key in ("jitter_ms", "sent", "lost", "mos"))])
        for one in summary["datagrams"]
    ]  # fmt: skip


def fetch_rows(summary: dict[str, Any]) -> list[tuple[str, str, list[Figure]]]:
    """(client, size, figures) of all fetches and of each size."""
    keys = (*PERCENTILES, "max", "n")
    return [
        (one["id"], size, [number(times[key]) for key in keys])
        for one in summary["fetches"]
        for size, times in [("all", one["done_ms"]), *one["by_bytes"].items()]
    ]


def radio_rows(summary: dict[str, Any]) -> list[tuple[str, list[Figure], str]]:
    """(radio, figures, what of its air time each station has) of each radio: PPDUs, the MPDUs of one (mean, p50, max),
    air time and collided PPDUs in %, MPDUs sent again and given up, packets in mac80211's queues (mean, max)."""
    return [
        (
            f"{node} {device}",
            [
                number(one["ppdus"]),
                *(number(one["subframes"][key]) for key in ("mean", "p50", "max")),
                number(one["air_percent"]),
                number(percent(one["collisions"], one["ppdus"])),
                *(number(one[key]) for key in ("retries", "dropped")),
                *(number(one["txq"][key]) for key in ("mean", "max")),
            ],
            ", ".join(f"{name} {100 * share:.0f} %" for name, share in one["air_share"].items() if share)
            if len(one["air_share"]) > 1
            else "",
        )
        for node, devices in (summary.get("wifi") or {}).items()
        for device, one in devices.items()
    ]


def ping_layer_rows(summary: dict[str, Any]) -> list[tuple[str, str, str, list[Figure]]]:
    """(probe, node, layer, figures) of the layers that take a probe's round trips time."""
    return [
        (
            probe,
            node,
            layer,
            [*(number(one[key]) for key in ("mean", "p50", "p99")), number(round(100 * one["share"], 3))],
        )
        for probe, nodes in (summary.get("ping_layers_ms") or {}).items()
        for node, layers in nodes.items()
        for layer, one in layers.items()
        if one.get("mean")
    ]


def reason_rows(summary: dict[str, Any]) -> list[tuple[str, str, str, str, int]]:
    """(node, device, place, the kernel's reason, packets) of all drops that the probe saw."""
    return [
        (node, device, place, reason, packets)
        for node, devices in (summary.get("drops_by_reason") or {}).items()
        for device, places in devices.items()
        for place, reasons in places.items()
        for reason, packets in reasons.items()
    ]


def drop_rows(summary: dict[str, Any]) -> list[tuple[str, str, list[int]]]:
    """(node, device, [qdisc, nic, cable]) of the devices that dropped."""
    return [
        (node, device, [counts[place] for place in ("qdisc", "nic", "cable")])
        for node, devices in summary["drops"].items()
        for device, counts in devices.items()
        if any(counts.values())
    ]


def held_against(rows: list[Row], column: int) -> list[Figure]:
    """The figures of one run or group, one per row of the comparison."""
    return [_held(row.cells[column], row.unit) for row in rows]


def _held(cell: Cell, unit: str) -> Figure:
    figure = number(cell.value)
    change = "" if cell.change_percent is None else f"{round(cell.change_percent, 1) + 0.0:+.1f} %"
    interval = ""
    if cell.interval is not None:
        low, high = cell.interval
        verdict = "significant" if cell.significant else "not significant"
        interval = f"{verdict}; 95 % interval of the difference: {low:+g} to {high:+g} {unit}".strip()
    return Figure(figure.text, figure.value, change, cell.significant, interval)


def anatomy(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """[{node, layers: [{layer, mean, p50, p99, share}]}]: where a packet's time goes, from `layers_ms`, if it is there.

    Layers that take no time are left out; `share` is of all nodes together.
    """
    nodes = summary.get("layers_ms") or {}
    total = sum(layer.get("mean") or 0 for layers in nodes.values() for layer in layers.values())
    return [
        {"node": node, "layers": [
            {"layer": name, "mean": number(layer["mean"]), "p50": number(layer.get("p50")),
             "p99": number(layer.get("p99")), "share": layer["mean"] / total}
            for name, layer in layers.items() if layer.get("mean")
        ]}
        for node, layers in nodes.items() if total and any(layer.get("mean") for layer in layers.values())
    ]  # fmt: skip
