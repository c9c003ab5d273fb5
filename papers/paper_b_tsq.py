# SPDX-License-Identifier: Apache-2.0
"""Paper B, TCP Small Queues of fixed sizes, and its last round (Figures 9 to 14). `checks.py`
explains the tolerances."""

from dataclasses import replace

from papers.checks import (
    BEYOND,
    SAME,
    below,
    claim,
    difference,
    fair,
    least,
    mitigates,
    more,
    near,
    rising,
    same,
    share_of_best,
    times_lower,
    unfair,
)
from papers.model import DOWN, PING, UP, Layout, Unknown
from papers.paper_b import ATTEMPTS, MARKED, OLD_CCS, TESTBED, both_ways, candles, over

SIZES = ["64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "5MiB", "10MiB", "off"]

FQ_CODEL_AT_AP = Unknown(
    "whether the access point has the client's qdisc or Arch Linux's default, FQ-CoDel",
    "AP: FQ-CoDel",
    replace(TESTBED, only={"name": "rrul_be", "stack.ap.qdisc": "fq_codel"}),
)

FIGURES = (
    candles(
        "B-9",
        "One upload: TSQ's size",
        claim(
            "full goodput needs 128 KB or more",
            *[share_of_best(UP, 0.95, 1, tsq=size) for size in SIZES[1:]],
            *[share_of_best(UP, 0, 0.95, tsq=size) for size in ("default", "64KiB")],
            tolerance="from 128 KB on 95 % of the highest or more, with 64 KB and the standard less",
        ),
        claim("the larger the limit, the higher the latency", rising(PING, "tsq", SIZES), tolerance="no step falls"),
        claim(
            "after 5 MB the latency is stable",
            same(PING, {"tsq": "10MiB"}, {"tsq": "5MiB"}),
            same(PING, {"tsq": "off"}, {"tsq": "5MiB"}),
            more(PING, PING, {"tsq": "5MiB"}, {"tsq": "2MiB"}),
            tolerance=SAME,
        ),
        claim(
            "at 70 ms",
            near(PING, 70, tsq="5MiB"),
        ),
        claim(
            "64 KB has a lower latency than standard TSQ",
            more(PING, PING, {"tsq": "default"}, {"tsq": "64KiB"}),
            tolerance=BEYOND,
            excluded="the paper's Fig. 12 says that standard TSQ outperforms 64 KB always, except with Reno",
        ),
        layout=over("tsq"),
    ),
    candles(
        "B-10",
        "Four uploads: TSQ's size",
        claim(
            "standard TSQ: 5 ms at 75 Mbit/s",
            near(PING, 5, tsq="default"),
            near(UP, 75, tsq="default"),
            cause="the statistic: the median under load is in the range (column *median*), the mean with the idle"
            " ends is on its edge",
        ),
        claim(
            "64 KB saturates, standard TSQ does not",
            share_of_best(UP, 0.95, 1, tsq="64KiB"),
            share_of_best(UP, 0, 0.95, tsq="default"),
            tolerance="95 % of the highest",
        ),
        claim(
            "the latency rises with the limit",
            rising(PING, "tsq", SIZES),
            tolerance=f"no step falls {BEYOND}, nor by more than 1 %",
            cause="from 2 MiB on the qdisc and the send buffers bound the queue, not TCP Small Queues",
        ),
        claim("to the worst case of 100 ms", near(PING, 100, tsq="off")),
        claim(
            "standard TSQ's latency is that of one upload",
            same(PING, {"tsq": "default"}, {"tsq": "default"}, of="B-9"),
            tolerance=SAME,
            cause="each flow may exceed its limit by one skb, and four flows do",
        ),
        layout=over("tsq"),
        needs=("B-9",),
    ),
    candles(
        "B-11",
        "RRUL: TSQ's size",
        claim(
            "standard TSQ: about 25 ms",
            near(PING, 25, tsq="default"),
            cause="the access point's qdisc: with FQ-CoDel, the default of Arch Linux, it is in the range (column"
            " *AP: FQ-CoDel*)",
        ),
        claim(
            "the lowest latency is standard TSQ's",
            least(PING, "tsq", {"tsq": "default"}),
            tolerance=BEYOND,
        ),
        claim("its uploads are starved", unfair(tsq="default"), tolerance="down is 1.5 times up or more"),
        claim(
            "static limits are fair",
            *[fair(tsq=size) for size in SIZES[:-1]],
            tolerance="up and down within a factor of 1.5",
        ),
        claim(
            "their latency is a function of the limit",
            rising(PING, "tsq", SIZES),
            tolerance=f"no step falls {BEYOND}, nor by more than 1 %",
            cause="1 MiB is the highest point: this limit is just below the size of the qdisc, which drops nothing."
            " Above it drops, and CUBIC's windows fall",
        ),
        layout=both_ways("tsq"),
        unknowns=(MARKED, FQ_CODEL_AT_AP),
        note="Marked RRUL has seconds of ping, which is no error: 5.10 puts CS5 and EF into the video queue, which"
        " refills the driver's one FIFO of 246 frames first, and a best-effort ping waits for as long as it does."
        " ath9k_htc stops and wakes all queues at once (htc_drv_txrx.c).",
    ),
    candles(
        "B-12",
        "FQ-CoDel, one upload: five congestion controls, TSQ and 64 KB",
        claim(
            "BBR below 2 ms of round trip",
            below(PING, 2, cc="bbr", tsq="default"),
            tolerance="2 ms, 10 % for the reading",
        ),
        claim(
            "it is the best",
            least(PING, "cc", {"cc": "bbr", "tsq": "default"}, tsq="default"),
            tolerance=BEYOND,
        ),
        claim(
            "standard TSQ outperforms 64 KB with BBR, New Vegas, YeAH",
            *[
                more(PING, PING, {"cc": cc, "tsq": "64KiB"}, {"cc": cc, "tsq": "default"})
                for cc in ("bbr", "nv", "yeah")
            ],
            tolerance=BEYOND,
            cause="YeAH's goodput is higher than the paper's (B-13.1), and with it the standard limit: above 64 KB",
        ),
        claim(
            "with New Reno it does not",
            more(PING, PING, {"cc": "reno", "tsq": "default"}, {"cc": "reno", "tsq": "64KiB"}),
            tolerance=BEYOND,
        ),
        claim(
            "with Cubic both are almost the same",
            same(PING, {"cc": "cubic", "tsq": "default"}, {"cc": "cubic", "tsq": "64KiB"}),
            tolerance=SAME,
            cause="the standard limit is below 64 KB at this rate, so its queue is shorter",
        ),
        claim(
            "an order of magnitude below the old configuration, Cubic without TSQ (Fig. 3)",
            times_lower(PING, 10, {"cc": "bbr", "tsq": "default"}, {"cc": "cubic"}, of="B-3"),
            tolerance="a tenth or less",
        ),
        needs=("B-3",),
        layout=Layout("cc", ("tsq",), quantities=("ping",)),
        unknowns=OLD_CCS,
    ),
    candles(
        "B-13",
        "FQ-CoDel, one upload, standard TSQ",
        claim(
            "YeAH 60 Mbit/s at 3 ms",
            near(UP, 60, cc="yeah"),
            near(PING, 3, cc="yeah"),
            cause=f"unknown; {ATTEMPTS}. When slow start ends, with its pacing ratio of 200 %, decides the limit",
        ),
        claim("Cubic 70 Mbit/s at 4 ms", near(UP, 70, cc="cubic"), near(PING, 4, cc="cubic")),
        claim("New Reno near 100 Mbit/s at 7 ms", near(UP, 100, cc="reno"), near(PING, 7, cc="reno")),
        claim(
            "BBR and New Vegas have the lowest goodput",
            *[more(UP, UP, {"cc": cc}, {"cc": low}) for cc in ("cubic", "reno", "yeah") for low in ("bbr", "nv")],
            tolerance=BEYOND,
        ),
        claim(
            "New Reno has the highest latency",
            *[more(PING, PING, {"cc": "reno"}, {"cc": cc}) for cc in ("bbr", "cubic", "nv", "yeah")],
            tolerance=BEYOND,
        ),
        layout=over("cc"),
        unknowns=OLD_CCS,
    ),
    candles(
        "B-14",
        "RRUL, FQ-CoDel: TSQ (a) and 64 KB (b)",
        claim(
            "standard TSQ is unfair",
            *[unfair(cc=cc, tsq="default") for cc in ("bbr", "cubic", "nv", "reno", "yeah")],
            tolerance="down is 1.5 times up or more",
        ),
        claim(
            "64 KB is fair, except for BBR",
            *[fair(cc=cc, tsq="64KiB") for cc in ("cubic", "nv", "reno", "yeah")],
            tolerance="up and down within a factor of 1.5",
        ),
        claim(
            "of BBR it mitigates the unfairness and does not end it",
            mitigates({"cc": "bbr", "tsq": "64KiB"}, {"cc": "bbr", "tsq": "default"}),
            more(DOWN, UP, {"cc": "bbr", "tsq": "64KiB"}),
            tolerance="up's share is higher, and down still above up, beyond the spread of the seeds",
        ),
        claim(
            "BBR with standard TSQ below 10 ms",
            below(PING, 10, cc="bbr", tsq="default"),
            tolerance="10 ms, 10 % for the reading",
        ),
        claim(
            "the lowest latency of all ten",
            *[
                more(PING, PING, {"cc": cc, "tsq": tsq}, {"cc": "bbr", "tsq": "default"})
                for cc in ("cubic", "nv", "reno", "yeah")
                for tsq in ("default", "64KiB")
            ],
            tolerance=f"of those of the other four, {BEYOND}",
        ),
        claim(
            "64 KB costs almost 10 ms, but not of BBR",
            *[
                difference(PING, 5, 20, {"cc": cc, "tsq": "64KiB"}, {"cc": cc, "tsq": "default"})
                for cc in ("cubic", "nv", "reno", "yeah")
            ],
            difference(PING, -5, 5, {"cc": "bbr", "tsq": "64KiB"}, {"cc": "bbr", "tsq": "default"}),
            tolerance="5 to 20 ms; of BBR less than 5",
        ),
        layout=Layout("cc", (), panel="tsq", quantities=("ways", "ping"), columns=True),
        unknowns=(MARKED, *OLD_CCS),
    ),
)
