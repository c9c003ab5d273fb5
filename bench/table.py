# SPDX-License-Identifier: Apache-2.0
"""The figures, for people and for programs."""

from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cases import CASES, NS3, PROTOTYPE, SAMPLED_CASE, START_PEERS, USER_LOAD, WITHOUT_SAMPLES, Peer
from bench.measure import Costs

COLUMNS = {"ns-3": NS3, "prototype": PROTOTYPE, "user load": USER_LOAD}


def figures(costs: Costs) -> dict[str, Any]:
    """Plain data. Times are wall ms."""
    seconds = {case.name: costs.second_ms(case) for case in CASES}
    return {
        "start_ms": min(costs.start_s) * 1e3,
        "command_ms": min(costs.command_s) * 1e3,
        "ms_per_loaded_second": seconds,
        "peak_mib": costs.peak_mib,
        "sampling_ratio": seconds[SAMPLED_CASE] / seconds[WITHOUT_SAMPLES],
        "repetitions": len(costs.start_s),
        "quoted": {
            case.name: {peer.what: [peer.low, peer.high] for peer in case.peers} for case in CASES if case.peers
        },
    }


def show(data: dict[str, Any], console: Console) -> None:
    """Prints the tables."""
    table = Table(title="wall ms per second under load", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("Hourglass", "x real time", "MiB", *COLUMNS):
        table.add_column(column, justify="right")
    for case in CASES:
        cost_ms = data["ms_per_loaded_second"][case.name]
        ours = [f"{cost_ms:,.1f}", f"{1e3 / cost_ms:.2g}", f"{data['peak_mib'][case.name]:.0f}"]
        table.add_row(case.name, *ours, *(quoted(case.peers, what) for what in COLUMNS.values()))
    console.print(table)
    console.print()
    peer = quoted(START_PEERS, PROTOTYPE)
    sources = "; ".join(f"{column}: {what}" for column, what in COLUMNS.items())
    for name, text in {
        "start": f"{data['start_ms']:.0f} ms: boot, set-up of three nodes, 1 s of pings (prototype: {peer})",
        "command": f"{data['command_ms']:.0f} ms: the same as `hourglass run`, from start to exit",
        "sampling": f"x {data['sampling_ratio']:.2f}: {SAMPLED_CASE} with samples each 10 ms over without",
        "ours": f"the least of {data['repetitions']} runs; MiB: the guest kernel's most resident memory",
        "quoted": f"not measured here, of a comparable machine: {sources}",
    }.items():
        console.print(f"{name:9} {text}", highlight=False, soft_wrap=True)


def quoted(peers: tuple[Peer, ...], what: str) -> str:
    """Somebody's figure, or nothing."""
    for peer in peers:
        if peer.what == what:
            return f"{peer.low:,.0f}" if peer.low == peer.high else f"{peer.low:,.0f}-{peer.high:,.0f}"
    return ""
