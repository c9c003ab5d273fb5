# SPDX-License-Identifier: Apache-2.0
"""Paper B: Grazia, "Towards 1 ms WLAN Latency" (2018, kernel 4.14). What the tolerances mean: `checks.py`.

Run on the oldest kernel there is, with the settings that make it 4.14 (`DIFFERENCES`, `scenarios/papers/testbeds/`).
"""

from dataclasses import replace

from hourglass.papers.checks import (
    BEYOND,
    SAME,
    above,
    below,
    by,
    claim,
    fair,
    least,
    mitigates,
    more,
    near,
    rising,
    same,
    share_of_best,
    unfair,
    within,
)
from hourglass.papers.model import DOWN, PING, UP, Claim, Figure, Layout, Unknown, View, Where

LOSS_BASED = ("cubic", "highspeed", "hybla", "illinois", "reno", "scalable")
WINDOWS = (*LOSS_BASED, "westwood", "yeah")
"""The paper's window-based variants."""
EVERY = ("bbr", *WINDOWS, "nv")
PIE = "pie target 20ms tupdate 30ms dq_rate_estimator"
"""As 4.14 has it: since 5.6 target and interval are 15 ms and the rate is not estimated."""
SIZES = ["64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "5MiB", "10MiB", "off"]

OLD_BBR = (
    "BBR of 4.14 is another: GSO was not yet always on (4.17), and its window had no allowance for aggregates of"
    " acknowledgments (5.1), which Wi-Fi's block acks are"
)

DIFFERENCES = (
    "The paper ran Linux 4.14; this is 5.10, the oldest kernel here, with what 4.14 is known to do otherwise set by",
    "hand:",
    "",
    "* Radios have a pacing shift of 10 (mac80211 sets 7 since 4.20), `tcp_limit_output_bytes` is 256 KiB.",
    "* An skb of the client holds one segment (4.14 did no GSO for a device without scatter-gather). The server's",
    "  Ethernet has it, and TSO.",
    "* Such an skb counted 4,352 bytes (truesize); 5.10 counts 2,728. TCP Small Queues and `tcp_wmem` of the client,",
    "  which count in truesize, are scaled by 2728 / 4352: 1 ms is 627 µs, 64 KiB are 41,080 bytes, 4 MiB are",
    "  2,629,149.",
    "* PIE has a target of 20 ms, an interval of 30 ms, and estimates its rate (5.6 changed all three).",
    "",
    "What stays different:",
    "",
    "* BBR: `tcp_limit_output_bytes` does not bound it (5.0), GSO is always on (4.17), its window has an allowance for",
    "  aggregated acknowledgments (5.1), and it asks for two segments per skb.",
    "* Pacing is by earliest departure time (4.20), acknowledgments of out-of-order data are compressed (4.18), losses",
    "  are found by RACK alone (4.18).",
    "* The adapter, its USB and the air are models ([their limits](../model.md)); the firmware's rate control is not",
    "  modelled, the rate is fixed.",
    "",
    "Of the paper's 1 to 8 flows its figures show 1 and 4, and so do these.",
)
"""What of the paper's testbed is not had: lines of its page."""

RRUL = (
    "whether RRUL's flows were marked (Flent's `rrul`: best effort twice, background, EF) or not (`rrul_be`): the paper"
    " says RRUL and describes 4 uploads with 4 downloads"
)


STATISTIC = Unknown(
    "which statistic of ping the figures show: Flent's tables have the mean of the whole test, 40 s of which 10 s are"
    " without load",
    view=View(whole_test=True),
    called="mean of all 40 s",
)
OF_BYTES = Unknown(
    "what FIFO is: tc has pfifo, which counts skbs, and bfifo, which counts bytes",
    view=View(instead={("qdisc", "pfifo"): "bfifo"}),
    called="FIFO is bfifo",
)


def candles(id: str, title: str, *claims: Claim, layout: Layout, needs: tuple[str, ...] = (),
            unknowns: tuple[Unknown, ...] = (), note: str = "") -> Figure:  # fmt: skip
    """A figure whose claims have its id and their places."""
    numbered = tuple(replace(one, id=f"{id}.{place}") for place, one in enumerate(claims, 1))
    return Figure(id, title, "candles", numbered, layout, needs, (STATISTIC, *unknowns), note)


def _of(axis: str, **more: object) -> Layout:
    """Goodput and ping over an axis."""
    return Layout(axis, (), quantities=("goodput", "ping"), where=tuple(more.items()))


def _both_ways(axis: str) -> Layout:
    return Layout(axis, (), quantities=("upload", "download", "ping"))


def _each(ccs: tuple[str, ...]) -> list[Where]:
    return [{"cc": cc} for cc in ccs]


def _qdiscs(*names: str) -> list[Where]:
    return [{"qdisc": PIE if one == "pie" else one} for one in names]


SMART = _qdiscs("codel", "sfq", "fq", "fq_codel")
FIFO, PFIFO, OF_PIE = _qdiscs("pfifo", "pfifo_fast", "pie")

FIGURES = (
    candles(
        "B-3",
        "One upload: ten congestion controls",
        claim("goodput near 100 Mbit/s for all but BBR and New Vegas", *[near(UP, 100, cc=cc) for cc in WINDOWS]),
        claim("BBR 50 Mbit/s", near(UP, 50, cc="bbr"), version=OLD_BBR),
        claim("New Vegas 70 Mbit/s", near(UP, 70, cc="nv")),
        claim(
            "ping above 70 ms for most",
            *[above(PING, 70, cc=cc) for cc in WINDOWS if cc != "yeah"],
            tolerance="70 ms, 10 % for the reading",
        ),
        claim(
            "BBR and New Vegas below 10 ms",
            below(PING, 10, cc="bbr"),
            below(PING, 10, cc="nv"),
            tolerance="10 ms, 10 % for the reading",
        ),
        claim("YeAH 25 ms", near(PING, 25, cc="yeah")),
        layout=_of("cc"),
    ),
    candles(
        "B-4",
        "Four uploads: ten congestion controls",
        claim(
            "Cubic, HighSpeed, Hybla, Illinois, New Reno, Scalable above 100 ms",
            *[above(PING, 100, cc=cc) for cc in LOSS_BASED],
            tolerance="100 ms, 10 % for the reading",
        ),
        claim(
            'Westwood "only" 80 ms, YeAH almost 60',
            within(PING, 80, 0.2, cc="westwood"),
            within(PING, 60, 0.2, cc="yeah"),
            tolerance="20 %: the numbers are rounded to tens",
        ),
        claim(
            "of the window-based, YeAH and then Westwood are the lowest",
            *[more(PING, PING, {"cc": cc}, {"cc": "westwood"}) for cc in LOSS_BASED],
            more(PING, PING, {"cc": "westwood"}, {"cc": "yeah"}),
            tolerance=BEYOND,
        ),
        claim("New Vegas 10 ms", near(PING, 10, cc="nv")),
        claim("all but BBR saturate, New Vegas too", *[near(UP, 100, cc=cc) for cc in (*WINDOWS, "nv")]),
        claim("BBR about 5 ms at 75 Mbit/s", near(PING, 5, cc="bbr"), near(UP, 75, cc="bbr"), version=OLD_BBR),
        claim(
            "every window-based latency rises from Fig. 3",
            *[more(PING, PING, one, one, of="B-3") for one in _each(WINDOWS)],
            tolerance=BEYOND,
        ),
        layout=_of("cc"),
        needs=("B-3",),
    ),
    candles(
        "B-5",
        "RRUL: ten congestion controls",
        claim(
            "Cubic 200 ms, BBR 25, New Vegas 40, YeAH 80",
            near(PING, 200, cc="cubic"),
            near(PING, 25, cc="bbr"),
            near(PING, 40, cc="nv"),
            near(PING, 80, cc="yeah"),
        ),
        claim(
            "Cubic is the worst",
            *[more(PING, PING, {"cc": "cubic"}, {"cc": cc}) for cc in EVERY if cc != "cubic"],
            tolerance=BEYOND,
        ),
        claim(
            "the others above 100 ms",
            *[above(PING, 100, cc=cc) for cc in WINDOWS if cc not in ("cubic", "yeah")],
            tolerance="100 ms, 10 % for the reading",
        ),
        claim(
            "fair: Cubic, Hybla, New Vegas, Westwood, YeAH",
            *[fair(cc=cc) for cc in ("cubic", "hybla", "nv", "westwood", "yeah")],
            tolerance="up and down within a factor of 1.5",
        ),
        claim(
            "HighSpeed, Illinois, New Reno, Scalable: up near 80, down below 20",
            *[
                check
                for cc in ("highspeed", "illinois", "reno", "scalable")
                for check in (near(UP, 80, cc=cc), below(DOWN, 20, cc=cc))
            ],
            version="the direction depends on which queue loses packets: a drop in the client's own qdisc only lowers"
            " cwnd, one at the access point costs a retransmission. 4.14 repaired losses otherwise (RACK alone since"
            " 4.18), which was not tried",
        ),
        claim("BBR: down above up", more(DOWN, UP, {"cc": "bbr"}), tolerance=BEYOND),
        claim(
            "the latency is higher than with four uploads for all",
            *[more(PING, PING, one, one, of="B-4") for one in _each(EVERY)],
            tolerance=BEYOND,
        ),
        layout=_both_ways("cc"),
        needs=("B-4",),
        unknowns=(
            Unknown(
                f"{RRUL}; and the access point's queue",
                "B-5-rrul",
                ("test.name", "stack.ap.qdisc"),
                claims=tuple(f"B-5.{n}" for n in range(1, 7)),
            ),
        ),
    ),
    candles(
        "B-6",
        "One download: seven qdiscs",
        claim("CoDel, SFQ, FQ and FQ-CoDel hold 25 ms", *[near(PING, 25, **one) for one in SMART]),
        claim(
            "FIFO, PFIFO and PIE are above them",
            *[more(PING, PING, high, low) for high in (FIFO, PFIFO, OF_PIE) for low in SMART],
            tolerance=BEYOND,
        ),
        claim("PIE has the latency of FIFO", same(PING, OF_PIE, FIFO), tolerance=SAME),
        claim(
            "PFIFO is worse than FIFO, because its queue is larger by default",
            more(PING, PING, PFIFO, FIFO),
            tolerance=BEYOND,
            apart="both hold txqueuelen packets, 1,000: `pfifo_init` and `pfifo_fast_init`",
        ),
        layout=_of("qdisc"),
        unknowns=(OF_BYTES,),
    ),
    candles(
        "B-7",
        "Four downloads: seven qdiscs",
        claim(
            "CoDel, SFQ and FQ-CoDel have the best goodput",
            *[
                more(DOWN, DOWN, best, other)
                for best in _qdiscs("codel", "sfq", "fq_codel")
                for other in _qdiscs("pfifo", "pie", "pfifo_fast", "fq")
            ],
            tolerance=f"each above each of the other four, {BEYOND}",
        ),
        claim(
            "the latency of PIE and PFIFO suffers from the three flows more",
            *[more(PING, PING, one, one, of="B-6") for one in (OF_PIE, PFIFO)],
            tolerance=BEYOND,
        ),
        claim(
            "that of the others is stable",
            *[same(PING, one, one, of="B-6", share=0.2) for one in (FIFO, *SMART)],
            tolerance="within 20 % of Fig. 6",
        ),
        layout=_of("qdisc"),
        needs=("B-6",),
        unknowns=(OF_BYTES,),
    ),
    candles(
        "B-8",
        "One upload: seven qdiscs",
        claim("PFIFO, FIFO and PIE are the same", same(PING, PFIFO, FIFO), same(PING, OF_PIE, FIFO), tolerance=SAME),
        claim(
            "at 70 ms",
            *[within(PING, 70, 0.2, **one) for one in (PFIFO, FIFO, OF_PIE)],
            tolerance="20 %: the number is rounded to tens",
        ),
        claim(
            "the worst latency is theirs",
            *[more(PING, PING, high, low) for high in (PFIFO, FIFO, OF_PIE) for low in SMART],
            tolerance=BEYOND,
        ),
        claim(
            "FQ is better than all the others: it paces CUBIC",
            least(PING, "qdisc", {"qdisc": "fq"}),
            tolerance=BEYOND,
        ),
        layout=_of("qdisc"),
        unknowns=(OF_BYTES,),
    ),
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
            within(PING, 70, 0.2, tsq="5MiB"),
            tolerance="20 %: the number is rounded to tens",
        ),
        claim(
            "64 KB has a lower latency than standard TSQ",
            more(PING, PING, {"tsq": "default"}, {"tsq": "64KiB"}),
            tolerance=BEYOND,
            apart="the paper's Fig. 12 says that standard TSQ outperforms 64 KB always, except with Reno",
        ),
        layout=_of("tsq"),
    ),
    candles(
        "B-10",
        "Four uploads: TSQ's size",
        claim("standard TSQ: 5 ms at 75 Mbit/s", near(PING, 5, tsq="default"), near(UP, 75, tsq="default")),
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
        ),
        claim("to the worst case of 100 ms", near(PING, 100, tsq="off")),
        layout=_of("tsq"),
    ),
    candles(
        "B-11",
        "RRUL: TSQ's size",
        claim("standard TSQ: about 25 ms", near(PING, 25, tsq="default")),
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
        ),
        layout=_both_ways("tsq"),
        unknowns=(
            Unknown(
                f"{RRUL}; whether PFIFO was set as one root or, as the kernel does by itself, one for each of mq's four"
                " queues; and the access point's queue",
                "B-11-rrul",
                ("test.name", "stack.qdisc", "stack.ap.qdisc"),
            ),
        ),
        note="Seconds of ping are no error: marked RRUL below mq has its voice and video queues refill the driver's one"
        " FIFO of 246 frames first, and a best-effort ping waits for as long as they do. Below one root it does not"
        " (*what would have to be true*).",
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
        ),
        claim(
            "with New Reno it does not",
            more(PING, PING, {"cc": "reno", "tsq": "default"}, {"cc": "reno", "tsq": "64KiB"}),
            tolerance=BEYOND,
        ),
        claim(
            "with Cubic both are almost the same",
            same(PING, {"cc": "cubic", "tsq": "default"}, {"cc": "cubic", "tsq": "64KiB"}, share=0.2),
            tolerance="within 20 %",
        ),
        layout=Layout("cc", ("tsq",), quantities=("ping",)),
    ),
    candles(
        "B-13",
        "FQ-CoDel, one upload, standard TSQ",
        claim("YeAH 60 Mbit/s at 3 ms", near(UP, 60, cc="yeah"), near(PING, 3, cc="yeah")),
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
        layout=_of("cc"),
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
            "64 KB is fair, but for BBR",
            *[fair(cc=cc, tsq="64KiB") for cc in ("cubic", "nv", "reno", "yeah")],
            tolerance="up and down within a factor of 1.5",
        ),
        claim(
            "of BBR it mitigates the unfairness and does not end it",
            mitigates({"cc": "bbr", "tsq": "64KiB"}, {"cc": "bbr", "tsq": "default"}),
            more(DOWN, UP, {"cc": "bbr", "tsq": "64KiB"}),
            tolerance="up's share is higher, and down still above up, beyond the spread of the seeds",
            version=OLD_BBR,
        ),
        claim(
            "BBR with standard TSQ below 10 ms",
            below(PING, 10, cc="bbr", tsq="default"),
            tolerance="10 ms, 10 % for the reading",
            version=OLD_BBR,
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
                by(PING, 5, 20, {"cc": cc, "tsq": "64KiB"}, {"cc": cc, "tsq": "default"})
                for cc in ("cubic", "nv", "reno", "yeah")
            ],
            by(PING, -5, 5, {"cc": "bbr", "tsq": "64KiB"}, {"cc": "bbr", "tsq": "default"}),
            tolerance="5 to 20 ms; of BBR less than 5",
        ),
        layout=Layout("cc", (), panel="tsq", quantities=("upload", "download", "ping"), beside=True),
        unknowns=(Unknown(RRUL, "B-14-rrul", ("test.name",)),),
    ),
)
