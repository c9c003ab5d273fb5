# SPDX-License-Identifier: Apache-2.0
"""Attribute the changes of six years of kernels: the papers' bottlenecks on all kernels, and the causes.

A claim names a change. It holds if a figure differs between two kernels, and if a sysctl that undoes the change gives
the newer kernel the older kernel's figure.
"""

from dataclasses import replace

from papers.checks import BEYOND, claim, more
from papers.model import TCP, UP, Claim, Evidence, Layout, PaperFigure, Setting, spread

UNDONE = f"{BEYOND} between the kernels; after the undo, at most a tenth of the difference remains"
LEFT = 0.1


def change(
    sentence: str, column: str, older: str, newer: str, undone: str, *, falls: bool = False, **where: object
) -> Claim:
    """Return the claim that a figure of the newer kernel is above the older's (`falls`: below), and equal to it once
    the sysctl `undone` is set."""
    before: Setting = where | {"kernel": older, "sysctl": ""}
    after, reverted = where | {"kernel": newer, "sysctl": ""}, where | {"kernel": newer, "sysctl": undone}
    moved = more(column, column, *((before, after) if falls else (after, before)))

    def is_undone(e: Evidence) -> tuple[bool, str, Setting]:
        a, b, c = (e.value(column, **setting) for setting in (before, after, reverted))
        return abs(c - a) <= max(LEFT * abs(b - a), spread(e.each(column, **before))), f"undone {c:.3g}", reverted

    return claim(sentence, moved, is_undone, tolerance=UNDONE)


def figure(id: str, title: str, note: str, *claims: Claim) -> PaperFigure:
    """Return a change, whose claims are numbered."""
    numbered = tuple(replace(entry, id=f"{id}.{number}") for number, entry in enumerate(claims, 1))
    return PaperFigure(id, title, "table", numbered, note=note)


TSO_LOG = "net.ipv4.tcp_tso_rtt_log=0"
RMEM = "net.ipv4.tcp_rmem=4096 131072 6291456"
LINEAR = "net.ipv4.tcp_syn_linear_timeouts=0"
IN_HOST = {"L10M": "10 Mbit/s", "L100M": "100 Mbit/s", "LR1000M": "1 Gbit/s"}

FIGURES = (
    PaperFigure(
        "kernels-all",
        "The papers' bottlenecks on all kernels",
        "candles",
        layout=Layout(groups="scenario", series=("kernel", "tsq"), panel="cc"),
    ),
    PaperFigure("kernels-ax", "802.11ax on all kernels", "table", layout=Layout(series=("kernel",))),
    figure(
        "kernels-tso",
        "5.10 to 6.1: skbs of short paths are larger",
        "Before 5.18 an skb held the data of 1 ms. Since 5.18 (commit 65466904b015, *tcp: adjust TSO packet sizes "
        "based on min_rtt*) `tcp_tso_autosize()` adds `gso_max_size >> (min_rtt >> tcp_tso_rtt_log)`. If the "
        "smallest RTT is below 0.5 ms, this is nearly 64 KB at any rate. At 10 Mbit/s one such skb takes 52 ms on "
        "the line, and TCP Small Queues permit two of them in the host for each flow. `net.ipv4.tcp_tso_rtt_log=0` "
        "undoes the change.",
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
        "`tcp_wmem` limits the memory of a socket's skbs (`truesize`) to 4 MB. The fewer segments an skb has, the "
        "larger is its share of overhead. With the larger skbs of `tcp_tso_rtt_log` (`kernels-tso`), more data "
        "therefore waits if only the buffer limits it.",
        *(
            change(f"no TSQ, {IN_HOST[name]}: a longer RTT", TCP, "5.10", "6.1", TSO_LOG, scenario=name)
            for name in ("L10M", "L100M")
        ),
    ),
    figure(
        "kernels-rmem",
        "6.12 to 7.3: a receive buffer of 32 MB",
        "A receive buffer grows to 32 MB instead of 6 MB (6.16, commit 572be9bf9d0d, *tcp: increase tcp_rmem[2] to "
        "32 MB*; `tcp_init()` in net/ipv4/tcp.c). One flow then fills 1 Gbit/s and 100 ms, if its sender's buffer "
        "is large enough. The default send buffer of 4 MB is too small. `net.ipv4.tcp_rmem` undoes the change. "
        "From 6.1 to 6.12 the flow's rate rose from 229 to 295 Mbit/s. The cause is a change of 6.6 (commit "
        "dfa2f0483360, *tcp: get rid of sysctl_tcp_adv_win_scale*). Before it, the window was half of the buffer. "
        "Since then, it is the share that payload had of the buffer's memory. No sysctl undoes this, but a patch "
        "of one line does: it leaves `scaling_ratio` at `TCP_DEFAULT_SCALING_RATIO` in `tcp_measure_rcv_mss()`. "
        "With the patch 6.12 has 229 Mbit/s again (`hourglass compare papers/studies/testbeds/long.toml --vary "
        "kernel=6.12,6.12+FILE.patch`).",
        change("1 Gbit/s and 100 ms: one flow carries more", UP, "6.12", "7.3", RMEM),
    ),
    figure(
        "kernels-syn",
        "6.1 to 6.12: a lost SYN is retransmitted every second",
        "Since 6.5 the first four timeouts of a SYN do not double (`tcp_retransmit_timer()` in "
        "net/ipv4/tcp_timer.c). SYNs are sent after 1, 2, 3 and 4 s instead of 1, 3 and 7 s. "
        "`net.ipv4.tcp_syn_linear_timeouts=0` undoes the change.",
        change("a path that works again 3.5 s after the first SYN carries more", UP, "6.1", "6.12", LINEAR),
    ),
)  # fmt: skip
