# SPDX-License-Identifier: Apache-2.0
"""The Pareto front of throughput against latency: the rows that no other row beats in one without losing in the other.

Repetitions are one point: the median over the seeds. Which column stands for latency is the caller's choice.
"""

import polars as pl

THROUGHPUT = "throughput_mbps"
WAYS = ("upload_fairness", "download_fairness")
"""In place of that of all flows where there are both: lines are seldom as fast up as down."""


def points(table: pl.DataFrame, axes: list[str], latency: str) -> pl.DataFrame:
    """A row per setting (all axes but the seed): medians of throughput (both ways together), latency and fairness
    (of each way that has flows), `front`."""
    settings = [axis for axis in axes if axis != "seed"]
    done = table.filter(pl.col("status") == "done").with_columns(
        (pl.col("upload_mbps") + pl.col("download_mbps")).alias(THROUGHPUT)
    )
    medians = [THROUGHPUT, latency, *(way for way in WAYS if way in done.columns and done[way].count())]
    figures = [*(pl.col(name).median() for name in medians), pl.len().alias("runs")]
    found = done.group_by(settings, maintain_order=True).agg(figures) if settings else done.select(figures)
    found = found.drop_nulls([THROUGHPUT, latency])
    return found.with_columns(
        pl.Series("front", front(found[THROUGHPUT].to_list(), found[latency].to_list()), pl.Boolean)
    )


def front(throughput: list[float], latency: list[float]) -> list[bool]:
    """Whether each point is on the front: no other has at least its throughput and at most its latency, and one of
    the two better."""
    order = sorted(range(len(throughput)), key=lambda at: (latency[at], -throughput[at]))
    result, best, best_latency = [False] * len(order), float("-inf"), float("nan")
    for at in order:
        if throughput[at] > best:
            best, best_latency = throughput[at], latency[at]
            result[at] = True
        elif throughput[at] == best and latency[at] == best_latency:
            result[at] = True
    return result
