# SPDX-License-Identifier: Apache-2.0
"""ECN of the streams: the places that marked their packets, and the number that arrived with the mark.

There are three counts, and they agree packet by packet where each sees the same (`tests/guest/test_l4s.py`). The packet
probe sees the ECN field change at a place. A qdisc counts the skbs that it marks. An end counts marked arrivals: TCP in
`received_ce`, the receiver of datagrams in its rows.
"""

import polars as pl

from hourglass.contract.plan import DatagramStream
from hourglass.contract.summary import EcnFigures
from hourglass.results.drops import NOWHERE
from hourglass.results.recording import Recording
from hourglass.results.stats import percent

Marks = dict[str, dict[str, dict[str, dict[str, int]]]]
ECT = ("ect1", "ect0")


def marks(run: Recording) -> Marks:
    """Return {node: {device: {place: {stream: packets marked CE}}}} of the whole run; device "-": no device."""
    keys = ["node", "device", "place", "stream"]
    rows = run.marks.filter(pl.col("ecn") == "ce").with_columns(device=pl.col("device").fill_null(NOWHERE))
    marked: Marks = {}
    for node, device, place, stream, packets in rows.group_by(keys).agg(pl.len()).sort(keys).iter_rows():
        marked.setdefault(node, {}).setdefault(device, {}).setdefault(place, {})[stream] = packets
    return marked


def ecn(run: Recording) -> dict[str, EcnFigures]:
    """Return for each stream that sends ECT the direction in which it sends most. The counts are the packet probe's, or
    without it those of datagram receivers."""
    per_direction = run.codepoints.group_by("stream", "way").agg(
        *(pl.col("sent").filter(pl.col("ecn") == codepoint).sum().alias(codepoint) for codepoint in ECT),
        pl.col("delivered").filter(pl.col("ecn") == "ce").sum().alias("ce"),
        pl.col("delivered").sum().alias("arrived"),
    )
    busiest = per_direction.sort(pl.col("ect1") + pl.col("ect0"), "way").group_by("stream", maintain_order=True).last()
    rows = busiest.sort("stream").iter_rows(named=True)
    counted = {row["stream"]: _ecn(row["ect1"], row["ect0"], row["ce"], row["arrived"]) for row in rows}
    ect = [stream for stream in run.datagrams if stream.ecn != "not_ect"]
    return {stream.name: counted.get(stream.name) or _arrived(run, stream) for stream in ect} | counted


def _arrived(run: Recording, stream: DatagramStream) -> EcnFigures:
    rows = run.rows(stream)
    sent = rows.filter(~pl.col("refused")).height
    delivered = rows.filter(pl.col("owd_ns").is_not_null())
    ect1, ect0 = (sent if stream.ecn == codepoint else 0 for codepoint in ECT)
    return _ecn(ect1, ect0, delivered.filter(pl.col("ecn") == "ce").height, delivered.height)


def _ecn(ect1: int, ect0: int, ce: int, arrived: int) -> EcnFigures:
    return EcnFigures(ect1=ect1, ect0=ect0, ce=ce, ce_percent=percent(ce, arrived))
