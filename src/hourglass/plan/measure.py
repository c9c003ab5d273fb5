# SPDX-License-Identifier: Apache-2.0
"""Recording: sampling intervals, the share of packets with layer times, captures.

`measure.packets` is a number of packets per second; the plan says "one in N". N follows from the most packets that the
path between client and server can carry. They are frames of 1,514 bytes at the rate of the slowest cable, radio (its
PHY rate) or shaper, in the faster direction. Traces that change a cable's rate are ignored.
"""

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Path, PlanCapture, Sampling
from hourglass.scenario import Measure
from hourglass.scenario.blame import refusal
from hourglass.scenario.check_scenario import capture_file
from hourglass.scenario.quantities import NS_PER_S
from hourglass.scenario.scenario_model import Capture as CaptureSettings

FRAME_BITS = 1514 * 8
TCP_NS = 10**7
"""Default interval of the samples of sockets."""
LOOPBACK_BPS = 10**10
"""The capacity of a path without hops, in order of magnitude."""
FLOWS = 64
"""Up to this many flows, the sampling interval is the default."""


def sampling(measure: Measure, step_s: float, path: Path, flows: int, layers: bool) -> Sampling:
    """Return the intervals and "one packet in N" of the path. Tables with a row per flow have longer intervals if there
    are many flows.

    Without `layers`, no packets are followed.
    """
    factor = max(1, -(-flows // FLOWS))
    step_ns = int(step_s * NS_PER_S)
    return Sampling(
        tcp_ns=min(factor * TCP_NS, step_ns) if measure.tcp is None else measure.tcp,
        device_ns=measure.devices,
        totals_ns=factor * measure.devices if layers else 0,
        packets=one_in(measure.packets, path_bps(path)) if layers else 0,
    )


def one_in(requested: int | str, rate_bps: int) -> int:
    """Return N of "the layer times of one packet in N" for `wanted` packets a second; 1 = all, 0 = none."""
    if requested == "all":
        return 1
    assert isinstance(requested, int)
    return max(1, -(-rate_bps // (FRAME_BITS * requested))) if requested else 0


def path_bps(path: Path) -> int:
    """Return the capacity of the path in bit/s: the narrowest medium or shaper, in the faster direction. Rates of
    qdiscs are ignored: some are per flow."""
    return max(
        min((min(hop.line_bps, hop.shaper_bps or hop.line_bps) for hop in hops), default=LOOPBACK_BPS)
        for hops in (path.there, path.back)
    )


def captures(requested: CaptureSettings, able: Capabilities) -> list[PlanCapture]:
    """Return one file per captured device. Raises InputError if frames cannot be captured."""
    devices = requested.pcap
    if devices and not able.captures:
        raise refusal(
            "capture.pcap", [str(device) for device in devices], "this engine cannot capture frames; remove capture"
        )
    return [
        PlanCapture(node=device.node, device=device.device, file=capture_file(device), snaplen=requested.snaplen)
        for device in devices
    ]
