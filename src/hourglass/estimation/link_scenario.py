# SPDX-License-Identifier: Apache-2.0
"""Write an estimate as a scenario: the bottleneck is HTB at a router, with a queue of the estimated size.

The reverse direction has the same rate and no loss, because one direction's data say little about it. Cross traffic is
a UDP stream of constant rate through the same queue.
"""

import json
from pathlib import Path

from hourglass.estimation.link_estimate import LinkEstimate, LinkQuantity
from hourglass.visible import visible

OF_CABLE = 1514 / 1538
"""HTB does not count preamble, FCS and gap."""
DATAGRAM, DATAGRAM_FRAME = 1200, 1266
LEAST_QUEUE = 3028
NAME_MAX = 100
"""The number of letters of a file's name in the description, which is a line."""


def scenario_text(estimate: LinkEstimate) -> str:
    """Return the scenario as TOML."""
    rate = estimate.rate_mbps.value or 0.0
    kbit = max(1, round(rate * 1000 * OF_CABLE))
    half_us = round((estimate.base_rtt_ms.value or 0.0) * 500)
    limit = max(LEAST_QUEUE, round((estimate.buffer_kb.value or 0.0) * 1000))
    loss = f"{estimate.random_loss_percent.value or 0:.3f}"
    name = " ".join(visible(Path(estimate.source).name).split())[:NAME_MAX]
    lines = [
        f"description = {json.dumps(f'The link that {name} shows', ensure_ascii=False)}",
        *_section("testbed.node", 'name = "client"'),
        *_section("testbed.node", 'name = "router"', 'role = "router"'),
        *_section("testbed.node", 'name = "server"'),
        *_section("testbed.link", 'ends = ["client:eth0", "router:lan"]'),
        *_section(
            "testbed.link", 'ends = ["router:wan", "server:eth0"]',
            f'delay = "{half_us}us"{_comment("base RTT", "ms", estimate.base_rtt_ms)}',
            f'loss = ["{loss}%", "0%"]{_comment("random loss", "%", estimate.random_loss_percent)}',
        ),
        *_section(
            "testbed.shaper", 'at = "router:wan"',
            f'rate = "{kbit}kbit"{_comment("rate on a cable", "Mbit/s", estimate.rate_mbps)}',
        ),
        *_section("testbed.shaper", 'at = "server:eth0"', f'rate = "{kbit}kbit"'),
        "", "[stack.router.device.wan]",
        f'qdisc = "bfifo limit {limit}"{_comment("buffer", "kB", estimate.buffer_kb)}',
        "", "[test]", 'name = "tcp_nup"', "upload_streams = 1", "length = 30",
    ]  # fmt: skip
    if estimate.cross_mbps.value:
        cross = round(estimate.cross_mbps.value * 1000 * DATAGRAM / DATAGRAM_FRAME)
        lines += _section(
            "test.datagrams", f'rate = "{cross}kbit"{_comment("cross traffic", "Mbit/s", estimate.cross_mbps)}',
            f"size = {DATAGRAM}",
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _section(name: str, *lines: str) -> list[str]:
    return ["", f"[[{name}]]", *lines]


def _comment(name: str, unit: str, quantity: LinkQuantity) -> str:
    between = f" {quantity.interval[0]:g} to {quantity.interval[1]:g} {unit}" if quantity.interval else ""
    remark = ", ".join(filter(None, (between.strip(), quantity.remark)))
    return f"  # {name}: {remark}" if remark else ""
