# SPDX-License-Identifier: Apache-2.0
"""The testbed: nodes, the cables between them, and the shapers and delays at their devices. Wi-Fi cells: wifi.py."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hourglass.scenario import nics
from hourglass.scenario.edge import LinkPolicers, LinkShaperWays, Media
from hourglass.scenario.kinds import SWITCH, both_ways, choice, integer, numbers, quantity, zero_or
from hourglass.scenario.loss import SHARES, Loss, Losses
from hourglass.scenario.real import HostName, Interfaces
from hourglass.scenario.table import Rows, Table
from hourglass.scenario.trace import LinkTraces, Spans
from hourglass.scenario.units import FINE_TIME, RATE, SIZE, TIME, Bounds
from hourglass.scenario.values import HOUR_NS, Addresses, End, Ends, NodeName
from hourglass.scenario.wifi import Wifi

GIGABIT = 10**9
REORDER_DELAY_NS = 10**6
BITS = 8
BURST_S = 60
NODES_MAX = LINKS_MAX = 1000
IPV6_MTU_MIN = 1280

LINE_RATE = Bounds(RATE, 1, 10**12)
SHAPER_RATE = Bounds(RATE, 1000, 10**12)
SHAPER_BURST = Bounds(SIZE, 1600, 10**9)
DELAY = Bounds(TIME, 0, HOUR_NS)


def _whole_us(delay_ns: int) -> int:
    if delay_ns % 1000:
        raise ValueError("a time in whole microseconds, which is what tc takes; a link's delay may be finer")
    return delay_ns


Rates = Annotated[tuple[int, int], *both_ways(LINE_RATE)]
Delays = Annotated[tuple[int, int], *both_ways(DELAY)]
Shares = Annotated[tuple[int, int], *both_ways(SHARES)]
Delay = Annotated[int, *quantity(DELAY)]
ShaperRate = Annotated[int, *quantity(SHAPER_RATE)]
ShaperBurst = Annotated[int, *quantity(SHAPER_BURST)]
Ring = Annotated[int, *integer(36, 4096, "descriptors")]
RxRing = Annotated[int, *integer(1, 4096, "descriptors")]
Usecs = Annotated[int, *integer(0, 1_000_000, "microseconds", "us")]
Frames = Annotated[int, *integer(0, 4096, "frames")]
Nic = Annotated[str, *choice(tuple(nics.PROFILES), "A NIC")]
Moderation = Annotated[str, *choice(nics.MODERATIONS, "A moderation")]
Vectors = Annotated[Literal[1, 2], *numbers(1, 2)]
Wake = Annotated[int, *integer(18, 4096, "descriptors")]
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
Switch = Annotated[bool, *SWITCH]


class Cpu(Table):
    """What system calls of a node's programs cost on its one CPU, which serves them in the order in which they come."""

    syscall: CallCost = Field(default=0, description="Time that a call takes it.")
    per_byte: ByteCost = Field(default=0, description="And each byte that read, write, send and their kin copy.")


class Node(Table):
    """A host or a router: a network namespace."""

    name: NodeName = Field(description="The node's name.")
    role: Annotated[Literal["host", "router"], *choice(("host", "router"), "A role")] = Field(
        default="host", description="Routers forward packets, hosts do not."
    )
    host: HostName | None = Field(
        default=None,
        description='Engine ssh: the machine that is this node, like `"user@router"`. Other engines ignore it.',
    )
    cpu: Cpu | None = Field(
        default=None,
        description='A CPU for its programs, like `{ syscall = "1us", per_byte = "100ps" }`; default: none, code takes'
        " no time.",
    )
    real: Interfaces = Field(
        default={},
        description='Engines on real machines: which interface plays a device of the node, like `{ eth0 = "enp3s0" }`.',
    )


class Link(Table):
    """A cable and the two NICs it joins.

    Where a key of the NICs has no default here, it is that of the profile `nic` (`nics.py`). The `wire` driver begins
    as the profile tg3 (`tests/guest/test_defaults.py`): what is as there, a plan need not write.
    """

    ends: Ends = Field(description="The two devices it connects.")
    rate: Rates = Field(
        default=(GIGABIT, GIGABIT), description="Line rate, preamble, FCS and gap included (24 B per frame)."
    )
    delay: Delays = Field(default=(0, 0), description="Propagation, one way.")
    jitter: Delays = Field(default=(0, 0), description="Random extra delay per frame, up to this; order is kept.")
    loss: Losses = Field(
        default=(Loss(rate=0), Loss(rate=0)),
        description='Share of frames lost, each by itself; or bursts of losses, like `{ model = "gilbert-elliott",'
        ' rate = "0.1%", burst = 5 }`.',
    )
    corrupt: Shares = Field(
        default=(0, 0), description="Share of frames that arrive damaged: the NIC counts and drops them."
    )
    duplicate: Shares = Field(default=(0, 0), description="Share of frames that arrive twice.")
    reorder: Shares = Field(
        default=(0, 0), description="Share of frames delayed by `reorder_delay` and overtaken by others."
    )
    reorder_delay: Delay = Field(default=REORDER_DELAY_NS, description="How much later a reordered frame arrives.")
    trace: LinkTraces | None = Field(
        default=None,
        description='The rate over time, from test time 0: steps `[[0, "10mbit"], [5, 0]]`, the name of a Mahimahi file'
        " (read when the scenario is), or a table `{there = …, back = …}` for the two directions.",
    )
    outage: Spans = Field(default=(), description="Periods without transmission, both directions.")
    duplex: Duplex = Field(default="full", description='"half": one frame at a time, whichever way; no collisions.')
    medium: Media | None = Field(
        default=None,
        description="Links of one name share a line, both ways or one: one frame at a time on all of them, in the order"
        " in which they came to their NICs.",
    )
    policer: LinkPolicers | None = Field(
        default=None,
        description='Drops what is above a rate, behind the line: `{ back = { rate = "50mbit", burst = "64KB" } }`.',
    )
    shaper: LinkShaperWays | None = Field(
        default=None,
        description='Holds back what is above a rate, likewise: `{ there = { rate = "20mbit", limit = "256KB" } }`.',
    )
    addresses: Addresses | None = Field(
        default=None, description="Addresses of the two ends; default: 10.0.N.1, 10.0.N.2 or fd00:0:0:N::1, 2."
    )
    mtu: Mtu = Field(default=1500, description="MTU of both NICs.")
    nic: Nic = Field(
        default=nics.DEFAULT,
        description="What the NICs are: the defaults of the keys below (see NICs); `tg3`: BCM5761.",
    )
    tx_ring: Ring | None = Field(default=None, description="Transmit descriptors.")
    rx_ring: RxRing | None = Field(default=None, description="Receive descriptors.")
    vectors: Vectors | None = Field(
        default=None, description="Interrupt vectors: 1, each interrupt serves both directions; 2, one per direction."
    )
    moderation: Moderation | None = Field(
        default=None,
        description="When a NIC interrupts: so long after a frame, or with the n-th (`delay`); at once, but so long"
        " after the last interrupt (`interval`); the same, adapted as a driver does (`igb`, `ixgbe`).",
    )
    rx_usecs: Usecs | None = Field(
        default=None,
        description="Maximum delay of the receive interrupt after a frame; of intervals their length, which then is no"
        " longer adapted.",
    )
    rx_frames: Frames | None = Field(
        default=None, description="Frames that trigger a receive interrupt; with `delay` only. 0: no limit."
    )
    tx_usecs: Usecs | None = Field(
        default=None,
        description="Maximum delay of the completion interrupt after a transmission; of intervals their length, unless"
        " there is one vector.",
    )
    tx_frames: Frames | None = Field(
        default=None, description="Transmissions that trigger a completion interrupt; with `delay` only. 0: no limit."
    )
    tx_wake: Wake | None = Field(default=None, description="Free descriptors at which a stopped queue goes on.")
    tx_fifo: Fifo | None = Field(
        default=None,
        description="The NIC's transmit memory: a frame counts as complete when it is there, so that as much stands"
        " below BQL and TCP Small Queues. 0: when it has left.",
    )
    rx_copy: RxCopy | None = Field(
        default=None, description="Frames up to this length are copied into a buffer of their own size."
    )
    rx_buffer: RxBuffer | None = Field(
        default=None,
        description="What a receive buffer takes of a socket's memory, beside 256 B for the skb; 0: every frame is"
        " copied into one of its own size.",
    )
    rx_large: RxLarge | None = Field(
        default=None, description="The same for a frame that does not fit; 0: it takes several of `rx_buffer`."
    )
    tso: Switch = Field(default=True, description="TCP segmentation offload to the NIC.")
    gso: Switch = Field(default=True, description="Generic segmentation offload, just above the driver.")
    gro: Switch = Field(default=True, description="Generic receive offload: merging of received segments.")
    checksum: Switch = Field(default=True, description="Checksum offload, both directions; off also disables TSO.")

    @model_validator(mode="after")
    def _consistent(self) -> "Link":
        if self.reorder_delay != REORDER_DELAY_NS and not any(self.reorder):
            raise ValueError("reorder_delay goes with reorder, which is 0")
        if self.reorder_delay == 0:
            raise ValueError("reorder_delay must be above 0, or nothing is reordered")
        traces = [one for one in (self.trace.there, self.trace.back) if one] if self.trace else []
        if self.outage and any(one.repeat or one.opportunity_ms for one in traces):
            raise ValueError("outage does not go with a trace that repeats; write the outage into the trace")
        if not self.checksum and self.tso and "tso" in self.model_fields_set:
            raise ValueError("tso needs checksum")
        return self


class Shaper(Table):
    """HTB at a device's egress, the stack's qdisc below it."""

    at: End = Field(description="The device.")
    rate: ShaperRate = Field(description="HTB's rate and ceil; preamble, FCS and gap are not counted.")
    burst: ShaperBurst | None = Field(
        default=None,
        description="HTB's burst and cburst: what may pass at line rate after a pause; default: what passes in 1 ms"
        " and 1600 bytes, as tc has it on a kernel with timers of 1 ms.",
    )

    @model_validator(mode="after")
    def _saves_up(self) -> "Shaper":
        if self.burst and self.burst * BITS > self.rate * BURST_S:
            raise ValueError(f"burst must be at most what passes in {BURST_S} s at the rate, as in HTB itself")
        return self


class Netem(Table):
    """A delay at a device's egress, by the qdisc netem: how the papers set the base RTT."""

    at: End = Field(description="The device.")
    delay: NetemDelay = Field(description="Delay of every packet sent there, in whole microseconds; 0: no netem.")
    limit: NetemLimit = Field(
        default=100_000,
        description="Packets it holds; excess is dropped. netem's own default, 1000, is 120 Mbit/s at 100 ms.",
    )


class Testbed(Table):
    """Nodes, cables and Wi-Fi cells. A preset is written out before this is made."""

    __test__ = False

    ip: Version = Field(default=4, description="Version of IP.")
    node: Rows[Node] = Field(description="The hosts and routers.")
    link: Rows[Link] = Field(default=(), description="The cables.")
    wifi: Rows[Wifi] = Field(default=(), description="The Wi-Fi cells.")
    shaper: Rows[Shaper] = Field(default=(), description="HTB shapers.")
    netem: Rows[Netem] = Field(default=(), description="netem delays.")
