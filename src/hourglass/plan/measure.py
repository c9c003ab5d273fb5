# SPDX-License-Identifier: Apache-2.0
"""What is recorded: sampling intervals, of which packets the layer times are kept, captures.

`measure.packets` is a number of packets per second; the plan says "one in N". N is chosen for the most that the path
between client and server can carry: frames of 1,514 bytes at the rate of the narrowest cable, radio (its PHY rate) or
shaper, on the faster of the two ways. A trace that changes a cable's rate is not looked at.
"""

from hourglass.plan.model import Capture, Sampling
from hourglass.plan.network import Network, Port
from hourglass.scenario import Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.check import capture_file
from hourglass.scenario.units import NS_PER_S
from hourglass.scenario.wifi import radio_bps

FRAME_BITS = 1514 * 8
TCP_NS = 10**7
"""Interval of the samples of sockets that are asked for by nobody."""
FLOWS = 64
"""With so many flows samples are as frequent as with one."""


def sampling(scenario: Scenario, network: Network, flows: int) -> Sampling:
    """The intervals and "one packet in N". What has a row per flow is rarer when there are many of them."""
    measure = scenario.measure
    rarer = max(1, -(-flows // FLOWS))
    step_ns = int(scenario.test.step * NS_PER_S)
    tcp_ns = min(rarer * TCP_NS, step_ns) if measure.tcp is None else measure.tcp
    return Sampling(
        tcp_ns=tcp_ns,
        device_ns=measure.devices,
        totals_ns=rarer * measure.devices,
        packets=one_in(scenario, network),
    )


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
    nodes = [test.client, *(port.node for port in arrivals)]
    there = [_towards(network, node, port) for node, port in zip(nodes, arrivals, strict=False)]

    def rate(port: Port) -> int:
        if port.radio:
            return radio_bps(testbed.wifi[port.link - len(network.ports)])
        return testbed.link[port.link].rate[port.side]

    def narrowest(ports: list[Port]) -> int:
        return min(min(rate(port), shapers.get(f"{port.node}:{port.device}", rate(port))) for port in ports)

    return max(narrowest(ports) for ports in (there, arrivals))


def _towards(network: Network, node: str, arrival: Port) -> Port:
    """The node's own port of the cable or cell by which a packet arrives at `arrival`."""
    return next(port for port in network.others(arrival) if port.node == node)


def captures(scenario: Scenario, on_wire: bool) -> list[Capture]:
    """One file per captured device. Raises InputError where there is no wire driver."""
    places = scenario.capture.pcap
    if places and not on_wire:
        raise refusal("capture.pcap", [str(one) for one in places], "only the wire driver captures, and here is none")
    return [
        Capture(node=one.node, device=one.device, file=capture_file(one), snaplen=scenario.capture.snaplen)
        for one in places
    ]
