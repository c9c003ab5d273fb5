# SPDX-License-Identifier: Apache-2.0
"""Traps of hosts: offloads that are off, socket buffers below what the path holds, receivers that hold senders back."""

from collections.abc import Iterator

import polars as pl

from hourglass.results.lint.evidence import Evidence, Finding, ms_text, rate_text, size_text

LIMITED_SHARE = 0.1
"""Share of a flow's busy time from which a limit counts as its bottleneck."""
OFFLOADS = ("tso", "gso", "gro", "checksum")
NAMED = 3


def offloads_off(evidence: Evidence) -> Iterator[Finding]:
    """Without offloads every skb is one segment: autosizing, BQL, packet limits and GRO all act differently."""
    if evidence.scenario is None:
        return
    links = evidence.scenario.testbed.link
    off: dict[str, list[int]] = {}
    for index in sorted({hop.link for hop in evidence.hops()}):
        for name in OFFLOADS:
            if getattr(links[index], name) is False:
                off.setdefault(name, []).append(index)
    if off:
        text = "; ".join(f"{name} off on link {', '.join(map(str, where))}" for name, where in off.items())
        yield Finding(
            "offloads-off",
            f"{text}: skbs are smaller than on most hosts, which changes TSO autosizing, TCP Small Queues, BQL and"
            " limits in packets",
            "leave offloads on (their default) unless they are the question",
        )


def buffer_below_bdp(evidence: Evidence) -> Iterator[Finding]:
    """A socket buffer whose maximum, shared by the flows of a way, does not hold the bandwidth-delay product.

    A buffer counts skbs with their overhead: about half of it is payload (tcp_adv_win_scale 1 says so
    of windows).
    """
    if evidence.scenario is None:
        return
    for way in evidence.ways:
        bdp = evidence.bdp_bytes(way)
        for node, name, what in (
            (way.sender, "net.ipv4.tcp_wmem", "send"),
            (way.receiver, "net.ipv4.tcp_rmem", "receive"),
        ):
            words = evidence.scenario.stack.of(node).sysctl.get(name, "").split()
            if bdp is None or len(words) != 3 or not words[2].isdecimal():
                continue
            held = int(words[2]) // 2 * way.flows
            if held < bdp:
                yield Finding(
                    f"{what}-buffer-below-bdp",
                    f"{what} buffers at {node} ({name} at most {words[2]} B, {way.flows} flow"
                    f"{'s' if way.flows > 1 else ''}) hold about {size_text(held)} of payload, less than the path's"
                    f" bandwidth-delay product of {size_text(bdp)} ({rate_text(way.bottleneck.rate_bps)} x"
                    f" {ms_text(evidence.base_rtt_ns or 0)})",
                    f"raise the maximum of {name}, or leave it at the kernel's own",
                )


def sndbuf_limited(evidence: Evidence) -> Iterator[Finding]:
    """The kernel's own word that the send buffer held a flow back (`tcpi_sndbuf_limited`)."""
    yield from _limited(
        evidence,
        "sndbuf_limited",
        "sndbuf-limited",
        "limited by the send buffer",
        'raise the third value of "net.ipv4.tcp_wmem" (stack.sysctl)',
    )


def rwnd_limited(evidence: Evidence) -> Iterator[Finding]:
    """The kernel's own word that the receiver's window held a flow back (`tcpi_rwnd_limited`).

    Code takes no time in the guest: a reader is never too slow, so the receive buffer is too small.
    """
    yield from _limited(
        evidence,
        "rwnd_limited",
        "rwnd-limited",
        "limited by the receiver's window, neither by the network nor by CPU",
        'raise the third value of "net.ipv4.tcp_rmem" (stack.sysctl) of the receiver',
    )


def _limited(evidence: Evidence, column: str, name: str, what: str, remedy: str) -> Iterator[Finding]:
    """One finding for all flows whose `column` grew by at least `LIMITED_SHARE` of their busy time in the window."""
    columns = ["t_ns", "stream", "sender", column, "busy_time"]
    rows = evidence.run.tcp.select(columns).drop_nulls([column, "busy_time"])
    rows = rows.filter(pl.col("sender") & evidence.window.holds()).sort("t_ns")
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
        yield Finding(name, f"{what}: {listed}{more} of the time under load", remedy)
