# SPDX-License-Identifier: Apache-2.0
"""What is recorded: sampling intervals, of which packets the layer times are kept, captures.

`measure.packets` is a number of packets per second; the plan says "one in N". N is chosen for the most that the path
between client and server can carry: frames of 1,514 bytes at the rate of the narrowest cable or shaper, on the faster
of the two ways. A trace that changes a cable's rate is not looked at.
"""

from hourglass.plan.model import Capture, Sampling
from hourglass.plan.network import Network
from hourglass.scenario import Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.check import capture_file

FRAME_BITS = 1514 * 8


def sampling(scenario: Scenario, network: Network) -> Sampling:
    """The intervals and "one packet in N"."""
    measure = scenario.measure
    return Sampling(tcp_ns=measure.tcp, device_ns=measure.devices, packets=one_in(scenario, network))


def one_in(scenario: Scenario, network: Network) -> int:
    """N of "the layer times of one packet in N"; 1 = all, 0 = none."""
    wanted = scenario.measure.packets
    if wanted == "all":
        return 1
    assert isinstance(wanted, int)
    if wanted == 0:
        return 0
    return max(1, -(-path_bps(scenario, network) // (FRAME_BITS * wanted)))


def path_bps(scenario: Scenario, network: Network) -> int:
    """What the path between client and server carries, bit/s: the narrowest device's rate, of the faster way."""
    test, testbed = scenario.test, scenario.testbed
    shapers = {str(shaper.at): shaper.rate for shaper in testbed.shaper}
    arrivals = network.path(test.client, test.server)
    there = [network.peer(port) for port in arrivals]

    def narrowest(ways: list[tuple[int, int, str]]) -> int:
        return min(
            min(testbed.link[link].rate[side], shapers.get(device, testbed.link[link].rate[side]))
            for link, side, device in ways
        )

    return max(narrowest([(p.link, p.side, f"{p.node}:{p.device}") for p in ports]) for ports in (there, arrivals))


def captures(scenario: Scenario, on_wire: bool) -> list[Capture]:
    """One file per captured device. Raises InputError where there is no wire driver."""
    places = scenario.capture.pcap
    if places and not on_wire:
        raise refusal("capture.pcap", [str(one) for one in places], "only the wire driver captures, and here is none")
    return [
        Capture(node=one.node, device=one.device, file=capture_file(one), snaplen=scenario.capture.snaplen)
        for one in places
    ]
