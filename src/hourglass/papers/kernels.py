# SPDX-License-Identifier: Apache-2.0
"""What six years of kernels changed: the papers' bottlenecks on all kernels, and the causes of what differs.

A claim names a change. It holds when a figure moved between two kernels, and the newer one that is told not to make the
change (a sysctl) does what the older one does.
"""

from dataclasses import replace

from hourglass.papers.checks import BEYOND, claim, more
from hourglass.papers.model import TCP, UP, Claim, Evidence, Figure, Layout, Where, spread

UNDONE = f"{BEYOND} between the kernels; once undone, of that a tenth is left at most"
LEFT = 0.1


def change(
    says: str, column: str, older: str, newer: str, undone: str, *, falls: bool = False, **where: object
) -> Claim:
    """A figure of the newer kernel is above the older's (`falls`: below), and the older's with a sysctl `undone`."""
    before: Where = where | {"kernel": older, "sysctl": ""}
    after, told = where | {"kernel": newer, "sysctl": ""}, where | {"kernel": newer, "sysctl": undone}
    moved = more(column, column, *((before, after) if falls else (after, before)))

    def gone(e: Evidence) -> tuple[bool, str, Where]:
        a, b, c = (e.value(column, **one) for one in (before, after, told))
        return abs(c - a) <= max(LEFT * abs(b - a), spread(e.each(column, **before))), f"undone {c:.3g}", told

    return claim(says, moved, gone, tolerance=UNDONE)


def figure(id: str, title: str, note: str, *claims: Claim) -> Figure:
    """A change, whose claims have its id and their places."""
    numbered = tuple(replace(one, id=f"{id}.{place}") for place, one in enumerate(claims, 1))
    return Figure(id, title, "table", numbered, note=note)


TSO_LOG = "net.ipv4.tcp_tso_rtt_log=0"
RMEM = "net.ipv4.tcp_rmem=4096 131072 6291456"
LINEAR = "net.ipv4.tcp_syn_linear_timeouts=0"
IN_HOST = {"L10M": "10 Mbit/s", "L100M": "100 Mbit/s", "LR1000M": "1 Gbit/s"}

FIGURES = (
    Figure(
        "kernels-all",
        "The papers' bottlenecks on all kernels",
        "candles",
        layout=Layout(groups="scenario", series=("kernel", "tsq"), panel="cc"),
    ),
    Figure("kernels-ax", "802.11ax on all kernels", "table", layout=Layout(series=("kernel",))),
    figure(
        "kernels-tso",
        "5.10 to 6.1: skbs of short paths are larger",
        "`tcp_tso_autosize()` adds `gso_max_size >> (min_rtt >> tcp_tso_rtt_log)` to the 1 ms of data that an skb held"
        " (5.18, commit 65466904b015, *tcp: adjust TSO packet sizes based on min_rtt*): nearly 64 KB where the smallest"
        " RTT is below 0.5 ms, at any rate. At 10 Mbit/s that is 52 ms of line in one skb, and TCP Small Queues let"
        " each flow have two in the host. `net.ipv4.tcp_tso_rtt_log=0` undoes it.",
        *(
            change(f"queue in the host, {rate}, {cc}: a longer RTT", TCP, "5.10", "6.1", TSO_LOG, scenario=name, cc=cc)
            for name, rate in IN_HOST.items()
            for cc in ("cubic", "bbr")
        ),
        change("queue in the router, 10 Mbit/s, cubic: a shorter one", TCP, "5.10", "6.1", TSO_LOG,
               falls=True, scenario="R10M", cc="cubic"),
    ),
    figure(
        "kernels-sndbuf",
        "5.10 to 6.1: without TSQ a send buffer holds more",
        "`tcp_wmem` bounds the skbs of a socket by what they take of memory (`truesize`), 4 MB: the fewer segments an"
        " skb has, the more of that is overhead. So the larger skbs of `tcp_tso_rtt_log` (`kernels-tso`) let more wait"
        " where nothing but the buffer bounds it.",
        *(
            change(f"no TSQ, {IN_HOST[name]}: a longer RTT", TCP, "5.10", "6.1", TSO_LOG, scenario=name)
            for name in ("L10M", "L100M")
        ),
    ),
    figure(
        "kernels-rmem",
        "6.12 to 7.3: a receive buffer of 32 MB",
        "A receive buffer grows to 32 MB, where it was 6 MB (6.16, commit 572be9bf9d0d, *tcp: increase tcp_rmem[2] to "
        "32 MB*; `tcp_init()` in net/ipv4/tcp.c): one flow fills 1 Gbit/s and 100 ms, if its sender's buffer is large "
        "enough, which the default one of 4 MB is not. `net.ipv4.tcp_rmem` undoes it. From 6.1 to 6.12 the flow went "
        "from 229 to 295 Mbit/s: since 6.6 (commit dfa2f0483360, *tcp: get rid of sysctl_tcp_adv_win_scale*) a window "
        "is the share of the buffer that payload had of its memory, where it was half; no sysctl undoes that, but "
        "one line does: with `scaling_ratio` left at `TCP_DEFAULT_SCALING_RATIO` in `tcp_measure_rcv_mss()` 6.12 has "
        "229 again (`hourglass kernel ab 6.12 6.12+FILE.patch scenarios/papers/testbeds/long.toml`, five seeds).",
        change("1 Gbit/s and 100 ms: one flow carries more", UP, "6.12", "7.3", RMEM),
    ),
    figure(
        "kernels-syn",
        "6.1 to 6.12: a lost SYN is sent again each second",
        "The first four timeouts of a SYN do not double (6.5, `tcp_retransmit_timer()` in net/ipv4/tcp_timer.c): SYNs"
        " leave after 1, 2, 3 and 4 s, where it was 1, 3 and 7. `net.ipv4.tcp_syn_linear_timeouts=0` undoes it.",
        change("a path that works again 3.5 s after the first SYN carries more", UP, "6.1", "6.12", LINEAR),
    ),
)  # fmt: skip
