# SPDX-License-Identifier: Apache-2.0
"""Simulate a client, a router and a server in ns-3: `python ns3_line.py RATE_BPS FLOWS SECONDS...`.

It needs Python's `ns3`. Topology, flows and buffers are those of `bench.cases.line`. The first cable is the
bottleneck, and each cable delays by 5 ms. The flows are CUBIC with segments of 1448 bytes; every device has
pfifo_fast. For each length in SECONDS, the program prints the wall seconds of the simulation, and the Mbit/s received.
"""

import sys
import time
from typing import Any

from ns import ns

START_S = 0.2


def simulate(rate_bps: int, flows: int, length_s: float) -> tuple[float, float]:
    """Run one simulation. Return its wall seconds, and the Mbit/s that the applications received."""
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpCubic"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
    ns.Config.SetDefault("ns3::TcpSocket::SndBufSize", ns.UintegerValue(4 << 20))
    ns.Config.SetDefault("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(6 << 20))
    nodes = ns.NodeContainer()
    nodes.Create(3)
    cables = [add_cable(nodes, 0, 1, f"{rate_bps}bps"), add_cable(nodes, 1, 2, "1Gbps")]
    ns.InternetStackHelper().Install(nodes)
    queues = ns.TrafficControlHelper()
    queues.SetRootQueueDisc("ns3::PfifoFastQueueDisc")
    addresses = ns.Ipv4AddressHelper()
    interfaces = []
    for number, devices in enumerate(cables):
        queues.Install(devices)
        addresses.SetBase(ns.Ipv4Address(f"10.0.{number}.0"), ns.Ipv4Mask("255.255.255.0"))
        interfaces.append(addresses.Assign(devices))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    sinks = [add_flow(nodes, interfaces[1].GetAddress(1), 5000 + number) for number in range(flows)]
    ns.Simulator.Stop(ns.Seconds(START_S + length_s))
    start_s = time.monotonic()
    ns.Simulator.Run()
    wall_s = time.monotonic() - start_s
    received = sum(sink.Get(0).__deref__().GetTotalRx() for sink in sinks)
    ns.Simulator.Destroy()
    return wall_s, received * 8 / length_s / 1e6


def add_cable(nodes: Any, first: int, second: int, rate: str) -> Any:
    """Connect two nodes by a cable. Return its two devices."""
    helper = ns.PointToPointHelper()
    helper.SetChannelAttribute("Delay", ns.StringValue("5ms"))
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    ends = ns.NodeContainer()
    ends.Add(nodes.Get(first))
    ends.Add(nodes.Get(second))
    return helper.Install(ends)


def add_flow(nodes: Any, address: Any, port: int) -> Any:
    """Add a bulk flow from the client to the server. Return its sink."""
    destination = ns.InetSocketAddress(address, port).ConvertTo()
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", destination).Install(nodes.Get(2))
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", destination)
    source.SetAttribute("MaxBytes", ns.UintegerValue(0))
    source.Install(nodes.Get(0)).Start(ns.Seconds(START_S))
    return sink


if __name__ == "__main__":
    for length in sys.argv[3:]:
        print(*simulate(int(sys.argv[1]), int(sys.argv[2]), float(length)))
