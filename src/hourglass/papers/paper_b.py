# SPDX-License-Identifier: Apache-2.0
"""Paper B: Grazia, "Towards 1 ms WLAN Latency" (2018, kernel 4.14): its congestion controls and qdiscs
(Figures 3 to 8); paper_b_tsq.py has the rest. What the tolerances mean: `checks.py`.

Run on the oldest kernel there is, with the settings that make it 4.14 (`DIFFERENCES`, `scenarios/papers/testbeds/`).
"""

from dataclasses import replace

from hourglass.papers.checks import BEYOND, SAME, above, below, claim, fair, least, more, near, same, within
from hourglass.papers.model import DOWN, PING, UP, Claim, Figure, Layout, Unknown, View, Where

LOSS_BASED = ("cubic", "highspeed", "hybla", "illinois", "reno", "scalable")
WINDOWS = (*LOSS_BASED, "westwood", "yeah")
"""The paper's window-based variants."""
EVERY = ("bbr", *WINDOWS, "nv")
PIE = "pie target 20ms tupdate 30ms dq_rate_estimator"
"""As 4.14 has it: since 5.6 target and interval are 15 ms and the rate is not estimated."""

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
    "  which count in truesize, are scaled by 2728 / 4352: 1/1024 s is 612 µs, 64 KiB are 41,080 bytes, 4 MiB are",
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


def over(axis: str, **more: object) -> Layout:
    """Goodput and ping over an axis."""
    return Layout(axis, (), quantities=("goodput", "ping"), where=tuple(more.items()))


def both_ways(axis: str) -> Layout:
    return Layout(axis, (), quantities=("ways", "ping"))


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
        layout=over("cc"),
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
            'Westwood "only" 80 ms',
            within(PING, 80, 0.2, cc="westwood"),
            tolerance="20 %: the number is rounded to tens",
        ),
        claim("YeAH almost 60 ms", within(PING, 60, 0.2, cc="yeah"), tolerance="20 %: the number is rounded to tens"),
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
        layout=over("cc"),
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
        layout=both_ways("cc"),
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
        "One download: seven qdiscs, FIFO by skbs and by bytes",
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
        layout=over("qdisc"),
        unknowns=(OF_BYTES,),
    ),
    candles(
        "B-7",
        "Four downloads: seven qdiscs, FIFO by skbs and by bytes",
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
        layout=over("qdisc"),
        needs=("B-6",),
        unknowns=(OF_BYTES,),
    ),
    candles(
        "B-8",
        "One upload: seven qdiscs, FIFO by skbs and by bytes",
        claim("PFIFO, FIFO and PIE are the same", same(PING, PFIFO, FIFO), same(PING, OF_PIE, FIFO), tolerance=SAME),
        claim(
            "PFIFO and FIFO are at 70 ms",
            *[within(PING, 70, 0.2, **one) for one in (PFIFO, FIFO)],
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
        layout=over("qdisc"),
        unknowns=(OF_BYTES,),
    ),
)
