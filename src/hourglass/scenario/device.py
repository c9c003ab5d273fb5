# SPDX-License-Identifier: Apache-2.0
"""One device's part of a node's stack: `[stack.NODE.device.DEVICE]`. It comes before the node's and the stack's, and
before what the device's link says of both its ends."""

from pydantic import Field

from hourglass.scenario.table import Table
from hourglass.scenario.testbed import Mtu, Ring, RxRing, Switch
from hourglass.scenario.values import Qdisc

NAME_MAX = 15
"""Of a device, IFNAMSIZ - 1."""
IFB = "ifb4"
"""Begins the name of the ifb that gets what arrives at a device, as sqm-scripts name it: ifb4wan."""
INGRESS_NAME_MAX = NAME_MAX - len(IFB)

OF_NICS = ("tx_ring", "rx_ring", "tso", "gso", "gro", "checksum")
"""Keys of a cable's NIC, which are those of its link, too; a radio has none of them."""


class DeviceStack(Table):
    """One device where it differs from its node, its link and the stack."""

    qdisc: Qdisc | None = Field(
        default=None, description="Queueing discipline; below HTB where there is a shaper, otherwise the root."
    )
    ingress: Qdisc | None = Field(
        default=None,
        description="Queueing discipline of what arrives: all of it is redirected (act_mirred) to an ifb, `ifb4DEVICE`,"
        " which has this as its root. It queues only with a rate of its own, below the line's.",
    )
    mtu: Mtu | None = Field(default=None, description="MTU; default: the link's, a radio's 1500.")
    tx_ring: Ring | None = Field(default=None, description="Transmit descriptors; default: the link's.")
    rx_ring: RxRing | None = Field(default=None, description="Receive descriptors; default: the link's.")
    tso: Switch | None = Field(default=None, description="TCP segmentation offload; default: the link's.")
    gso: Switch | None = Field(default=None, description="Generic segmentation offload; default: the link's.")
    gro: Switch | None = Field(default=None, description="Generic receive offload; default: the link's.")
    checksum: Switch | None = Field(
        default=None, description="Checksum offload, both directions; default: the link's. Off also disables TSO."
    )
