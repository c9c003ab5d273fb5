# SPDX-License-Identifier: Apache-2.0
"""One device's part of a node's stack: `[stack.NODE.device.DEVICE]`. It overrides the node's stack, the common stack
and the device's link."""

from typing import Annotated

from pydantic import Field

from hourglass.scenario.quantities import SIZE, Bounds
from hourglass.scenario.testbed import Mtu, Ring, RxRing, Switch
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import integer, quantity
from hourglass.scenario.values import Qdisc

NAME_MAX = 15
"""The longest name of a device, IFNAMSIZ - 1."""
IFB = "ifb4"
"""The prefix of the ifb for a device's arriving packets, as in sqm-scripts: ifb4wan."""
INGRESS_NAME_MAX = NAME_MAX - len(IFB)

OF_NICS = ("tx_ring", "rx_ring", "tso", "gso", "gro", "checksum")
"""Keys of a cable's NIC, and of its link. A radio has none of them."""

GsoSegments = Annotated[int, *integer(1, 65535, "segments")]


BqlMax = Annotated[int, *quantity(Bounds(SIZE, 1, 1879048192))]
"""DQL_MAX_LIMIT of include/linux/dynamic_queue_limits.h."""


class DeviceStack(TomlTable):
    """Settings of one device that differ from its node, its link and the stack."""

    qdisc: Qdisc | None = Field(
        default=None, description="Queueing discipline: HTB's leaf if there is a shaper, otherwise the root."
    )
    ingress: Qdisc | None = Field(
        default=None,
        description="Queueing discipline of arriving packets. All are redirected (act_mirred) to an ifb,"
        " `ifb4DEVICE`, whose root it is. It queues only if it has a rate below the line's.",
    )
    mtu: Mtu | None = Field(default=None, description="MTU. Default: the link's, or 1500 for a radio.")
    tx_ring: Ring | None = Field(default=None, description="Transmit descriptors. Default: the link's.")
    rx_ring: RxRing | None = Field(default=None, description="Receive descriptors. Default: the link's.")
    tso: Switch | None = Field(default=None, description="TCP segmentation offload. Default: the link's.")
    gso: Switch | None = Field(default=None, description="Generic segmentation offload. Default: the link's.")
    gro: Switch | None = Field(default=None, description="Generic receive offload. Default: the link's.")
    checksum: Switch | None = Field(
        default=None, description="Checksum offload, in both directions. Default: the link's. Off also disables TSO."
    )
    bql_max: BqlMax | None = Field(
        default=None,
        description="Maximum of the byte queue limit (BQL, `byte_queue_limits/limit_max`) of a cable's NIC. Default:"
        " the kernel's, 1879048192.",
    )
    gso_max_segs: GsoSegments | None = Field(
        default=None,
        description="A radio's limit on the segments of an skb. 1 is a device without scatter-gather before Linux 4.17:"
        " each skb that TCP builds holds one segment. Default: the kernel's, 65535.",
    )
