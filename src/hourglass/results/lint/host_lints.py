# SPDX-License-Identifier: Apache-2.0
"""Pitfalls of hosts: NICs that are slower than the line, disabled offloads, socket buffers below the path's BDP,
receivers that limit senders."""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import RunWarning
from hourglass.results.lint.context import LintContext, ms_text, rate_text, size_text
from hourglass.scenario import check_lan, nics

LIMITED_SHARE = 0.1
"""The share of a flow's busy time from which a limit counts as its bottleneck."""
OFFLOADS = ("tso", "gso", "gro", "checksum")
NAMED = 3


def nic_below_rate(context: LintContext) -> Iterator[RunWarning]:
    """A chip on a line that it cannot have: its interrupt moderation, rings and memory are of a slower line."""
    testbed = context.scenario.testbed if context.scenario else None
    for index, link in enumerate(testbed.link if testbed else ()):
        rate_bps, nic = max(link.rate), link.nic or nics.DEFAULT
        fit = check_lan.default_nic(link, context.switches)
        if rate_bps > nics.PROFILES[nic].rate_max and nic != fit:
            yield RunWarning(
                id="nic-below-rate",
                text=f"link {index} has {rate_text(rate_bps)} and the NIC {nic}, a chip of at most"
                f" {rate_text(nics.PROFILES[nic].rate_max)}: its interrupt moderation, rings and transmit memory"
                " decide the results",
                remedy=f'remove testbed.link.{index}.nic, for {fit}, or set nic = "{fit}"',
            )


def offloads_off(context: LintContext) -> Iterator[RunWarning]:
    """Without offloads every skb is one segment: autosizing, BQL, packet limits and GRO all behave differently. Between
    switches, frames are whole anyway."""
    if context.scenario is None:
        return
    passed = {hop.origin for hop in context.hops}
    off: dict[str, list[str]] = {}
    for index, link in enumerate(context.scenario.testbed.link):
        matters = f"testbed.link.{index}" in passed and not check_lan.joins_switches(link, context.switches)
        for name in OFFLOADS if matters else ():
            standard = nics.defaults(link.nic, link.mtu, {}, context.scenario.kernel) if link.nic else {}
            if getattr(link, name) is False and standard.get(name, True):
                off.setdefault(name, []).append(str(index))
    if off:
        text = "; ".join(f"{name} off on link {', '.join(where)}" for name, where in off.items())
        yield RunWarning(
            id="offloads-off",
            text=f"{text}: skbs are smaller than on most hosts, which changes TSO autosizing, TCP Small Queues,"
            " BQL and limits in packets",
            remedy="leave offloads on (the default) unless you test them",
        )


def buffer_below_bdp(context: LintContext) -> Iterator[RunWarning]:
    """A socket buffer whose maximum, shared by the flows of a path, is below the bandwidth-delay product.

    A buffer counts skbs with their overhead: about half of it is payload (as tcp_adv_win_scale 1 assumes for windows).
    """
    if context.scenario is None:
        return
    for flow_path in context.flow_paths:
        bdp = context.bdp_bytes(flow_path)
        for node, name, side in (
            (flow_path.sender, "net.ipv4.tcp_wmem", "send"),
            (flow_path.receiver, "net.ipv4.tcp_rmem", "receive"),
        ):
            limits = context.scenario.stack.of(node).sysctl.get(name, "").split()
            if bdp is None or len(limits) != 3 or not limits[2].isdecimal():
                continue
            capacity = int(limits[2]) // 2 * len(flow_path.flows)
            if capacity < bdp:
                yield RunWarning(
                    id=f"{side}-buffer-below-bdp",
                    text=f"{side} buffers at {node} ({name} at most {limits[2]} B, {len(flow_path.flows)} flow"
                    f"{'s' if len(flow_path.flows) > 1 else ''}) hold about {size_text(capacity)} of payload, less than"
                    f" the path's bandwidth-delay product of {size_text(bdp)} ({rate_text(flow_path.rate_bps)} x"
                    f" {ms_text(context.base_rtt_ns or 0)})",
                    remedy=f"raise the maximum of {name}, or remove the setting",
                )


def sndbuf_limited(context: LintContext) -> Iterator[RunWarning]:
    """The kernel's counter of times when the send buffer limited a flow (`tcpi_sndbuf_limited`)."""
    yield from _limited(
        context,
        "sndbuf_limited",
        "sndbuf-limited",
        "limited by the send buffer",
        'raise the third value of "net.ipv4.tcp_wmem" (stack.sysctl)',
    )


def rwnd_limited(context: LintContext) -> Iterator[RunWarning]:
    """The kernel's counter of times when the receiver's window limited a flow (`tcpi_rwnd_limited`).

    Code takes no time in the guest, so a reader is never too slow: the receive buffer is too small.
    """
    yield from _limited(
        context,
        "rwnd_limited",
        "rwnd-limited",
        "limited by the receiver's window, not by the network or the CPU",
        'raise the third value of "net.ipv4.tcp_rmem" (stack.sysctl) of the receiver',
    )


def _limited(context: LintContext, column: str, name: str, description: str, remedy: str) -> Iterator[RunWarning]:
    """Return one finding for all flows whose `column` grew by at least `LIMITED_SHARE` of their busy time in the
    window."""
    columns = ["t_ns", "stream", "sender", column, "busy_time"]
    rows = context.run.tcp.select(columns).drop_nulls([column, "busy_time"])
    rows = rows.filter(pl.col("sender") & context.window.contains()).sort("t_ns")
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
        yield RunWarning(id=name, text=f"{description}: {listed}{more} of the time under load", remedy=remedy)
