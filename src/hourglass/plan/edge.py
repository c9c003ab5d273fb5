# SPDX-License-Identifier: Apache-2.0
"""What shares and sells a link, in the wire driver's words: attributes of the direction away from a port."""

from collections.abc import Iterator

from hourglass.plan.network import Port
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.check_edge import frame_bytes, medium
from hourglass.scenario.edge import away


def edge(testbed: Testbed, stack: Stack, port: Port) -> Iterator[tuple[str, int, str]]:
    """(attribute, value, key of the link) of all that is asked for, buckets before their rates."""
    link, side = testbed.link[port.link], port.side
    if name := medium(link, port.link, side):
        yield "medium", _media(testbed).index(name), "duplex" if link.duplex == "half" else "medium"
    if policer := away(link.policer, side):
        yield "policer_burst", policer.burst, "policer"
        yield "policer_bps", policer.rate, "policer"
    if shaper := away(link.shaper, side):
        assert shaper.burst is not None, "spelled out with the other defaults"
        yield "shaper_burst", shaper.burst, "shaper"
        for name, value in (
            ("limit", shaper.limit),
            ("latency_ns", shaper.latency),
            ("ce_threshold_ns", shaper.ce_threshold),
            ("grant_cycle_ns", shaper.grant_cycle),
            ("grant_delay_ns", shaper.grant_delay),
        ):
            if value is not None:
                yield f"shaper_{name}", value, "shaper"
        if shaper.peak is not None:
            yield "shaper_mtu", frame_bytes(link, stack), "shaper"
            yield "shaper_peak_bps", shaper.peak, "shaper"
        yield "shaper_bps", shaper.rate, "shaper"


def _media(testbed: Testbed) -> list[str]:
    """The names of all media; a place in it is a medium's number."""
    names = (medium(link, index, side) for index, link in enumerate(testbed.link) for side in (0, 1))
    return list(dict.fromkeys(name for name in names if name))
