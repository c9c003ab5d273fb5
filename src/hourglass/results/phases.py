# SPDX-License-Identifier: Apache-2.0
"""Values derived from a socket's samples: BBR's phase by name, the end of CUBIC's HyStart.

BBR does not report its phase, but its two gains identify it. They are in units of 1/256. In the kernel's BBRv1
(net/ipv4/tcp_bbr.c, Linux 5.10 to 7.3) `bbr_high_gain` is 256 · 2885 / 1000 + 1, `bbr_drain_gain` 256 · 1000 / 2885,
`bbr_cwnd_gain` 256 · 2; BBRv3's are of draft-ietf-ccwg-bbr:

| phase | pacing gain | cwnd gain | BBRv3's |
|---|---|---|---|
| STARTUP | 739 | 739 | 709, 512 |
| DRAIN | 88 | 739 | 128, 512 |
| PROBE_BW | 320, 192 or 256 in turn | 512 | 230, 256 or 320; 512 or 576 |
| PROBE_RTT | 256 | 256 | 256, 128 |
"""

import polars as pl

from hourglass.contract.plan import FlowStream

UNIT = 256
PHASES = ("STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT")

INFINITE_SSTHRESH = 0x7FFFFFFF
"""`TCP_INFINITE_SSTHRESH`: slow start has not ended yet."""
OPEN = 0
"""`TCP_CA_Open`: TCP reacts to no loss, ECN mark or local congestion."""


def with_phase(tcp: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with a column `bbr_phase`, one of `PHASES`; null for other congestion controls."""
    pacing, cwnd = pl.col("bbr_pacing_gain"), pl.col("bbr_cwnd_gain")
    phase = (
        pl.when((cwnd == 0) | cwnd.is_null()).then(None)
        .when(cwnd <= UNIT).then(pl.lit("PROBE_RTT"))
        .when(pacing > 2 * UNIT).then(pl.lit("STARTUP"))
        .when(pacing <= UNIT // 2).then(pl.lit("DRAIN"))
        .otherwise(pl.lit("PROBE_BW"))
    )  # fmt: skip
    return tcp.with_columns(phase.cast(pl.Enum(PHASES)).alias("bbr_phase"))


def hystart_exit_ns(tcp: pl.DataFrame, flow: FlowStream) -> int | None:
    """Return when HyStart ended the slow start of a flow. This is its first sample with a finite ssthresh, without
    earlier retransmissions and without another reason to slow down (`ca_state` open). None if it did not, or the flow
    is not CUBIC's."""
    if flow.cc != "cubic":
        return None
    ended = (
        tcp.filter((pl.col("stream") == flow.name) & pl.col("sender") & (pl.col("snd_ssthresh") < INFINITE_SSTHRESH))
        .sort("t_ns")
        .select("t_ns", "total_retrans", "ca_state")
        .head(1)
    )
    if ended.is_empty() or ended["total_retrans"][0] or ended["ca_state"][0] != OPEN:
        return None
    return int(ended["t_ns"][0])
