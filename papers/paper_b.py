# SPDX-License-Identifier: Apache-2.0
"""Paper B: Grazia, "Towards 1 ms WLAN Latency" (2018, kernel 4.14): its congestion controls and qdiscs
(Figures 3 to 8); paper_b_tsq.py has the rest. `checks.py` explains the tolerances.

Run on the oldest supported kernel, with the settings that make it 4.14 (`DIFFERENCES`, `papers/studies/testbeds/`).
"""

from dataclasses import replace

from papers.checks import BEYOND, SAME, above, below, claim, fair, least, more, near, same
from papers.model import DOWN, PING, UP, Claim, Layout, PaperFigure, Setting, Unknown, View

LOSS_BASED = ("cubic", "highspeed", "hybla", "illinois", "reno", "scalable")
WINDOWS = (*LOSS_BASED, "westwood", "yeah")
"""The paper's window-based variants."""
EVERY = ("bbr", *WINDOWS, "nv")
PIE = "pie target 20ms tupdate 30ms dq_rate_estimator"
"""As 4.14 has it: since 5.6 target and interval are 15 ms and the rate is not estimated."""

DIFFERENCES = (
    "The paper ran Linux 4.14. These runs have Linux 5.10, the oldest kernel here. These settings make it behave",
    "like 4.14:",
    "",
    "* Radios have a pacing shift of 10 (mac80211 sets 7 since 4.20), `tcp_limit_output_bytes` is 256 KiB.",
    "* An skb of the client holds one segment: `gso_max_segs = 1` (4.14 did no GSO for a device without",
    "  scatter-gather). The server's Ethernet has it, and TSO.",
    "* Such an skb counted 4,352 bytes (truesize); 5.10 counts 2,728. TCP Small Queues and `tcp_wmem` of the",
    "  client, which count in truesize, are scaled by 2728 / 4352: 1/1024 s is 612 µs, 64 KiB are 41,080 bytes, 4",
    "  MiB are 2,629,149.",
    "* BBR, PIE and YeAH of 4.14 are files, written from their publications (`papers/studies/linux-4.14/`). The",
    "  joint table has columns with 5.10's own.",
    "* BBR of 4.14 had no allowance for aggregated acknowledgments (5.1). Above two round trips, its window has a",
    "  margin of three skbs: three segments without GSO. Since 4.16 the margin is three times the data of a",
    "  millisecond on any device.",
    "* PIE of 4.14 has a target of 20 ms, an interval of 30 ms, and estimates its rate (5.6 changed all three).",
    "  Here code takes no time, so the estimate would be right. In a machine a burst leaves the queue at the speed",
    "  of the CPU. The file's clock therefore advances by 1 µs for each packet of a burst, which is an assumption.",
    "  In one column it advances by 0. In another column the CPUs of client and access point need that time",
    "  (`testbed.node.N.cpu`), and 5.10's own PIE has the figures of FIFO, to the digit.",
    "* YeAH of 4.14 counted an ACK of many segments as one (5.7).",
    "",
    "With the margin and the quantum of 5.10 the file of BBR agrees with the built-in one",
    "(`tests/guest/test_linux_414.py`).",
    "",
    "Remaining differences:",
    "",
    "* BBR: `tcp_limit_output_bytes` does not bound it (5.0). 4.14 set a timer for each segment, and each timer",
    "  fired late; here code takes no time. The file has a parameter for it, which lowers the goodput. No lateness of",
    "  a real machine is known to us, so it is 0.",
    "* Scalable counts all segments of an ACK (5.7). HyStart measures in microseconds (5.6), except in one column.",
    "* Pacing is by earliest departure time (4.20), acknowledgments of out-of-order data are compressed (4.18),",
    "  losses are found by RACK alone (4.18).",
    "* The adapter, its USB and the air are models ([their limits](../explanation/wifi.md)); the firmware's rate",
    "  control is not modelled, the rate is fixed.",
    "",
    "The paper ran 1 to 8 flows and shows 1 and 4, as do these figures. A ping here is the mean of the whole",
    "test of 40 s, as in Flent's summary; the median under load is a column of the joint table. RRUL's flows are",
    'not marked: the paper describes "4 TCP uploads together with 4 TCP downloads". Another column has the flows of',
    "Flent's `rrul`, which are BE, CS1, CS5 and EF in each direction.",
)
"""The differences from the paper's testbed: lines of its page."""

ATTEMPTS = "tried: the other settings of the joint table"
"""The attempts to explain a claim that differs."""
RECOVERY = 'stack.sysctl."net.ipv4.tcp_recovery"'
YEAH_414, BBR_414, CUBIC_414 = (f"linux-4.14/{name}414.c" for name in ("yeah", "bbr", "cubic"))
PIE_414 = "file=linux-4.14/pie414.c, parameters=dequeue_ns=1000"
FILES = {("cc", "yeah"): YEAH_414, ("cc", "bbr"): BBR_414, ("qdisc", PIE): PIE_414}
"""Files of 4.14 instead of 5.10's own, as values of an axis."""
SCENARIO, CPU = "testbeds/paper-b.toml", "testbeds/paper-b-cpu.toml"
TESTBED = View(
    {"name": "rrul_be", "gro": True, "stack.ap.qdisc": "pfifo_fast", RECOVERY: 1, "scenario": SCENARIO},
    instead=FILES,
    whole_test=True,
)


def with_file(question: str, label: str, word: str, name: str, file: str) -> Unknown:
    """Return a column in which an algorithm is another file, or that of 5.10."""
    return Unknown(question, label, replace(TESTBED, instead={**FILES, (word, name): file}))


MARKED = Unknown(
    "whether RRUL's flows are marked (Flent's `rrul`: BE, CS1, CS5, EF) or not (`rrul_be`)",
    "marked",
    replace(TESTBED, only={"name": "rrul"}),
)
STATISTIC = Unknown("the statistic of ping that the figures show", "median", replace(TESTBED, whole_test=False))
OF_BYTES = with_file(
    "what FIFO is: tc has pfifo, which counts skbs, and bfifo, which counts bytes", "bfifo", "qdisc", "pfifo", "bfifo"
)
YEAH_510 = with_file("5.10's own YeAH counts all segments of an ACK (5.7)", "5.10's YeAH", "cc", "yeah", "yeah")
BBR_510 = with_file(
    "5.10's own BBR has an allowance for aggregated ACKs (5.1), and that of 4.16", "5.10's BBR", "cc", "bbr", "bbr"
)
BBR_QUANTUM = with_file(
    "4.14's BBR with the allowance of 4.16: three times the data of a millisecond, though an skb has one segment",
    "BBR with 4.16's quantum",
    "cc",
    "bbr",
    "file=linux-4.14/bbr414.c, parameters=quantum=1",
)
CUBIC_OLD = with_file(
    "4.14's CUBIC, whose HyStart counted in milliseconds (until 5.6)", "CUBIC of 4.14", "cc", "cubic", CUBIC_414
)
PIE_510 = with_file("5.10's own PIE, with the values of 4.14", "5.10's PIE", "qdisc", PIE, PIE)
PIE_RIGHT = with_file(
    "4.14's PIE on a CPU that takes no time, so its estimate of the rate is right",
    "PIE's rate right",
    "qdisc",
    PIE,
    "linux-4.14/pie414.c",
)
PACKET_TIME = Unknown(
    "packets take time: client and access point need 1 µs of their CPUs for each packet, an assumption, and PIE is that"
    " of 5.10",
    "1 µs a packet",
    replace(TESTBED, only={**TESTBED.only, "scenario": CPU}, instead={**FILES, ("qdisc", PIE): PIE}),
)
OLD_CCS = (YEAH_510, BBR_510)
OLD_QDISCS = (PIE_510, PIE_RIGHT)
OLD_RECOVERY = Unknown(
    "losses found by duplicate ACKs alone (`tcp_recovery` 0), and ACKs that are not compressed; 4.14 had both"
    " methods and no compression",
    "duplicate ACKs",
    replace(TESTBED, only={"name": "rrul_be", RECOVERY: 0}),
)
WITHOUT_GRO = Unknown(
    "whether the access point's Ethernet merges segments (GRO): its qdisc counts skbs",
    "AP without GRO",
    replace(TESTBED, only={"gro": False}),
)


def candles(id: str, title: str, *claims: Claim, layout: Layout, needs: tuple[str, ...] = (),
            unknowns: tuple[Unknown, ...] = (), note: str = "") -> PaperFigure:  # fmt: skip
    """Return a figure, whose claims are numbered."""
    numbered = tuple(replace(entry, id=f"{id}.{number}") for number, entry in enumerate(claims, 1))
    return PaperFigure(id, title, "candles", numbered, layout, needs, TESTBED, (STATISTIC, *unknowns), note)


def over(axis: str, **more: object) -> Layout:
    """Return the layout of goodput and ping over an axis."""
    return Layout(axis, (), quantities=("goodput", "ping"), where=tuple(more.items()))


def both_ways(axis: str) -> Layout:
    """Return the layout of goodput in both directions and ping over an axis."""
    return Layout(axis, (), quantities=("ways", "ping"))


def _each(ccs: tuple[str, ...]) -> list[Setting]:
    return [{"cc": cc} for cc in ccs]


def _qdiscs(*names: str) -> list[Setting]:
    return [{"qdisc": PIE if name == "pie" else name} for name in names]


SMART = _qdiscs("codel", "sfq", "fq", "fq_codel")
FIFO, PFIFO, OF_PIE = _qdiscs("pfifo", "pfifo_fast", "pie")

FIGURES = (
    candles(
        "B-3",
        "One upload: ten congestion controls",
        claim("goodput near 100 Mbit/s for all but BBR and New Vegas", *[near(UP, 100, cc=cc) for cc in WINDOWS[:-1]]),
        claim("BBR 50 Mbit/s", near(UP, 50, cc="bbr")),
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
        claim("YeAH 25 ms, and the full goodput", near(PING, 25, cc="yeah"), near(UP, 100, cc="yeah")),
        layout=over("cc"),
        unknowns=(*OLD_CCS, BBR_QUANTUM, CUBIC_OLD),
    ),
    candles(
        "B-4",
        "Four uploads: ten congestion controls",
        claim(
            "Cubic, HighSpeed, Hybla, Illinois, New Reno, Scalable above 100 ms",
            *[above(PING, 100, cc=cc) for cc in LOSS_BASED],
            tolerance="100 ms, 10 % for the reading",
            cause="Hybla is on the edge of the bound, and above it in the median",
        ),
        claim(
            'Westwood "only" 80 ms',
            near(PING, 80, cc="westwood"),
        ),
        claim("YeAH almost 60 ms", near(PING, 60, cc="yeah")),
        claim(
            "of the window-based, YeAH and then Westwood are the lowest",
            *[more(PING, PING, {"cc": cc}, {"cc": "westwood"}) for cc in LOSS_BASED],
            more(PING, PING, {"cc": "westwood"}, {"cc": "yeah"}),
            tolerance=BEYOND,
        ),
        claim("New Vegas 10 ms", near(PING, 10, cc="nv")),
        claim(
            "all but BBR saturate, New Vegas too",
            *[near(UP, 100, cc=cc) for cc in (*WINDOWS, "nv")],
            *[more(UP, UP, {"cc": cc}, {"cc": "bbr"}) for cc in (*WINDOWS, "nv")],
            tolerance=f"within 20 % of 100 Mbit/s, and above BBR {BEYOND}",
        ),
        claim("BBR about 5 ms at 75 Mbit/s", near(PING, 5, cc="bbr"), near(UP, 75, cc="bbr")),
        claim(
            "every window-based latency rises from Fig. 3",
            *[more(PING, PING, setting, setting, of="B-3") for setting in _each(WINDOWS)],
            tolerance=BEYOND,
        ),
        claim(
            "BBR's goodput rises from Fig. 3", more(UP, UP, {"cc": "bbr"}, {"cc": "bbr"}, of="B-3"), tolerance=BEYOND
        ),
        layout=over("cc"),
        needs=("B-3",),
        unknowns=(*OLD_CCS, BBR_QUANTUM, CUBIC_OLD),
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
            cause="whether the flows are marked: if they are, BBR of 4.14 is in its range (column *marked*)",
        ),
        claim(
            "Cubic is the worst",
            *[more(PING, PING, {"cc": "cubic"}, {"cc": cc}) for cc in EVERY if cc != "cubic"],
            tolerance=BEYOND,
            cause=f"unknown; {ATTEMPTS}",
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
            cause="unknown; the direction depends on which queue loses packets: a drop in the client's own qdisc only"
            " lowers cwnd, one at the access point costs a retransmission. 4.14 repaired losses by two methods; neither"
            " of them alone gives the paper's direction (column *duplicate ACKs*)",
        ),
        claim("BBR: down above up", more(DOWN, UP, {"cc": "bbr"}), tolerance=BEYOND),
        claim(
            "the latency is higher than with four uploads for all",
            *[more(PING, PING, setting, setting, of="B-4") for setting in _each(EVERY)],
            tolerance=BEYOND,
        ),
        layout=both_ways("cc"),
        needs=("B-4",),
        unknowns=(MARKED, *OLD_CCS, CUBIC_OLD, OLD_RECOVERY),
    ),
    candles(
        "B-6",
        "One download: seven qdiscs, FIFO by skbs and by bytes",
        claim("CoDel, SFQ, FQ and FQ-CoDel hold 25 ms", *[near(PING, 25, **setting) for setting in SMART]),
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
            excluded="with FIFO as pfifo both hold txqueuelen packets, 1,000: `pfifo_init` and `pfifo_fast_init`",
        ),
        layout=over("qdisc"),
        unknowns=(OF_BYTES, WITHOUT_GRO, *OLD_QDISCS, PACKET_TIME),
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
            cause=f"unknown; {ATTEMPTS}",
        ),
        claim(
            "the latency of PIE and PFIFO suffers from the three flows more",
            *[more(PING, PING, setting, setting, of="B-6") for setting in (OF_PIE, PFIFO)],
            tolerance=BEYOND,
            cause="the access point's GRO: its qdisc counts skbs, and those of four flows hold fewer segments. The"
            " column *AP without GRO* is without it",
        ),
        claim(
            "that of the others is stable",
            *[same(PING, setting, setting, of="B-6") for setting in (FIFO, *SMART)],
            tolerance=SAME,
            cause=f"of FIFO GRO, as in B-7.2; unknown for CoDel; {ATTEMPTS}",
        ),
        layout=over("qdisc"),
        needs=("B-6",),
        unknowns=(OF_BYTES, WITHOUT_GRO, *OLD_QDISCS),
    ),
    candles(
        "B-8",
        "One upload: seven qdiscs, FIFO by skbs and by bytes",
        claim("PFIFO, FIFO and PIE are the same", same(PING, PFIFO, FIFO), same(PING, OF_PIE, FIFO), tolerance=SAME),
        claim(
            "PFIFO and FIFO are at 70 ms",
            *[near(PING, 70, **setting) for setting in (PFIFO, FIFO)],
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
        claim(
            "FQ-CoDel has the best results of the qdiscs",
            least(PING, "qdisc", {"qdisc": "fq_codel"}),
            tolerance=BEYOND,
            excluded="the paper's Fig. 8, where FQ is better than all the others",
        ),
        layout=over("qdisc"),
        unknowns=(OF_BYTES, *OLD_QDISCS, PACKET_TIME),
    ),
)
