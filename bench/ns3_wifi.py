# SPDX-License-Identifier: Apache-2.0
"""Station, access point, server in ns-3: `python ns3_wifi.py FLOWS SECONDS...`, run where `ns3` is installed.

As the scenario `wifi-ath9k`: 802.11n at 20 MHz, two streams, MCS 15, short guard interval (144 Mbit/s), A-MPDUs up to
49 kB, a gigabit cable with 1 ms behind the access point, CUBIC uploads. Prints per length: wall seconds of the
simulation, Mbit/s received.
"""

import sys
import time
from typing import Any

from ns import ns

START_S = 0.5
"""The station has associated by then."""
AMPDU_BYTES = 32 * 1538


def simulate(flows: int, length_s: float) -> tuple[float, float]:
    """One run: (wall seconds from its first event to its last, Mbit/s received by the applications)."""
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpCubic"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
    ns.Config.SetDefault("ns3::TcpSocket::SndBufSize", ns.UintegerValue(4 << 20))
    ns.Config.SetDefault("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(6 << 20))
    nodes = ns.NodeContainer()
    nodes.Create(3)
    station, point = radios(nodes.Get(0), nodes.Get(1))
    helper = ns.PointToPointHelper()
    helper.SetChannelAttribute("Delay", ns.StringValue("1ms"))
    helper.SetDeviceAttribute("DataRate", ns.StringValue("1Gbps"))
    ends = ns.NodeContainer()
    ends.Add(nodes.Get(1))
    ends.Add(nodes.Get(2))
    cable = helper.Install(ends)
    mobility = ns.MobilityHelper()
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel")
    mobility.Install(nodes)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))
    air = ns.NetDeviceContainer()
    air.Add(station.Get(0))
    air.Add(point.Get(0))
    addresses.Assign(air)
    addresses.SetBase(ns.Ipv4Address("10.0.1.0"), ns.Ipv4Mask("255.255.255.0"))
    wired = addresses.Assign(cable)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    sinks = []
    for number in range(flows):
        to = ns.InetSocketAddress(wired.GetAddress(1), 5000 + number).ConvertTo()
        sinks.append(ns.PacketSinkHelper("ns3::TcpSocketFactory", to).Install(nodes.Get(2)))
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", to)
        source.SetAttribute("MaxBytes", ns.UintegerValue(0))
        source.Install(nodes.Get(0)).Start(ns.Seconds(START_S))
    ns.Simulator.Stop(ns.Seconds(START_S + length_s))
    start = time.monotonic()
    ns.Simulator.Run()
    wall_s = time.monotonic() - start
    received = sum(sink.Get(0).__deref__().GetTotalRx() for sink in sinks)
    ns.Simulator.Destroy()
    return wall_s, received * 8 / length_s / 1e6


def radios(client: Any, point: Any) -> tuple[Any, Any]:
    """The devices of a station and of its access point."""
    wifi = ns.WifiHelper()
    wifi.SetStandard(ns.WIFI_STANDARD_80211n)
    mode = ns.StringValue("HtMcs15")
    wifi.SetRemoteStationManager(
        "ns3::ConstantRateWifiManager", "DataMode", mode, "ControlMode", ns.StringValue("OfdmRate24Mbps")
    )
    phy = ns.YansWifiPhyHelper()
    phy.SetChannel(ns.YansWifiChannelHelper.Default().Create())
    phy.Set("ChannelSettings", ns.StringValue("{36, 20, BAND_5GHZ, 0}"))
    phy.Set("Antennas", ns.UintegerValue(2))
    phy.Set("MaxSupportedTxSpatialStreams", ns.UintegerValue(2))
    phy.Set("MaxSupportedRxSpatialStreams", ns.UintegerValue(2))
    name = ns.SsidValue(ns.Ssid("hourglass"))
    mac = ns.WifiMacHelper()
    size = ns.UintegerValue(AMPDU_BYTES)
    mac.SetType("ns3::StaWifiMac", "Ssid", name, "BE_MaxAmpduSize", size)
    clients = ns.NodeContainer()
    clients.Add(client)
    station = wifi.Install(phy, mac, clients)
    mac.SetType("ns3::ApWifiMac", "Ssid", name, "BE_MaxAmpduSize", size)
    points = ns.NodeContainer()
    points.Add(point)
    access = wifi.Install(phy, mac, points)
    guard = ns.BooleanValue(True)
    ns.Config.Set("/NodeList/*/DeviceList/*/$ns3::WifiNetDevice/HtConfiguration/ShortGuardIntervalSupported", guard)
    return station, access


if __name__ == "__main__":
    for length in sys.argv[2:]:
        print(*simulate(int(sys.argv[1]), float(length)))
