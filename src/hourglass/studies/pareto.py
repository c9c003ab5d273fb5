# SPDX-License-Identifier: Apache-2.0
"""The Pareto front of throughput against latency: the rows that no other row beats in one without losing in the other.

Seeds are one point: their median. The caller chooses the column of the latency.
"""

import polars as pl

from hourglass.results.sweeps import CONDITIONS

THROUGHPUT = "throughput_mbps"
FAIRNESS_BY_DIRECTION = ("upload_fairness", "download_fairness")
"""They replace the fairness of all flows where there are both: lines are seldom as fast up as down."""


def conditions(axes: list[str]) -> list[str]:
    """Return the axes that are conditions, of which each combination has a front; none if all axes are."""
    listed = [axis for axis in axes if axis.partition(".")[0] in CONDITIONS]
    return listed if {*axes} - {"seed", *listed} else []


def points(table: pl.DataFrame, axes: list[str], latency: str) -> pl.DataFrame:
    """Return a row per setting (all axes except the seed): medians of throughput (both directions together), latency
    and fairness (of each direction that has flows), and `front` among the settings of the same conditions."""
    settings = [axis for axis in axes if axis != "seed"]
    done = table.filter(pl.col("status") == "done").with_columns(
        (pl.col("upload_mbps") + pl.col("download_mbps")).alias(THROUGHPUT)
    )
    directions = (name for name in FAIRNESS_BY_DIRECTION if name in done.columns and done[name].count())
    medians = [THROUGHPUT, latency, *directions]
    figures = [*(pl.col(name).median() for name in medians), pl.len().alias("runs")]
    rows = done.group_by(settings, maintain_order=True).agg(figures) if settings else done.select(figures)
    rows = rows.drop_nulls([THROUGHPUT, latency])
    same = conditions(axes)
    on_front = [False] * len(rows)
    numbered = rows.with_row_index("row")
    for members in numbered.partition_by(same) if same else [numbered]:
        flags = front(members[THROUGHPUT].to_list(), members[latency].to_list())
        for row, flag in zip(members["row"], flags, strict=True):
            on_front[row] = flag
    return rows.with_columns(pl.Series("front", on_front, pl.Boolean))


def front(throughput: list[float], latency: list[float]) -> list[bool]:
    """Return for each point whether it is on the front. Then no other point has at least its throughput and at most its
    latency, and is better in one of the two."""
    order = sorted(range(len(throughput)), key=lambda at: (latency[at], -throughput[at]))
    result, best, best_latency = [False] * len(order), float("-inf"), float("nan")
    for at in order:
        if throughput[at] > best:
            best, best_latency = throughput[at], latency[at]
            result[at] = True
        elif throughput[at] == best and latency[at] == best_latency:
            result[at] = True
    return result
