# SPDX-License-Identifier: Apache-2.0
"""Traps of hosts: offloads that are off, socket buffers below what the path holds, receivers that hold senders back."""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import Warning
from hourglass.results.lint.subject import Subject, ms_text, rate_text, size_text

LIMITED_SHARE = 0.1
"""Share of a flow's busy time from which a limit counts as its bottleneck."""
OFFLOADS = ("tso", "gso", "gro", "checksum")
NAMED = 3


def offloads_off(subject: Subject) -> Iterator[Warning]:
    """Without offloads every skb is one segment: autosizing, BQL, packet limits and GRO all act differently."""
    if subject.scenario is None:
        return
    passed = {hop.origin for hop in subject.hops}
    off: dict[str, list[str]] = {}
    for index, link in enumerate(subject.scenario.testbed.link):
        for name in OFFLOADS if f"testbed.link.{index}" in passed else ():
            if getattr(link, name) is False:
                off.setdefault(name, []).append(str(index))
    if off:
        text = "; ".join(f"{name} off on link {', '.join(where)}" for name, where in off.items())
        yield Warning(
            id="offloads-off",
            text=f"{text}: skbs are smaller than on most hosts, which changes TSO autosizing, TCP Small Queues, BQL and"
            " limits in packets",
            remedy="leave offloads on (their default) unless they are the question",
        )


def buffer_below_bdp(subject: Subject) -> Iterator[Warning]:
    """A socket buffer whose maximum, shared by the flows of a way, does not hold the bandwidth-delay product.

    A buffer counts skbs with their overhead: about half of it is payload (tcp_adv_win_scale 1 says so
    of windows).
    """
    if subject.scenario is None:
        return
    for way in subject.ways:
        bdp = subject.bdp_bytes(way)
        for node, name, what in (
            (way.sender, "net.ipv4.tcp_wmem", "send"),
            (way.receiver, "net.ipv4.tcp_rmem", "receive"),
        ):
            words = subject.scenario.stack.of(node).sysctl.get(name, "").split()
            if bdp is None or len(words) != 3 or not words[2].isdecimal():
                continue
            held = int(words[2]) // 2 * way.flows
            if held < bdp:
                yield Warning(
                    id=f"{what}-buffer-below-bdp",
                    text=f"{what} buffers at {node} ({name} at most {words[2]} B, {way.flows} flow"
                    f"{'s' if way.flows > 1 else ''}) hold about {size_text(held)} of payload, less than the path's"
                    f" bandwidth-delay product of {size_text(bdp)} ({rate_text(way.rate_bps)} x"
                    f" {ms_text(subject.base_rtt_ns or 0)})",
                    remedy=f"raise the maximum of {name}, or leave it at the kernel's own",
                )


def sndbuf_limited(subject: Subject) -> Iterator[Warning]:
    """The kernel's own word that the send buffer held a flow back (`tcpi_sndbuf_limited`)."""
    yield from _limited(
        subject,
        "sndbuf_limited",
        "sndbuf-limited",
        "limited by the send buffer",
        'raise the third value of "net.ipv4.tcp_wmem" (stack.sysctl)',
    )


def rwnd_limited(subject: Subject) -> Iterator[Warning]:
    """The kernel's own word that the receiver's window held a flow back (`tcpi_rwnd_limited`).

    Code takes no time in the guest: a reader is never too slow, so the receive buffer is too small.
    """
    yield from _limited(
        subject,
        "rwnd_limited",
        "rwnd-limited",
        "limited by the receiver's window, neither by the network nor by CPU",
        'raise the third value of "net.ipv4.tcp_rmem" (stack.sysctl) of the receiver',
    )


def _limited(subject: Subject, column: str, name: str, what: str, remedy: str) -> Iterator[Warning]:
    """One finding for all flows whose `column` grew by at least `LIMITED_SHARE` of their busy time in the window."""
    columns = ["t_ns", "stream", "sender", column, "busy_time"]
    rows = subject.run.tcp.select(columns).drop_nulls([column, "busy_time"])
    rows = rows.filter(pl.col("sender") & subject.window.holds()).sort("t_ns")
    grown = rows.group_by("stream").agg(
        *(
            pl.col(each).last().cast(pl.Float64) - pl.col(each).first().cast(pl.Float64)
            for each in (column, "busy_time")
        )
    )
    shares = {
        flow: limited / busy
        for flow, limited, busy in grown.sort("stream").iter_rows()
        if busy > 0 and limited / busy >= LIMITED_SHARE
    }
    if shares:
        listed = ", ".join(f"{flow} {share:.0%}" for flow, share in list(shares.items())[:NAMED])
        more = f" and {len(shares) - NAMED} more" if len(shares) > NAMED else ""
        yield Warning(id=name, text=f"{what}: {listed}{more} of the time under load", remedy=remedy)
