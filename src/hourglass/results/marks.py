# SPDX-License-Identifier: Apache-2.0
"""What ECN said of the streams: where their packets were marked, and how many arrived with the mark.

Three things count, and they agree packet by packet where each sees the same (`tests/guest/test_l4s.py`): the packet
probe sees the ECN field change at a place, a qdisc counts what it marks (skbs), an end what arrives marked: TCP in
`received_ce`, the receiver of datagrams in its rows.
"""

import polars as pl

from hourglass.contract.plan import Datagrams
from hourglass.contract.summary import Ecn
from hourglass.results.drops import NOWHERE
from hourglass.results.recording import Recording
from hourglass.results.stats import percent

Marks = dict[str, dict[str, dict[str, dict[str, int]]]]
ECT = ("ect1", "ect0")


def marks(run: Recording) -> Marks:
    """{node: {device: {place: {stream: packets marked CE}}}} of the whole run; device "-": none has to do with it."""
    keys = ["node", "device", "place", "stream"]
    rows = run.marks.filter(pl.col("ecn") == "ce").with_columns(device=pl.col("device").fill_null(NOWHERE))
    found: Marks = {}
    for node, device, place, stream, packets in rows.group_by(keys).agg(pl.len()).sort(keys).iter_rows():
        found.setdefault(node, {}).setdefault(device, {}).setdefault(place, {})[stream] = packets
    return found


def ecn(run: Recording) -> dict[str, Ecn]:
    """Of each stream that sends ECT, the way in which it sends most: of the packet probe's counts, or without it of
    what the receivers of datagrams tell."""
    ways = run.codepoints.group_by("stream", "way").agg(
        *(pl.col("sent").filter(pl.col("ecn") == one).sum().alias(one) for one in ECT),
        pl.col("delivered").filter(pl.col("ecn") == "ce").sum().alias("ce"),
        pl.col("delivered").sum().alias("arrived"),
    )
    most = ways.sort(pl.col("ect1") + pl.col("ect0"), "way").group_by("stream", maintain_order=True).last()
    rows = most.sort("stream").iter_rows(named=True)
    counted = {row["stream"]: _of(row["ect1"], row["ect0"], row["ce"], row["arrived"]) for row in rows}
    ect = [one for one in run.datagrams if one.ecn != "not_ect"]
    return {one.name: counted.get(one.name) or _arrived(run, one) for one in ect} | counted


def _arrived(run: Recording, stream: Datagrams) -> Ecn:
    rows = run.rows(stream)
    sent = rows.filter(~pl.col("refused")).height
    there = rows.filter(pl.col("owd_ns").is_not_null())
    ect1, ect0 = (sent if stream.ecn == one else 0 for one in ECT)
    return _of(ect1, ect0, there.filter(pl.col("ecn") == "ce").height, there.height)


def _of(ect1: int, ect0: int, ce: int, arrived: int) -> Ecn:
    return Ecn(ect1=ect1, ect0=ect0, ce=ce, ce_percent=percent(ce, arrived))
