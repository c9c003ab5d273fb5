# SPDX-License-Identifier: Apache-2.0
"""Events: what changes during the test, as steps at their times.

A device that is set up again has lost its routes, and with IPv6 its address: the set-up's are given back to it. A cable
that is plugged in finds everything as it was, as with real NICs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import AppStep, BatchStep, EthtoolStep, EventStep, IwStep, WriteStep
from hourglass.contract.plan import Event as Planned
from hourglass.plan import links, radios
from hourglass.plan.network import Network, Port
from hourglass.scenario import Event, LinkChange, Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.units import seconds_ns

Act = Literal["kill", "pause", "resume", "restart"]
UNPLUGGED = "-1"
"""No cable, in the driver's words (kernel/drivers/wire_sysfs.c)."""
WIRE_ONLY = ("write", "cable", "set", "power")
"""Actions that need our drivers, or a kernel that is there for this run alone."""
LINES = ("tc", "ip", "ethtool")
"""Actions that are lines for a tool."""
EVENTS_MAX = 100_000


def all_of(scenario: Scenario, network: Network, able: Capabilities, end_ns: int) -> list[Planned]:
    """All events in the order of their times; of equal times in the scenario's order. Raises InputError."""
    moments = sorted(_moments(scenario, network, able, end_ns), key=lambda moment: moment[0])
    if len(moments) > EVENTS_MAX:
        raise refusal("event", f"{len(moments)} events", f"at most {EVENTS_MAX}, repetitions counted")
    builder = _Builder(scenario, network)
    return [
        Planned(at_ns=at_ns, node=event.node, name=event.label or words(event), steps=list(builder.steps(index, event)))
        for at_ns, index, event in moments
    ]


def _refuse_other_devices(key: str, lines: Iterable[str], devices: Sequence[str]) -> None:
    """On a machine that is somebody's only what the plan names is changed, and given back."""
    for line in lines:
        if not set(line.split(" ")) & set(devices):
            raise refusal(key, line, f"names none of the node's devices ({', '.join(devices)}); others are not touched")


def _moments(scenario: Scenario, network: Network, able: Capabilities, end_ns: int) -> Iterator[tuple[int, int, Event]]:
    for index, event in enumerate(scenario.event):
        if able.nic != "wire" and event.action in WIRE_ONLY:
            raise refusal(f"event.{index}.{event.action}", _shown(event), "this engine cannot: leave it out")
        if able.nic == "real" and (
            lines := {"tc": event.tc, "ip": event.ip, "ethtool": event.ethtool}.get(event.action)
        ):
            _refuse_other_devices(
                f"event.{index}.{event.action}", lines, [port.device for port in network.of(event.node)]
            )
        first_ns, every_ns = seconds_ns(event.at), seconds_ns(event.every or 0)
        last_ns = first_ns + (event.count - 1) * every_ns
        if last_ns >= end_ns:
            key, value = ("count", event.count) if first_ns < end_ns else ("at", event.at)
            raise refusal(f"event.{index}.{key}", value, f"within the test, which ends at {end_ns / 10**9:g} s")
        for number in range(event.count):
            yield first_ns + number * every_ns, index, event


def words(event: Event) -> str:
    """What is done, in the scenario's words."""
    shown = _shown(event)
    match event.action:
        case "link" | "cable":
            return f"{event.action} {shown} {event.device}"
        case "set":
            return f"set {shown} at {event.device}"
        case action:
            return f"{action} {shown}"


def _shown(event: Event) -> str:
    value = event.model_dump(mode="json")[event.action]
    if isinstance(value, dict):
        return ", ".join(f"{name}={_short(one)}" for name, one in value.items())
    return "; ".join(value) if isinstance(value, list) else str(value)


def _short(value: object) -> str:
    return "/".join(map(_short, value)) if isinstance(value, list) else str(value)


class _Builder:
    """Makes the steps of each event in turn: which stations are away, and on which
    channel, depends on what was before."""

    def __init__(self, scenario: Scenario, network: Network) -> None:
        self.scenario = scenario
        self.network = network
        self.away: set[Port] = set()
        self.channels: dict[int, int] = {}
        """Of cells that are not where they began."""

    def steps(self, index: int, event: Event) -> Iterator[EventStep]:
        """What an event does."""
        origin, node = f"event.{index}.{event.action}", event.node
        match event.action:
            case "tc":
                yield BatchStep(do="tc", node=node, lines=list(event.tc or ()), origin=origin)
            case "ip":
                yield BatchStep(do="ip", node=node, lines=list(event.ip or ()), origin=origin)
            case "iw":
                for line in event.iw or ():
                    args = line.split(" ")
                    yield IwStep(do="iw", node=node, args=args, says=None, timeout_ns=radios.JOIN_NS, origin=origin)
            case "ethtool":
                for line in event.ethtool or ():
                    yield EthtoolStep(do="ethtool", node=node, args=line.split(" "), origin=origin)
            case "sysctl":
                for name, value in (event.sysctl or {}).items():
                    path = f"/proc/sys/{name.replace('.', '/')}"
                    yield WriteStep(do="write", node=node, path=path, value=value, origin=f"{origin}.{name}")
            case "kill" | "pause" | "resume" | "restart" as act:
                for name in getattr(event, act):
                    yield self._act(name, node, act, origin)
            case "power":
                yield from self._power(node, event.power == "on", origin)
            case "write":
                for path, value in (event.write or {}).items():
                    yield WriteStep(do="write", node=node, path=path, value=value, origin=origin)
            case _:
                yield from self._at_device(event, origin)

    def _act(self, name: str, node: str, act: Act, origin: str) -> AppStep:
        place = next(place for place, one in enumerate(self.scenario.app) if one.name == name)
        return AppStep(do="app", node=node, app=place, act=act, origin=origin)

    def _power(self, node: str, on: bool, origin: str) -> Iterator[EventStep]:
        """Cables first: what dies says nothing any more."""
        for port in self.network.wires(node):
            yield _write(port, "cable", str(port.link) if on else UNPLUGGED, origin)
        for one in self.scenario.app:
            if one.node == node:
                yield self._act(one.name, node, "restart" if on else "kill", origin)

    def _at_device(self, event: Event, origin: str) -> Iterator[EventStep]:
        port = next(port for port in self.network.of(event.node) if port.device == event.device)
        match event.action:
            case "link":
                lines = [f"link set dev {port.device} {event.link}"]
                lines += self._lost(port) if event.link == "up" else []
                yield BatchStep(do="ip", node=port.node, lines=lines, origin=origin)
            case "cable":
                cable = UNPLUGGED if event.cable == "pull" else str(port.link)
                yield _write(port, "cable", cable, origin)
            case "set":
                assert event.set is not None
                yield from self._change(port, event.set, origin)
            case "station":
                yield from self._station(port, event.station == "return", origin)
            case "channel":
                assert event.channel is not None
                index = self.network.cell(port)
                self.channels[index] = event.channel
                yield radios.switch(self.scenario.testbed.wifi[index], port, index, event.channel, origin)
            case _:
                yield from self._restart(port, origin)

    def _lost(self, port: Port) -> Iterator[str]:
        """What a device that comes up has lost when it went down."""
        if port.address.version == 6:
            yield f"addr replace {port.address} dev {port.device} nodad"
        for route in self.network.routes(port.node):
            if route.via in {str(other.address.ip) for other in self.network.others(port)}:
                yield f"route replace {route.subnet} via {route.via}"

    def _change(self, port: Port, change: LinkChange, origin: str) -> Iterator[EventStep]:
        """Keys of a link, at both its ends."""
        given = {name: value for name in links.CHANGEABLE if (value := getattr(change, name)) is not None}
        link = self.scenario.testbed.link[port.link].model_copy(update=given)
        for end in self.network.ports[port.link]:
            for name in given:
                for attribute, value in links.attributes(link, end.side, name):
                    yield _write(end, attribute, value, f"{origin}.{name}")
            if change.mtu is not None:
                line = f"link set dev {end.device} mtu {change.mtu}"
                yield BatchStep(do="ip", node=end.node, lines=[line], origin=f"{origin}.mtu")

    def _station(self, port: Port, joins: bool, origin: str) -> Iterator[EventStep]:
        yield radios.disconnect(port, origin)
        if joins:
            index = self.network.cell(port)
            yield radios.connect(self.scenario.testbed, index, port, origin, self.channels.get(index))
        self.away = self.away - {port} if joins else self.away | {port}

    def _restart(self, port: Port, origin: str) -> Iterator[EventStep]:
        """An access point, on the channel of its configuration, and those of its stations that were there."""
        index = self.network.cell(port)
        self.channels.pop(index, None)
        cell, switching = self.scenario.testbed.wifi[index], radios.switching(self.scenario)
        yield radios.access_point(cell, port, index, origin, switching)
        for station in self.network.others(port):
            if station not in self.away:
                yield from self._station(station, True, origin)


def _write(port: Port, name: str, value: object, origin: str) -> WriteStep:
    path = f"/sys/class/net/{port.device}/wire/{name}"
    return WriteStep(do="write", node=port.node, path=path, value=str(value), origin=origin)
