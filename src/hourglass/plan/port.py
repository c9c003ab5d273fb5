# SPDX-License-Identifier: Apache-2.0
"""Ports: the ends of cables and the radios of cells, with their addresses."""

from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network

Interface = IPv4Interface | IPv6Interface
Subnet = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Port:
    """One end of a link, `side` 0 or 1; or a radio of a cell: `link` counts on after the links, `side` 0 is the
    access point. With a `vlan`: the device of this VLAN at that end."""

    link: int
    side: int
    node: str
    device: str
    own_address: Interface | None = None
    """None at a switch, and at an end whose VLANs have the addresses."""
    radio: bool = False
    vlan: int | None = None
    segment: int = -1
    """The number of its subnet; -1 without an address."""

    @property
    def address(self) -> Interface:
        """Return the address of a port that has one."""
        assert self.own_address is not None, self
        return self.own_address

    @property
    def name(self) -> str:
        """Return the name of the device with the address."""
        return self.device if self.vlan is None else f"{self.device}.{self.vlan}"

    @property
    def mac(self) -> str:
        """Return a locally administered address that identifies link and side."""
        return f"02:00:00:{self.link >> 8:02x}:{self.link & 255:02x}:{self.side + 1:02x}"
