# SPDX-License-Identifier: Apache-2.0
"""Paper B: Grazia, "Towards 1 ms WLAN Latency" (2018, kernel 4.14), and the Wi-Fi figures of paper A.

Tolerances: "N Mbit/s" is within 20 %, "N ms" within a factor of 2, "fair" is a factor below 1.5 between up and down.
Run on the oldest kernel there is. Figures whose testbed this version lacks say so (`study.study`).
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf

import polars as pl

from hourglass.errors import HourglassError
from hourglass.papers.model import DOWN, PING, UP, Claim, Evidence, Figure, Finding
from hourglass.papers.samples import below_tcp, middle, senders

Where = dict[str, object]
Check = Callable[[Evidence], tuple[bool, str, Where]]
"""Whether it is so, what was found, and in which runs to look for the cause."""
MOST_SUBFRAMES = 32


def _name(where: Where) -> str:
    return " ".join(str(value) for value in where.values())


def near(column: str, value: float, **where: object) -> Check:
    """Within 20 % for rates, within a factor of 2 for times."""
    factor = 1.2 if column in (UP, DOWN) else 2
    return between(value / factor, value * factor, column, where)


def below(column: str, value: float, **where: object) -> Check:
    return between(-inf, value, column, where)


def above(column: str, value: float, **where: object) -> Check:
    return between(value, inf, column, where)


def between(low: float, high: float, column: str, where: Where) -> Check:
    def check(e: Evidence) -> tuple[bool, str, Where]:
        found = e.value(column, **where)
        return low <= found <= high, f"{_name(where)} {found:.3g}", where

    return check


def fair(**where: object) -> Check:
    def check(e: Evidence) -> tuple[bool, str, Where]:
        up, down = e.value(UP, **where), e.value(DOWN, **where)
        return max(up, down) < 1.5 * min(up, down), f"{_name(where)} {up:.3g} up {down:.3g} down", where

    return check


def more(column: str, than: str, one: Where, other: Where | None = None, by: float = 0) -> Check:
    """`column` of one setting is more than `than` of another (default: the same) by at least `by`."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        a, b = e.value(column, **one), e.value(than, **(other or one))
        return a > b + by, f"{_name(one)} {a:.3g}, {_name(other or one)} {b:.3g}", one

    return check


def rising(column: str, axis: str, **where: object) -> Check:
    """The last value of an axis has at least 1.2 times the first's, and no step falls by more than 5 %."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        found = [e.value(column, **{axis: value}, **where) for value in e.values(axis)]
        steps = all(later > 0.95 * sooner for sooner, later in pairwise(found))
        words = f"{_name(where)} {found[0]:.3g} to {found[-1]:.3g}"
        return steps and found[-1] > 1.2 * found[0], words, where | {axis: e.values(axis)[-1]}

    return check


def on_air(e: Evidence, where: Where) -> str:
    """What the records of one of the runs say of its sockets and its air."""
    try:
        run = e.runs(**where)[0]
        told = [below_tcp(run)]
    except (LookupError, HourglassError):
        return "no records"
    for node, radios in run.summary.wifi.items():
        for radio in radios.values():
            told.append(f"{node}: aggregates of {radio.subframes.mean or 0:.3g}, {radio.air_percent:.3g} % of the air")
    return ", ".join(told)


def bars(id: str, title: str, *claims: Claim) -> Figure:
    """A figure whose claims have its id and their places."""
    numbered = (replace(one, id=f"{id}.{place}") for place, one in enumerate(claims, 1))
    return Figure(id, title, "bars", tuple(numbered))


def claim(says: str, *checks: Check, tolerance: str = "rates 20 %, times a factor of 2") -> Claim:
    """It holds when all the checks do."""

    def judge(e: Evidence) -> Finding:
        found = [check(e) for check in checks]
        wrong = [words for good, words, _ in found if not good]
        causes = {_name(where): where for good, _, where in found if not good}
        how = [f"off: {'; '.join(wrong)}", *(f"{name}: {on_air(e, where)}" for name, where in causes.items())]
        return Finding(not wrong, "; ".join(words for _, words, _ in found), "; ".join(how) if wrong else "")

    return Claim("", says, tolerance, judge)


def _shift(e: Evidence) -> Finding:
    found = {}
    for adapter in e.values("scenario"):
        table = senders(e.runs(scenario=adapter)[0])
        if not table["tsq_shift"].drop_nulls().len():
            raise LookupError("this kernel does not tell sk_pacing_shift")
        found[adapter] = int(middle(table["tsq_shift"]))
    words = "; ".join(f"{adapter}: {shift}, 1/{2**shift} s of data" for adapter, shift in found.items())
    return Finding(set(found.values()) == {10}, words, "mac80211 sets it")


def _aggregates(e: Evidence) -> Finding:
    run = e.runs(scenario="wifi-ath9k")[0]
    most = max(radio.subframes.max or 0 for radio in run.summary.wifi["client"].values())
    return Finding(
        most < MOST_SUBFRAMES, f"the largest aggregate has {most} subframes", "mac80211's and ath9k's bound is 32"
    )


def _bql(e: Evidence) -> Finding:
    samples = e.runs(scenario="wifi-ath9k")[0].queues
    radios = samples.filter(pl.col("device").str.starts_with("wlan"))
    if radios.is_empty():
        raise LookupError("no queue samples of a Wi-Fi device")
    limit = int(radios["bql_limit"].fill_null(0).to_numpy().max())
    return Finding(limit > 0, f"BQL's limit of the Wi-Fi device: {limit}", "no mac80211 driver has BQL")


def _ccs(*names: str, but: tuple[str, ...] = ()) -> list[str]:
    every = ["bbr", "cubic", "highspeed", "hybla", "illinois", "nv", "reno", "scalable", "westwood", "yeah"]
    return [one for one in (names or every) if one not in but]


def _ratio_only_latency(e: Evidence) -> tuple[bool, str, Where]:
    rates, times = ([e.value(column, ca=ca, tsq="8ms") for ca in (120, 140)] for column in (UP, PING))
    words = f"at 8 ms: {rates[0]:.3g} to {rates[1]:.3g} Mbit/s, {times[0]:.3g} to {times[1]:.3g} ms"
    return rates[1] < 1.05 * rates[0] and times[1] > times[0], words, {"ca": 140, "tsq": "8ms"}


def _base(first: str, other: str, tsq: str) -> Check:
    def check(e: Evidence) -> tuple[bool, str, Where]:
        more, less = e.value(UP, delay=first, tsq=tsq), e.value(UP, delay=other, tsq=tsq)
        return more > less, f"TSQ {tsq}: {more:.3g} and {less:.3g} Mbit/s", {"delay": other, "tsq": tsq}

    return check


DIFFERENCES = (
    "The paper ran Linux 4.14; this is 5.10, the oldest kernel here, with the settings that bring it closest: the",
    "pacing shift of radios is 10 (mac80211 sets 7 since 4.20), an skb holds one segment (4.14 did no GSO for a device",
    "without scatter-gather), `tcp_limit_output_bytes` is 256 KiB. What stays different:",
    "",
    "* `tcp_limit_output_bytes` bounds only sockets that are not paced (since 5.0), so not BBR's.",
    "* An skb of one segment counts 2,728 bytes (truesize), in 4.14 4,352: 64 KiB are 24 segments here, 15 there.",
    "* BBR asks for two segments per skb whatever `tcp_min_tso_segs` is.",
    "* Pacing is by earliest departure time (4.20), acknowledgments of out-of-order data are compressed (4.18), losses",
    "  are found by RACK alone (4.18).",
    "* The adapter, its USB and the air are models ([their limits](../model.md)).",
)
"""What of the paper's testbed is not had: lines of its page."""

FIGURES = (
    Figure(
        "B-rules",
        "What is below TCP on Wi-Fi",
        "table",
        (
            Claim("D-4", "TSQ holds 1 ms of data on Wi-Fi too", "sk_pacing_shift is 10", _shift),
            Claim("D-6", "FQ-CoDel's 5 ms bound aggregates", f"fewer than {MOST_SUBFRAMES} subframes", _aggregates),
            Claim("D-7", "BQL is the driver's last queue limit", "the device has a BQL limit", _bql),
        ),
    ),
    bars(
        "A-8a",
        "Throughput and RTT on ath9k: TSQ size and pacing ratio",
        claim(
            "throughput and latency rise with TSQ's size",
            rising(UP, "tsq", ca=120),
            rising(PING, "tsq", ca=120),
            tolerance="1.2 times from 1 to 8 ms",
        ),
        claim(
            "they rise with the pacing ratio",
            rising(UP, "ca", tsq="1ms"),
            rising(PING, "ca", tsq="1ms"),
            tolerance="1.2 times from 120 to 140 %, TSQ 1 ms",
        ),
        claim(
            "beyond 4 ms a larger ratio adds latency only",
            _ratio_only_latency,
            tolerance="below 5 % of throughput at 8 ms",
        ),
    ),
    bars(
        "A-8b",
        "Throughput and RTT on ath9k: TSQ size and base RTT",
        claim("1 ms of base RTT gives more throughput than 10 ms", _base("1ms", "10ms", "1ms"), tolerance="more"),
        claim(
            "at 100 ms throughput is below optimal even with a relaxed TSQ",
            _base("1ms", "100ms", "8ms"),
            tolerance="less",
        ),
    ),
    bars(
        "B-3",
        "One upload: ten congestion controls",
        claim(
            "goodput near 100 Mbit/s for all but BBR and New Vegas",
            *[near(UP, 100, cc=cc) for cc in _ccs(but=("bbr", "nv"))],
        ),
        claim("BBR 50, New Vegas 70 Mbit/s", near(UP, 50, cc="bbr"), near(UP, 70, cc="nv")),
        claim("ping above 70 ms for most", *[above(PING, 70, cc=cc) for cc in _ccs(but=("bbr", "nv", "yeah"))]),
        claim(
            "BBR and New Vegas below 10 ms, YeAH 25",
            below(PING, 10, cc="bbr"),
            below(PING, 10, cc="nv"),
            near(PING, 25, cc="yeah"),
        ),
    ),
    bars(
        "B-4",
        "Four uploads: ten congestion controls",
        claim(
            "Cubic, HighSpeed, Hybla, Illinois, New Reno, Scalable above 100 ms",
            *[above(PING, 100, cc=cc) for cc in _ccs("cubic", "highspeed", "hybla", "illinois", "reno", "scalable")],
        ),
        claim("Westwood 80, YeAH near 60 ms", near(PING, 80, cc="westwood"), near(PING, 60, cc="yeah")),
        claim("New Vegas 10 ms at full goodput", near(PING, 10, cc="nv"), near(UP, 100, cc="nv")),
        claim("BBR about 5 ms at 75 Mbit/s", near(PING, 5, cc="bbr"), near(UP, 75, cc="bbr")),
    ),
    bars(
        "B-5",
        "RRUL: ten congestion controls",
        claim(
            "Cubic 200 ms, BBR 25, New Vegas 40, YeAH 80",
            near(PING, 200, cc="cubic"),
            near(PING, 25, cc="bbr"),
            near(PING, 40, cc="nv"),
            near(PING, 80, cc="yeah"),
        ),
        claim("the others above 100 ms", *[above(PING, 100, cc=cc) for cc in _ccs(but=("cubic", "bbr", "nv", "yeah"))]),
        claim(
            "fair: Cubic, Hybla, New Vegas, Westwood, YeAH",
            *[fair(cc=cc) for cc in _ccs("cubic", "hybla", "nv", "westwood", "yeah")],
        ),
        claim(
            "HighSpeed, Illinois, New Reno, Scalable: up near 80, down below 20",
            *[
                check
                for cc in _ccs("highspeed", "illinois", "reno", "scalable")
                for check in (near(UP, 80, cc=cc), below(DOWN, 20, cc=cc))
            ],
        ),
        claim("BBR: down above up", more(DOWN, UP, {"cc": "bbr"}), tolerance="more"),
    ),
    bars(
        "B-6",
        "One download: seven qdiscs",
        claim(
            "CoDel, SFQ, FQ and FQ-CoDel hold 25 ms",
            *[near(PING, 25, qdisc=q) for q in ("codel", "sfq", "fq", "fq_codel")],
        ),
        claim(
            "FIFO, pfifo_fast and PIE are above that",
            *[above(PING, 50, qdisc=q) for q in ("pfifo", "pfifo_fast", "pie")],
        ),
    ),
    bars(
        "B-7",
        "Four downloads: seven qdiscs",
        claim(
            "CoDel, SFQ and FQ-CoDel have the best goodput",
            *[above(DOWN, 90, qdisc=q) for q in ("codel", "sfq", "fq_codel")],
            tolerance="90 Mbit/s or more",
        ),
        claim(
            "PIE and pfifo_fast degrade",
            above(PING, 50, qdisc="pie"),
            above(PING, 50, qdisc="pfifo_fast"),
            tolerance="50 ms or more",
        ),
    ),
    bars(
        "B-8",
        "One upload: seven qdiscs",
        claim(
            "pfifo_fast, FIFO and PIE near 70 ms", *[near(PING, 70, qdisc=q) for q in ("pfifo_fast", "pfifo", "pie")]
        ),
        claim("FQ is best: it paces CUBIC", below(PING, 25, qdisc="fq"), tolerance="at most 25 ms"),
    ),
    bars(
        "B-9",
        "One upload: TSQ's size",
        claim(
            "full goodput needs 128 KB or more",
            near(UP, 100, tsq="128KiB"),
            near(UP, 100, tsq="1MiB"),
            below(UP, 83, tsq="64KiB"),
        ),
        claim(
            "from 5 MB on the latency is flat at 70 ms",
            near(PING, 70, tsq="5MiB"),
            near(PING, 70, tsq="10MiB"),
            near(PING, 70, tsq="off"),
        ),
        claim(
            "64 KB has a lower latency than standard TSQ",
            more(PING, PING, {"tsq": "default"}, {"tsq": "64KiB"}),
            tolerance="lower",
        ),
    ),
    bars(
        "B-10",
        "Four uploads: TSQ's size",
        claim("standard TSQ: 5 ms at 75 Mbit/s", near(PING, 5, tsq="default"), near(UP, 75, tsq="default")),
        claim("64 KB saturates", near(UP, 100, tsq="64KiB")),
        claim("latency rises with the limit to 100 ms", near(PING, 100, tsq="off"), above(PING, 20, tsq="1MiB")),
    ),
    bars(
        "B-11",
        "RRUL: TSQ's size",
        claim("standard TSQ: near 25 ms, uploads starved", near(PING, 25, tsq="default"), below(UP, 25, tsq="default")),
        claim("static limits are fair", *[fair(tsq=size) for size in ("64KiB", "256KiB", "1MiB")]),
    ),
    bars(
        "B-12",
        "FQ-CoDel, one upload: five congestion controls",
        claim("BBR below 2 ms of round trip", below(PING, 2, cc="bbr", tsq="default"), tolerance="2 ms"),
    ),
    bars(
        "B-13",
        "FQ-CoDel, one upload, standard TSQ",
        claim(
            "YeAH 60 Mbit/s at 3 ms, Cubic 70 at 4, New Reno near 100 at 7",
            near(UP, 60, cc="yeah"),
            near(PING, 3, cc="yeah"),
            near(UP, 70, cc="cubic"),
            near(PING, 4, cc="cubic"),
            near(UP, 100, cc="reno"),
            near(PING, 7, cc="reno"),
        ),
        claim(
            "BBR and New Vegas have the lowest goodput",
            *[more(UP, UP, {"cc": cc}, {"cc": low}) for cc in ("cubic", "reno", "yeah") for low in ("bbr", "nv")],
            tolerance="lower than each of the others",
        ),
    ),
    bars(
        "B-14",
        "RRUL, FQ-CoDel: TSQ and 64 KB",
        claim("64 KB is fair", *[fair(cc=cc, tsq="64KiB") for cc in ("cubic", "nv", "reno", "yeah")]),
        claim("BBR with standard TSQ below 10 ms", below(PING, 10, cc="bbr", tsq="default"), tolerance="10 ms"),
        claim(
            "64 KB costs about 10 ms, but not of BBR",
            *[
                more(PING, PING, {"cc": cc, "tsq": "64KiB"}, {"cc": cc, "tsq": "default"}, by=5)
                for cc in ("cubic", "nv", "reno", "yeah")
            ],
            tolerance="5 ms or more",
        ),
    ),
)
