# SPDX-License-Identifier: Apache-2.0
"""What is recorded: sampling intervals, of which packets the layer times are kept, captures.

`measure.packets` is a number of packets per second; the plan says "one in N". N is chosen for the most that the path
between client and server can carry: frames of 1,514 bytes at the rate of the narrowest cable, radio (its PHY rate) or
shaper, on the faster of the two ways. A trace that changes a cable's rate is not looked at.
"""

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Capture, Path, Sampling
from hourglass.scenario import Measure
from hourglass.scenario.blame import refusal
from hourglass.scenario.check import capture_file
from hourglass.scenario.model import Capture as Wanted
from hourglass.scenario.units import NS_PER_S

FRAME_BITS = 1514 * 8
TCP_NS = 10**7
"""Interval of the samples of sockets that are asked for by nobody."""
FLOWS = 64
"""With so many flows samples are as frequent as with one."""


def sampling(measure: Measure, step_s: float, path: Path, flows: int, layers: bool) -> Sampling:
    """The intervals and "one packet in N" of the path. What has a row per flow is rarer when there are many of them.

    Without `layers` nobody looks at packets."""
    rarer = max(1, -(-flows // FLOWS))
    step_ns = int(step_s * NS_PER_S)
    return Sampling(
        tcp_ns=min(rarer * TCP_NS, step_ns) if measure.tcp is None else measure.tcp,
        device_ns=measure.devices,
        totals_ns=rarer * measure.devices if layers else 0,
        packets=one_in(measure.packets, path_bps(path)) if layers else 0,
    )


def one_in(wanted: int | str, rate_bps: int) -> int:
    """N of "the layer times of one packet in N" for `wanted` packets a second; 1 = all, 0 = none."""
    if wanted == "all":
        return 1
    assert isinstance(wanted, int)
    return max(1, -(-rate_bps // (FRAME_BITS * wanted))) if wanted else 0


def path_bps(path: Path) -> int:
    """What the path carries, bit/s: the narrowest medium or shaper, of the faster way. Qdiscs' own rates are not
    looked at: some are of each flow."""
    return max(min(min(hop.line_bps, hop.shaper_bps or hop.line_bps) for hop in way) for way in (path.there, path.back))


def captures(wanted: Wanted, able: Capabilities) -> list[Capture]:
    """One file per captured device. Raises InputError where frames cannot be seen."""
    places = wanted.pcap
    if places and not able.captures:
        raise refusal("capture.pcap", [str(one) for one in places], "this engine cannot capture frames")
    return [Capture(node=one.node, device=one.device, file=capture_file(one), snaplen=wanted.snaplen) for one in places]
