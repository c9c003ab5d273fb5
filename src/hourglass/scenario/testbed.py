# SPDX-License-Identifier: Apache-2.0
"""The testbed: nodes, the cables between them, and the shapers and delays at their devices. Wi-Fi cells: wifi.py."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hourglass.scenario import nics
from hourglass.scenario.edge import LinkPolicerPair, LinkShaperPair, Media
from hourglass.scenario.lan import Stp, Vlan
from hourglass.scenario.loss import SHARES, Loss, Losses
from hourglass.scenario.quantities import FINE_TIME, RATE, SIZE, TIME, Bounds
from hourglass.scenario.real_hosts import HostName, Interfaces
from hourglass.scenario.toml_table import Rows, TomlTable
from hourglass.scenario.trace import LinkTraces, Spans
from hourglass.scenario.value_kinds import SWITCH, both_ways, choice, integer, numbers, quantity, zero_or
from hourglass.scenario.values import HOUR_NS, Addresses, End, Ends, NodeName
from hourglass.scenario.wifi import Wifi

REORDER_DELAY_NS = 10**6
BITS = 8
BURST_S = 60
NODES_MAX = LINKS_MAX = 10_000
IPV6_MTU_MIN = 1280

LINE_RATE = Bounds(RATE, 1, 10**12)
SHAPER_RATE = Bounds(RATE, 1000, 10**12)
SHAPER_BURST = Bounds(SIZE, 1600, 10**9)
DELAY = Bounds(TIME, 0, HOUR_NS)


def _whole_us(delay_ns: int) -> int:
    if delay_ns % 1000:
        raise ValueError("must be a time in whole microseconds, tc's unit; a link's delay may be finer")
    return delay_ns


Rates = Annotated[tuple[int, int], *both_ways(LINE_RATE)]
Delays = Annotated[tuple[int, int], *both_ways(DELAY)]
Shares = Annotated[tuple[int, int], *both_ways(SHARES)]
Delay = Annotated[int, *quantity(DELAY)]
ShaperRate = Annotated[int, *quantity(SHAPER_RATE)]
ShaperBurst = Annotated[int, *quantity(SHAPER_BURST)]
Queues = Annotated[int, *integer(1, max(profile.queues_max for profile in nics.PROFILES.values()), "queues")]
Ring = Annotated[int, *integer(36, 4096, "descriptors")]
RxRing = Annotated[int, *integer(1, 4096, "descriptors")]
Usecs = Annotated[int, *integer(0, 1_000_000, "microseconds", "us")]
Frames = Annotated[int, *integer(0, 4096, "frames")]
Nic = Annotated[str, *choice(tuple(nics.PROFILES), "A NIC")]
Moderation = Annotated[str, *choice(nics.MODERATIONS, "A moderation")]
Vectors = Annotated[Literal[1, 2], *numbers(1, 2)]
Wake = Annotated[int, *integer(18, 4096, "descriptors")]
ZeroOrOne = Annotated[Literal[0, 1], *numbers(0, 1)]
LaunchTime = Annotated[int, *integer(0, 1000, "nanoseconds", "ns")]
Fifo = Annotated[int, *integer(0, 16 << 20, "bytes", "B")]
RxCopy = Annotated[int, *integer(0, 256, "bytes", "B")]
RxBuffer = Annotated[int, *zero_or(1024, 4096, "bytes", "B")]
RxLarge = Annotated[int, *zero_or(9600, 32768, "bytes", "B")]
NetemDelay = Annotated[int, *quantity(DELAY), AfterValidator(_whole_us)]
CallCost = Annotated[int, *quantity(Bounds(TIME, 0, 10**9))]
ByteCost = Annotated[int, *quantity(Bounds(FINE_TIME, 0, 10**9))]
NetemLimit = Annotated[int, *integer(1, 10**7, "packets")]
Mtu = Annotated[int, *integer(68, 9000, "bytes", "B")]
Duplex = Annotated[Literal["full", "half"], *choice(("full", "half"), "Duplex")]
Version = Annotated[Literal[4, 6], *numbers(4, 6)]
Routes = Annotated[Literal["static", "connected"], *choice(("static", "connected"), "A kind of routes")]
Switch = Annotated[bool, *SWITCH]


class Cpu(TomlTable):
    """The cost of packets and of programs' system calls on the node's one CPU, which serves them in order of arrival.

    Packets cost at NICs and radios, not at devices without hardware (veth, ifb, bridges).
    """

    syscall: CallCost = Field(default=0, description="CPU time of each system call.")
    per_byte: ByteCost = Field(
        default=0, description="Additional CPU time of each byte that read, write, send and similar calls copy."
    )
    received: CallCost = Field(
        default=0, description="CPU time of each received frame: from its NIC to the end of the stack's processing."
    )
    sent: CallCost = Field(
        default=0,
        description="CPU time of each skb that a qdisc hands to a NIC; with TSO, an skb is many segments. The next skb"
        " is dequeued afterwards.",
    )
    timer: CallCost = Field(
        default=0, description="Lateness of the timers of TCP's pacing and of qdiscs. It does not occupy the CPU."
    )


class Node(TomlTable):
    """A host, a router or a switch: a network namespace."""

    name: NodeName = Field(description="Name of the node.")
    role: Annotated[Literal["host", "router", "switch"], *choice(("host", "router", "switch"), "A role")] = Field(
        default="host",
        description="Routers forward packets, hosts do not. A switch is a Linux bridge, `br0`, of its devices. What"
        " switches join is one subnet, with VLANs one for each.",
    )
    stp: Stp | None = Field(
        default=None,
        description="The spanning tree protocol of a switch, like `{ priority = 4096 }`; `{}` has the standard's"
        " values. Default: none.",
    )
    host: HostName | None = Field(
        default=None,
        description='For the engine ssh: the machine that is this node, like `"user@router"`. Other engines ignore it.',
    )
    cpu: Cpu | None = Field(
        default=None,
        description='A CPU on which packets and programs take time, like `{ received = "10us", syscall = "1us" }`.'
        " Default: none, so code takes no virtual time.",
    )
    real: Interfaces = Field(
        default={},
        description='For engines on real machines: the interface of each device of the node, like `{ eth0 = "enp3s0"'
        " }`.",
    )


class Link(TomlTable):
    """A cable and the two NICs it joins.

    If a key of the NICs has no default here, the profile `nic` (`nics.py`) has it. The `wire` driver starts with the
    profile tg3 (`tests/guest/test_defaults.py`), so a plan omits values that equal it.
    """

    ends: Ends = Field(description="The two devices that the link connects.")
    rate: Rates = Field(
        default=(nics.GIGABIT, nics.GIGABIT),
        description="Line rate, including preamble, FCS and gap (24 B per frame).",
    )
    delay: Delays = Field(default=(0, 0), description="Propagation delay, one way.")
    jitter: Delays = Field(default=(0, 0), description="Maximum random extra delay per frame. Frames keep their order.")
    loss: Losses = Field(
        default=(Loss(rate=0), Loss(rate=0)),
        description="Share of frames lost, drawn independently. For bursts of losses, a table like `{ model ="
        ' "gilbert-elliott", rate = "0.1%", burst = 5 }`.',
    )
    corrupt: Shares = Field(
        default=(0, 0), description="Share of frames that arrive damaged. The NIC counts and drops them."
    )
    duplicate: Shares = Field(default=(0, 0), description="Share of frames that arrive twice.")
    reorder: Shares = Field(
        default=(0, 0), description="Share of frames that are delayed by `reorder_delay`, so that others overtake them."
    )
    reorder_delay: Delay = Field(default=REORDER_DELAY_NS, description="Extra delay of a reordered frame.")
    trace: LinkTraces | None = Field(
        default=None,
        description='The rate over time, from test time 0: steps `[[0, "10mbit"], [5, 0]]`, the name of a Mahimahi'
        " file, or a table `{forward = …, reverse = …}` for the two directions. A file is read when the"
        " scenario is loaded.",
    )
    outage: Spans = Field(default=(), description="Periods without transmission, in both directions.")
    duplex: Duplex = Field(
        default="full", description='"half": only one frame at a time, in either direction, without collisions.'
    )
    medium: Media | None = Field(
        default=None,
        description="Name of a shared line, for both directions or one. All links with this name carry one frame"
        " at a time, in the order in which frames reached their NICs.",
    )
    policer: LinkPolicerPair | None = Field(
        default=None,
        description='Token bucket after the line that drops frames above a rate: `{ reverse = { rate = "50mbit",'
        ' burst = "64KB" } }`.',
    )
    shaper: LinkShaperPair | None = Field(
        default=None,
        description='Token bucket after the line that queues frames above a rate: `{ forward = { rate = "20mbit",'
        ' limit = "256KB" } }`.',
    )
    addresses: Addresses | None = Field(
        default=None,
        description="Addresses of both ends; on a link to a switch, of the other end only. Default: 10.0.N.1, 10.0.N.2"
        " or fd00:0:0:N::1, 2; in a LAN the lowest free ones of its subnet.",
    )
    vlan: Vlan | None = Field(
        default=None,
        description="VLAN of a switch's link. A number: the switch's end belongs to this VLAN, and frames have no"
        " tag. A list: frames have tags of these VLANs, and a host or router has a device and an address for each,"
        " `eth0.10`. Default: 1. Between switches: all VLANs; VLAN 1 has no tag.",
    )
    mtu: Mtu = Field(default=1500, description="MTU of both NICs.")
    nic: Nic | None = Field(
        default=None,
        description="NIC profile: the defaults of the keys below (see NICs). Default: `tg3`, the BCM5761, up to"
        " 1gbit, else `ixgbe`.",
    )
    queues: Queues | None = Field(
        default=None,
        description="Transmit queues and receive queues of each NIC. Of several, each has its own qdisc (mq), and the"
        " chip serves them in turn.",
    )
    tx_ring: Ring | None = Field(default=None, description="Transmit descriptors of a queue.")
    rx_ring: RxRing | None = Field(default=None, description="Receive descriptors of a queue.")
    vectors: Vectors | None = Field(
        default=None,
        description="Interrupt vectors of a queue. 1: each interrupt serves both directions. 2: one vector per"
        " direction.",
    )
    moderation: Moderation | None = Field(
        default=None,
        description="Rule for a NIC's interrupts. `delay`: a time after the first frame, or at the n-th frame."
        " `interval`: at once, but at least an interval after the last interrupt. `igb`, `ixgbe`: like `interval`,"
        " with an interval that adapts as in that driver.",
    )
    rx_usecs: Usecs | None = Field(
        default=None,
        description="Maximum delay of the receive interrupt after a frame. With intervals: the length, which then"
        " does not adapt.",
    )
    rx_frames: Frames | None = Field(
        default=None, description="Number of frames that triggers a receive interrupt, with `delay` only. 0: no limit."
    )
    tx_usecs: Usecs | None = Field(
        default=None,
        description="Maximum delay of the completion interrupt after a transmission. With intervals and two vectors:"
        " the length.",
    )
    tx_frames: Frames | None = Field(
        default=None,
        description="Number of transmissions that triggers a completion interrupt, with `delay` only. 0: no limit.",
    )
    tx_wake: Wake | None = Field(default=None, description="Free descriptors at which a stopped queue resumes.")
    tx_context: ZeroOrOne | None = Field(
        default=None, description="Additional descriptors of an skb whose checksum or segments the NIC makes."
    )
    bql_headers: ZeroOrOne | None = Field(
        default=None,
        description="The bytes that BQL counts of an skb. 0: its length. 1: with the headers of each segment.",
    )
    tx_fifo: Fifo | None = Field(
        default=None,
        description="The NIC's transmit memory. A frame counts as complete once it is in this memory, so this much"
        " data is below BQL and TCP Small Queues. 0: a frame is complete when it has left.",
    )
    rx_copy: RxCopy | None = Field(
        default=None, description="Frames up to this length are copied into a buffer of the frame's size."
    )
    rx_buffer: RxBuffer | None = Field(
        default=None,
        description="Socket memory that a receive buffer occupies, in addition to 256 B for the skb. 0: every"
        " frame is copied into a buffer of exactly its size.",
    )
    rx_large: RxLarge | None = Field(
        default=None,
        description="Socket memory of a frame that does not fit into `rx_buffer`. 0: it occupies several buffers.",
    )
    sg: Switch | None = Field(
        default=None,
        description="Scatter-gather: an skb's fragments have a descriptor each. Off also disables TSO, and GSO at the"
        " device.",
    )
    tso: Switch | None = Field(default=None, description="TCP segmentation offload to the NIC.")
    phc: ZeroOrOne | None = Field(default=None, description="The NIC has a PTP hardware clock.")
    launch_time: LaunchTime | None = Field(
        default=None,
        description="The unit of launch times (SO_TXTIME, offload of `etf`), in ns. 0: the NIC has none. Needs `phc`"
        " and several `queues`.",
    )
    gates: ZeroOrOne | None = Field(
        default=None,
        description="The NIC opens and closes the gates of its queues by a schedule (802.1Qbv, full offload of"
        " `taprio`), and knows priorities of queues (`mqprio` with `hw 1`). Needs `phc` and several `queues`.",
    )
    gro_usecs: Usecs | None = Field(
        default=None,
        description="Time for which GRO holds packets after a poll (`gro_flush_timeout`), with `defer_irqs`.",
    )
    defer_irqs: Frames | None = Field(
        default=None,
        description="Polls without a packet, `gro_usecs` apart, before the receive interrupt is enabled again"
        " (`napi_defer_hard_irqs`).",
    )
    link_up: Delay | None = Field(
        default=None,
        description='Time of the negotiation: from `cable = "plug"`, `link = "up"` or `power = "on"` to the carrier'
        " of both ends. Links of the set-up have a carrier from the start.",
    )
    gso: Switch = Field(default=True, description="Generic segmentation offload, directly above the driver.")
    gro: Switch = Field(default=True, description="Generic receive offload: received segments are merged.")
    checksum: Switch = Field(default=True, description="Checksum offload, in both directions. Off also disables TSO.")

    @model_validator(mode="after")
    def _consistent(self) -> "Link":
        if self.reorder_delay != REORDER_DELAY_NS and not any(self.reorder):
            raise ValueError("reorder_delay needs reorder, which is 0")
        if self.reorder_delay == 0:
            raise ValueError("reorder_delay must be above 0, or nothing is reordered")
        traces = [trace for trace in (self.trace.forward, self.trace.reverse) if trace] if self.trace else []
        if self.outage and any(trace.repeat or trace.opportunity_ms for trace in traces):
            raise ValueError("outage cannot be combined with a trace that repeats; put the outage into the trace")
        if not self.checksum and self.tso and "tso" in self.model_fields_set:
            raise ValueError("tso needs checksum")
        if self.sg is False and self.tso and {"sg", "tso"} <= self.model_fields_set:
            raise ValueError("tso needs sg")
        return self


class Shaper(TomlTable):
    """HTB at a device's egress, with the stack's qdisc as its leaf."""

    at: End = Field(description="The device.")
    rate: ShaperRate = Field(description="HTB's rate and ceil. Preamble, FCS and gap are not counted.")
    burst: ShaperBurst | None = Field(
        default=None,
        description="HTB's burst and cburst: the bytes that pass at line rate after a pause. Default: the bytes of 1"
        " ms, plus 1600, as in tc on a kernel with timers of 1 ms.",
    )

    @model_validator(mode="after")
    def _saves_up(self) -> "Shaper":
        if self.burst and self.burst * BITS > self.rate * BURST_S:
            raise ValueError(f"burst must be at most {BURST_S} s of data at the rate, as in HTB")
        return self


class Netem(TomlTable):
    """A delay at a device's egress by the qdisc netem, which sets the base RTT as in the papers."""

    at: End = Field(description="The device.")
    delay: NetemDelay = Field(
        description="Delay of every packet that leaves the device, in whole microseconds. 0: no netem."
    )
    limit: NetemLimit = Field(
        default=100_000,
        description="Maximum number of packets in netem; more are dropped. netem's default, 1000, permits 120 Mbit/s"
        " at 100 ms.",
    )


class Testbed(TomlTable):
    """Nodes, cables and Wi-Fi cells. Presets are resolved before."""

    __test__ = False

    ip: Version = Field(default=4, description="IP version.")
    routes: Routes = Field(
        default="static",
        description="Routes that the set-up gives routers. `static`: to every subnet. `connected`: only to their own"
        " subnets; routing daemons or `ip route` add the others. Hosts have static routes in both cases.",
    )
    node: Rows[Node] = Field(description="The hosts and routers.")
    link: Rows[Link] = Field(default=(), description="The cables.")
    wifi: Rows[Wifi] = Field(default=(), description="The Wi-Fi cells.")
    shaper: Rows[Shaper] = Field(default=(), description="HTB shapers.")
    netem: Rows[Netem] = Field(default=(), description="netem delays.")
