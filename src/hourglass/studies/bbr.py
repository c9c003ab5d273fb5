# SPDX-License-Identifier: Apache-2.0
"""Measures of BBR's phases (`results/phases.py`) from samples of a socket: bandwidth in Mbit/s of payload.

A phase lasts from the first sample of a spell to the first of the next. Measures of BBRv3 alone use the private state
that the template `bbr3.c` exports (table `cc`); for other congestion controls they are None.
"""

from itertools import pairwise

import polars as pl

from hourglass.contract.plan import FlowStream
from hourglass.results.recording import Recording

US_PER_S = 1_000_000
QUANTUM_MS = 1.0
"""`C.send_quantum` is the data of this time, two segments at least (draft-ietf-ccwg-bbr)."""
BUDGET = 3
"""Inflight(1.0) has room for this many quanta more than the BDP (draft-ietf-ccwg-bbr; `bbr_quantization_budget`)."""
WARM_S = 1.0
STARTUP, DOWN, CRUISE = 0, 2, 3
"""`enum bbr3_phase` of kernel/templates/bbr3.c."""
UNBOUND = 2**32 - 1
HEADROOM = 0.15


def phase_samples(run: Recording, flows: list[FlowStream]) -> pl.DataFrame:
    """Return the samples of the first flow that have a phase, with signed numbers."""
    names = [flow.name for flow in flows[:1]]
    columns = ["snd_cwnd", "unacked", "sacked", "lost", "snd_mss", "bbr_bw", "bbr_min_rtt"]
    of_sender = pl.col("sender") & pl.col("stream").is_in(names)
    table = run.tcp.filter(of_sender).drop_nulls("bbr_phase").sort("t_ns")
    return table.with_columns(pl.col(columns).cast(pl.Int64), pl.col("bbr_phase").cast(pl.String))


def spells(run: Recording, flows: list[FlowStream]) -> pl.DataFrame:
    """Return `phase`, `start_ns` and `end_ns` (null for the last one) of each spell, in the order of time."""
    table = phase_samples(run, flows).with_columns((pl.col("bbr_phase").rle_id()).alias("spell"))
    grouped = table.group_by("spell", maintain_order=True).agg(
        pl.col("bbr_phase").first().alias("phase"), pl.col("t_ns").first().alias("start_ns")
    )
    return grouped.with_columns(pl.col("start_ns").shift(-1).alias("end_ns"))


def _first(table: pl.DataFrame, column: str) -> float | None:
    return None if table.is_empty() or table[column][0] is None else float(table[column][0])


def bw_error(run: Recording, flows: list[FlowStream], mbps: float) -> float | None:
    """Return the error of the estimate at the end of STARTUP, in % of the rate."""
    after = phase_samples(run, flows).filter(pl.col("bbr_phase") != "STARTUP")
    bw = _first(after, "bbr_bw")
    return None if bw is None else 100 * abs(bw * 8 / 1e6 / mbps - 1)


def startup_s(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the time from the first sample to the end of the first STARTUP."""
    startup = spells(run, flows).filter(pl.col("phase") == "STARTUP").head(1)
    end = _first(startup, "end_ns")
    return None if end is None else (end - float(startup["start_ns"][0])) / 1e9


def drain_excess(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the segments in flight above Inflight(1.0) at the first sample after DRAIN, at least 0."""
    table = phase_samples(run, flows)
    left = (pl.col("bbr_phase") == "PROBE_BW") & (pl.col("bbr_phase").shift(1) == "DRAIN")
    for row in table.filter(left).head(1).iter_rows(named=True):
        bdp = row["bbr_bw"] * row["bbr_min_rtt"] / US_PER_S / row["snd_mss"]
        quantum = max(2.0, row["bbr_bw"] * QUANTUM_MS / 1000 / row["snd_mss"])
        return max(0.0, float(row["unacked"] - row["sacked"] - row["lost"] - bdp - BUDGET * quantum))
    return None


def _probe_rtts(run: Recording, flows: list[FlowStream]) -> pl.DataFrame:
    return spells(run, flows).filter(pl.col("phase") == "PROBE_RTT")


def probe_rtt_ms(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the length of the shortest complete PROBE_RTT, ms."""
    shortest = _probe_rtts(run, flows).drop_nulls("end_ns").select((pl.col("end_ns") - pl.col("start_ns")).min())
    return None if shortest.item() is None else float(shortest.item()) / 1e6


def probe_rtt_cwnd(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the smallest window in PROBE_RTT, segments."""
    least = phase_samples(run, flows).filter(pl.col("bbr_phase") == "PROBE_RTT")["snd_cwnd"].min()
    return float(least) if isinstance(least, int) else None


def probe_rtt_interval_s(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the shortest time between the beginnings of two PROBE_RTTs; the first sample counts as one."""
    table = spells(run, flows)
    starts = [float(start_ns) for start_ns in table.filter(pl.col("phase") == "PROBE_RTT")["start_ns"]]
    first_ns = _first(table, "start_ns")
    if not starts or first_ns is None:
        return None
    return min(later - sooner for sooner, later in pairwise([first_ns, *starts])) / 1e9


def back_to_startup(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return 1 if the first STARTUP continues after the first PROBE_RTT, else 0; None if PROBE_RTT did not come in
    STARTUP."""
    phases = spells(run, flows)["phase"].to_list()
    if phases[:2] != ["STARTUP", "PROBE_RTT"] or len(phases) < len(("STARTUP", "PROBE_RTT", "next")):
        return None
    return float(phases[2] == "STARTUP")


def probe_rtts(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the number of PROBE_RTTs."""
    return None if phase_samples(run, flows).is_empty() else float(_probe_rtts(run, flows).height)


def left_startup(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return 1 if STARTUP was left for a phase other than PROBE_RTT, which its timer starts in any phase; else 0."""
    phases = set(phase_samples(run, flows)["bbr_phase"].unique())
    return float(not phases <= {"STARTUP", "PROBE_RTT"}) if phases else None


def cwnd_bdp(run: Recording, flows: list[FlowStream], mbps: float) -> float | None:
    """Return the largest window, in BDPs of the rate and the smallest round trip."""
    table = phase_samples(run, flows)
    if table.is_empty():
        return None
    after = table.filter(pl.col("t_ns") > table["t_ns"][0] + WARM_S * 1e9)
    if after.is_empty():
        return None
    sizes = after.select(
        (pl.col("snd_cwnd") * pl.col("snd_mss")).max().alias("b"), pl.col("bbr_min_rtt").min().alias("r")
    )
    size, rtt_us = sizes.row(0)
    return float(size * 8 / (mbps * rtt_us)) if rtt_us else None


def bw_at(run: Recording, flows: list[FlowStream], at_ns: int, mbps: float) -> float | None:
    """Return the estimate at an instant, as a share of the rate."""
    bw = _first(phase_samples(run, flows).filter(pl.col("t_ns") >= at_ns), "bbr_bw")
    return None if bw is None else bw * 8 / 1e6 / mbps


def private_samples(run: Recording, flows: list[FlowStream]) -> pl.DataFrame:
    """Return the samples joined with the private state of BBRv3; no row if the flow exports none."""
    names = [flow.name for flow in flows[:1]]
    private = run.table("cc").filter(pl.col("sender") & pl.col("stream").is_in(names))
    if "inflight_longterm" not in private["name"].unique().to_list():
        return phase_samples(run, flows).clear()
    private = private.pivot("name", index="t_ns", values="value")
    return phase_samples(run, flows).join(private.rename({"phase": "bbr3_phase"}), on="t_ns")


def longterm_bdp(run: Recording, flows: list[FlowStream], mbps: float) -> float | None:
    """Return inflight_longterm at the end of STARTUP, in BDPs of the rate and the smallest round trip."""
    table = private_samples(run, flows)
    if table.is_empty():
        return None
    for row in table.filter(pl.col("bbr3_phase") != STARTUP).head(1).iter_rows(named=True):
        if row["inflight_longterm"] < UNBOUND:
            return float(row["inflight_longterm"] * row["snd_mss"] * 8 / (mbps * row["bbr_min_rtt"]))
    return None


def cruise_excess(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the most segments in flight above both bounds, and above a millisecond of data, at the first sample of a
    CRUISE after DOWN; 0 if there are none."""
    table = private_samples(run, flows)
    if table.is_empty():
        return None
    starts = table.filter((pl.col("bbr3_phase") == CRUISE) & (pl.col("bbr3_phase").shift(1) == DOWN))
    bdp = (pl.col("bbr_bw") * pl.col("bbr_min_rtt") / US_PER_S / pl.col("snd_mss")).ceil()
    quantum = pl.max_horizontal(pl.lit(2.0), pl.col("bbr_bw") * QUANTUM_MS / 1000 / pl.col("snd_mss"))
    budget = pl.max_horizontal(bdp, BUDGET * quantum)
    left = pl.col("inflight_longterm") * (1 - HEADROOM)
    in_flight = pl.col("unacked") - pl.col("sacked") - pl.col("lost")
    most = starts.select((in_flight - pl.min_horizontal(budget, left) - quantum).max()).item()
    return None if most is None else max(0.0, float(most))


def longterm_share(run: Recording, flows: list[FlowStream]) -> float | None:
    """Return the smallest share of inflight_longterm that remains after a later probe that was too high."""
    table = private_samples(run, flows)
    if table.is_empty():
        return None
    cut = pl.col("probes_too_high") > pl.col("probes_too_high").shift(1)
    share = pl.col("inflight_longterm") / pl.col("inflight_longterm").shift(1)
    least = table.select(share.alias("share"), cut.alias("cut")).filter("cut")["share"][1:].min()
    return float(least) if isinstance(least, float) else None
