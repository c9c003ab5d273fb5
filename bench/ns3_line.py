# SPDX-License-Identifier: Apache-2.0
"""Client, router, server in ns-3: `python ns3_line.py RATE_BPS FLOWS SECONDS...`, run where `ns3` is installed.

The topology, flows and buffers of `bench.cases.line`: the first cable is the bottleneck, both have 5 ms, CUBIC with
1448-byte segments, pfifo_fast above every device. Prints per length: wall seconds of the simulation, Mbit/s received.
"""

import sys
import time
from typing import Any

from ns import ns

START_S = 0.2


def simulate(rate_bps: int, flows: int, length_s: float) -> tuple[float, float]:
    """One run: (wall seconds from its first event to its last, Mbit/s received by the applications)."""
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpCubic"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
    ns.Config.SetDefault("ns3::TcpSocket::SndBufSize", ns.UintegerValue(4 << 20))
    ns.Config.SetDefault("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(6 << 20))
    nodes = ns.NodeContainer()
    nodes.Create(3)
    cables = [cable(nodes, 0, 1, f"{rate_bps}bps"), cable(nodes, 1, 2, "1Gbps")]
    ns.InternetStackHelper().Install(nodes)
    queues = ns.TrafficControlHelper()
    queues.SetRootQueueDisc("ns3::PfifoFastQueueDisc")
    addresses = ns.Ipv4AddressHelper()
    ends = []
    for number, devices in enumerate(cables):
        queues.Install(devices)
        addresses.SetBase(ns.Ipv4Address(f"10.0.{number}.0"), ns.Ipv4Mask("255.255.255.0"))
        ends.append(addresses.Assign(devices))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    sinks = [flow(nodes, ends[1].GetAddress(1), 5000 + number) for number in range(flows)]
    ns.Simulator.Stop(ns.Seconds(START_S + length_s))
    start = time.monotonic()
    ns.Simulator.Run()
    wall_s = time.monotonic() - start
    received = sum(sink.Get(0).__deref__().GetTotalRx() for sink in sinks)
    ns.Simulator.Destroy()
    return wall_s, received * 8 / length_s / 1e6


def cable(nodes: Any, a: int, b: int, rate: str) -> Any:
    """The two devices of a new cable."""
    helper = ns.PointToPointHelper()
    helper.SetChannelAttribute("Delay", ns.StringValue("5ms"))
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    ends = ns.NodeContainer()
    ends.Add(nodes.Get(a))
    ends.Add(nodes.Get(b))
    return helper.Install(ends)


def flow(nodes: Any, address: Any, port: int) -> Any:
    """A bulk flow from the first node to the last; its sink."""
    to = ns.InetSocketAddress(address, port).ConvertTo()
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", to).Install(nodes.Get(2))
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", to)
    source.SetAttribute("MaxBytes", ns.UintegerValue(0))
    source.Install(nodes.Get(0)).Start(ns.Seconds(START_S))
    return sink


if __name__ == "__main__":
    for length in sys.argv[3:]:
        print(*simulate(int(sys.argv[1]), int(sys.argv[2]), float(length)))
