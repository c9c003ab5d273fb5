# SPDX-License-Identifier: Apache-2.0
"""The CPUs of nodes on which packets and system calls take time: the share of the time in which they are busy.

The table `cpu` has each CPU's work so far. A share is its growth within the loaded window, from the last sample at or
before its start to that at or before its end, divided by the time between these two.
"""

import polars as pl

from hourglass.contract.summary import CpuFigures
from hourglass.results.recording import Recording
from hourglass.results.series import Window, window_ends
from hourglass.results.stats import rounded

KINDS = ("received", "sent", "calls")
"""The kinds of work."""
_WORK = {kind: pl.col(f"{kind}_ns").cast(pl.Int64) for kind in KINDS}
BUSY_NS = pl.sum_horizontal(_WORK.values()) - pl.col("pending_ns").cast(pl.Int64)
"""Of a row of the table `cpu`: the time in which the CPU was busy so far."""


def cpus(run: Recording, window: Window) -> dict[str, CpuFigures]:
    """Return {node: figures} of each CPU with two samples in the window."""
    figures = {}
    table = run.cpu.sort("t_ns").select("t_ns", "node", **_WORK, busy=BUSY_NS)
    for (node,), rows in table.group_by("node", maintain_order=True):
        if ends := window_ends(rows, window):
            first, last = ends
            span_ns = last["t_ns"] - first["t_ns"]
            shares = {name: rounded(100 * (last[name] - first[name]) / span_ns) for name in (*KINDS, "busy")}
            figures[str(node)] = CpuFigures(**{f"{name}_percent": share for name, share in shares.items()})
    return figures
