# SPDX-License-Identifier: Apache-2.0
"""What the samples of a BBR socket say of its phases (`results/phases.py`): bandwidth in Mbit/s of payload.

A phase is seen at sampling instants: it lasts from the first sample of a spell to the first of the next. What only
BBRv3 has is read off the private state that the template `bbr3.c` shows (table `cc`); of others it is None.
"""

from itertools import pairwise

import polars as pl

from hourglass.contract.plan import Flow
from hourglass.results.recording import Recording

US_PER_S = 1_000_000
QUANTUM_MS = 1.0
"""`C.send_quantum` is what is sent in so long, two segments at least (draft-ietf-ccwg-bbr)."""
BUDGET = 3
"""Inflight(1.0) has room for so many quanta beside the BDP (draft-ietf-ccwg-bbr; `bbr_quantization_budget`)."""
WARM_S = 1.0
STARTUP, DOWN, CRUISE = 0, 2, 3
"""`enum bbr3_phase` of kernel/templates/bbr3.c."""
UNBOUND = 2**32 - 1
HEADROOM = 0.15


def told(run: Recording, flows: list[Flow]) -> pl.DataFrame:
    """The samples of the first flow that have a phase, with signed numbers."""
    names = [flow.name for flow in flows[:1]]
    columns = ["snd_cwnd", "unacked", "sacked", "lost", "snd_mss", "bbr_bw", "bbr_min_rtt"]
    known = pl.col("sender") & pl.col("stream").is_in(names)
    found = run.tcp.filter(known).drop_nulls("bbr_phase").sort("t_ns")
    return found.with_columns(pl.col(columns).cast(pl.Int64), pl.col("bbr_phase").cast(pl.String))


def spells(run: Recording, flows: list[Flow]) -> pl.DataFrame:
    """`phase`, `start_ns`, and `end_ns`, null of the last one; in the order of time."""
    table = told(run, flows).with_columns((pl.col("bbr_phase").rle_id()).alias("spell"))
    found = table.group_by("spell", maintain_order=True).agg(
        pl.col("bbr_phase").first().alias("phase"), pl.col("t_ns").first().alias("start_ns")
    )
    return found.with_columns(pl.col("start_ns").shift(-1).alias("end_ns"))


def _first(table: pl.DataFrame, column: str) -> float | None:
    return None if table.is_empty() or table[column][0] is None else float(table[column][0])


def bw_error(run: Recording, flows: list[Flow], mbps: float) -> float | None:
    """How far the estimate is from the rate when STARTUP has ended, %."""
    after = told(run, flows).filter(pl.col("bbr_phase") != "STARTUP")
    bw = _first(after, "bbr_bw")
    return None if bw is None else 100 * abs(bw * 8 / 1e6 / mbps - 1)


def startup_s(run: Recording, flows: list[Flow]) -> float | None:
    """From the first sample to the end of the first STARTUP."""
    found = spells(run, flows).filter(pl.col("phase") == "STARTUP").head(1)
    end = _first(found, "end_ns")
    return None if end is None else (end - float(found["start_ns"][0])) / 1e9


def drain_excess(run: Recording, flows: list[Flow]) -> float | None:
    """Segments in flight above Inflight(1.0) at the first sample behind DRAIN; none is 0."""
    table = told(run, flows)
    left = (pl.col("bbr_phase") == "PROBE_BW") & (pl.col("bbr_phase").shift(1) == "DRAIN")
    for row in table.filter(left).head(1).iter_rows(named=True):
        bdp = row["bbr_bw"] * row["bbr_min_rtt"] / US_PER_S / row["snd_mss"]
        quantum = max(2.0, row["bbr_bw"] * QUANTUM_MS / 1000 / row["snd_mss"])
        return max(0.0, float(row["unacked"] - row["sacked"] - row["lost"] - bdp - BUDGET * quantum))
    return None


def _probe_rtts(run: Recording, flows: list[Flow]) -> pl.DataFrame:
    return spells(run, flows).filter(pl.col("phase") == "PROBE_RTT")


def probe_rtt_ms(run: Recording, flows: list[Flow]) -> float | None:
    """The shortest that was seen to its end, ms."""
    found = (_probe_rtts(run, flows).drop_nulls("end_ns")).select((pl.col("end_ns") - pl.col("start_ns")).min())
    return None if found.item() is None else float(found.item()) / 1e6


def probe_rtt_cwnd(run: Recording, flows: list[Flow]) -> float | None:
    """The smallest window in PROBE_RTT, segments."""
    found = told(run, flows).filter(pl.col("bbr_phase") == "PROBE_RTT")["snd_cwnd"].min()
    return float(found) if isinstance(found, int) else None


def probe_rtt_interval_s(run: Recording, flows: list[Flow]) -> float | None:
    """The shortest time from one beginning to the next; to the first one from the first sample."""
    table = spells(run, flows)
    starts = [float(one) for one in table.filter(pl.col("phase") == "PROBE_RTT")["start_ns"]]
    begun = _first(table, "start_ns")
    if not starts or begun is None:
        return None
    return min(later - sooner for sooner, later in pairwise([begun, *starts])) / 1e9


def back_to_startup(run: Recording, flows: list[Flow]) -> float | None:
    """1 if STARTUP, before which there was no other phase, goes on behind the first PROBE_RTT; 0 if it does not; None
    where PROBE_RTT did not come in STARTUP."""
    phases = spells(run, flows)["phase"].to_list()
    if phases[:2] != ["STARTUP", "PROBE_RTT"] or len(phases) < len(("STARTUP", "PROBE_RTT", "next")):
        return None
    return float(phases[2] == "STARTUP")


def probe_rtts(run: Recording, flows: list[Flow]) -> float | None:
    """How often PROBE_RTT was entered."""
    return None if told(run, flows).is_empty() else float(_probe_rtts(run, flows).height)


def left_startup(run: Recording, flows: list[Flow]) -> float | None:
    """1 if STARTUP was left for a phase other than PROBE_RTT, which its timer orders anywhere; else 0."""
    phases = set(told(run, flows)["bbr_phase"].unique())
    return float(not phases <= {"STARTUP", "PROBE_RTT"}) if phases else None


def cwnd_bdp(run: Recording, flows: list[Flow], mbps: float) -> float | None:
    """The largest window, in BDPs of the rate and the smallest round trip."""
    table = told(run, flows)
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


def bw_at(run: Recording, flows: list[Flow], at_ns: int, mbps: float) -> float | None:
    """The estimate at an instant, as a share of the rate."""
    bw = _first(told(run, flows).filter(pl.col("t_ns") >= at_ns), "bbr_bw")
    return None if bw is None else bw * 8 / 1e6 / mbps


def shown(run: Recording, flows: list[Flow]) -> pl.DataFrame:
    """`told`, with what the first flow shows of BBRv3 beside it; no row where it does not."""
    names = [flow.name for flow in flows[:1]]
    private = run.table("cc").filter(pl.col("sender") & pl.col("stream").is_in(names))
    if "inflight_longterm" not in private["name"].unique().to_list():
        return told(run, flows).clear()
    private = private.pivot("name", index="t_ns", values="value")
    return told(run, flows).join(private.rename({"phase": "own_phase"}), on="t_ns")


def longterm_bdp(run: Recording, flows: list[Flow], mbps: float) -> float | None:
    """inflight_longterm when STARTUP has ended, in BDPs of the rate and the smallest round trip."""
    table = shown(run, flows)
    if table.is_empty():
        return None
    for row in table.filter(pl.col("own_phase") != STARTUP).head(1).iter_rows(named=True):
        if row["inflight_longterm"] < UNBOUND:
            return float(row["inflight_longterm"] * row["snd_mss"] * 8 / (mbps * row["bbr_min_rtt"]))
    return None


def cruise_excess(run: Recording, flows: list[Flow]) -> float | None:
    """Segments in flight above both of its bounds at the first sample of a CRUISE behind DOWN, and above what leaves
    in a millisecond between the two: the most; none is 0."""
    table = shown(run, flows)
    if table.is_empty():
        return None
    begun = table.filter((pl.col("own_phase") == CRUISE) & (pl.col("own_phase").shift(1) == DOWN))
    bdp = (pl.col("bbr_bw") * pl.col("bbr_min_rtt") / US_PER_S / pl.col("snd_mss")).ceil()
    quantum = pl.max_horizontal(pl.lit(2.0), pl.col("bbr_bw") * QUANTUM_MS / 1000 / pl.col("snd_mss"))
    budget = pl.max_horizontal(bdp, BUDGET * quantum)
    left = pl.col("inflight_longterm") * (1 - HEADROOM)
    in_flight = pl.col("unacked") - pl.col("sacked") - pl.col("lost")
    most = begun.select((in_flight - pl.min_horizontal(budget, left) - quantum).max()).item()
    return None if most is None else max(0.0, float(most))


def longterm_kept(run: Recording, flows: list[Flow]) -> float | None:
    """What a probe that was too high leaves of inflight_longterm, the least of the later ones."""
    table = shown(run, flows)
    if table.is_empty():
        return None
    cut = pl.col("probes_too_high") > pl.col("probes_too_high").shift(1)
    share = pl.col("inflight_longterm") / pl.col("inflight_longterm").shift(1)
    least = table.select(share.alias("kept"), cut.alias("cut")).filter("cut")["kept"][1:].min()
    return float(least) if isinstance(least, float) else None
