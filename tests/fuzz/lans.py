# SPDX-License-Identifier: Apache-2.0
"""Random LANs: switches in trees and loops, VLANs, hosts and routers at ports of one VLAN and at trunks, access points
as ports of switches."""

import random
from itertools import count
from typing import Any

from tests.plan.lan_bed import FAST

from .values import Scope

VLANS = (10, 20, 300)
ROUTERS = 2

Shape = tuple[dict[str, Any], Scope]


def lan(chance: random.Random, switches_max: int = 4) -> Shape:
    """Return one or more LANs. A router may join them, and VLANs. Some shapes have loops or parts out of reach."""
    return _Lan(chance, switches_max).shape()


class _Lan:
    def __init__(self, chance: random.Random, switches_max: int) -> None:
        self.chance = chance
        self.switches = [f"switch{number}" for number in range(chance.randint(1, switches_max))]
        self.vlans = chance.sample(VLANS, chance.choice([0, 0, 1, 2, 3]))
        self.protocol = chance.random() < 0.5
        self.ip = chance.choice([4, 4, 6])
        self.links: list[dict[str, Any]] = []
        self.devices: dict[str, list[str]] = {}
        self.number = count(7)

    def shape(self) -> Shape:
        chance = self.chance
        hosts = ["client", "server", *(f"host{number}" for number in range(chance.randint(0, 3)))]
        routers = [f"router{number}" for number in range(chance.choice([0, 1, 1, ROUTERS]))]
        self._join_switches()
        for name in hosts:
            self._attach(name, self._vlan_of_host())
        for name in routers:
            self._attach_router(name)
        testbed = {"ip": self.ip, "node": [self._switch(name) for name in self.switches]}
        if chance.random() < 0.25:
            access_point = self._device(chance.choice(self.switches), "wlan0")
            testbed["wifi"] = [{"ap": access_point, "station": [{"at": self._device("host9", "wlan0")}]}]
            hosts.append("host9")
        testbed["node"] += [{"name": name, "role": "host"} for name in hosts]
        testbed["node"] += [{"name": name, "role": "router"} for name in routers]
        if chance.random() < 0.2:
            testbed["routes"] = "connected"
        chance.shuffle(self.links)
        return testbed | {"link": self.links}, Scope(hosts + routers + self.switches, self.devices, self.switches)

    def _switch(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = {"name": name, "role": "switch"}
        if self.protocol and self.chance.random() < 0.97:
            table["stp"] = {"priority": self.chance.choice([4096, 32768, 32768]), **FAST}
        return table

    def _join_switches(self) -> None:
        """Join each switch with an earlier one, or not; and a few pairs once more."""
        chance, pairs = self.chance, []
        for number in range(1, len(self.switches)):
            if chance.random() < 0.9:
                pairs.append((chance.randrange(number), number))
        if len(self.switches) > 1 and chance.random() < (0.8 if self.protocol else 0.1):
            pairs += [chance.sample(range(len(self.switches)), 2) for _ in range(chance.randint(1, 4))]
        for first, second in pairs:
            vlan = chance.choice([None, None, None, self._trunk(), self._vlan()])
            self._link(self._port(self.switches[first]), self._port(self.switches[second]), vlan)

    def _vlan(self) -> Any:
        return self.chance.choice([None, 1, *self.vlans]) if self.vlans else None

    def _vlan_of_host(self) -> Any:
        return self._trunk() if self.chance.random() < 0.15 else self._vlan()

    def _trunk(self) -> Any:
        numbers = [1, *self.vlans]
        return self.chance.sample(numbers, self.chance.randint(1, len(numbers))) if self.vlans else None

    def _attach(self, name: str, vlan: Any, switch: str | None = None) -> None:
        """Join a host or router with a switch."""
        ends = [self._port(name), self._port(switch or self.chance.choice(self.switches))]
        self._link(*self.chance.sample(ends, 2), vlan)
        if self.chance.random() < 0.1:
            self.links[-1]["addresses"] = [self._address(tag) for tag in (vlan if isinstance(vlan, list) else [vlan])]

    def _address(self, vlan: int | None) -> str:
        """Return an address of the VLAN's subnet. It is refused if the VLAN is in several parts."""
        subnet = 60 + [None, 1, *VLANS].index(vlan or 1)
        return f"fd00:{subnet}::{next(self.number)}/64" if self.ip == 6 else f"10.{subnet}.0.{next(self.number)}/24"

    def _attach_router(self, name: str) -> None:
        """Join a router with several switches, by a trunk or a port for each VLAN."""
        chance = self.chance
        for switch in chance.sample(self.switches, chance.randint(1, len(self.switches))):
            if self.vlans and chance.random() < 0.6:
                self._attach(name, [1, *self.vlans], switch)
            else:
                for vlan in [None, *self.vlans]:
                    self._attach(name, vlan, switch)

    def _link(self, first: str, second: str, vlan: Any) -> None:
        link: dict[str, Any] = {"ends": [first, second], "rate": self.chance.choice(["10mbit", "100mbit", "1gbit"])}
        self.links.append(link if vlan is None else {**link, "vlan": vlan})

    def _port(self, node: str) -> str:
        return self._device(node, f"eth{len(self.devices.get(node, []))}")

    def _device(self, node: str, device: str) -> str:
        self.devices.setdefault(node, []).append(device)
        return f"{node}:{device}"
