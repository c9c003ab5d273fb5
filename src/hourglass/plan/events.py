# SPDX-License-Identifier: Apache-2.0
"""Events: changes during the test, as steps at their times.

A device that goes down loses its routes, and with IPv6 its address; when it comes up again, those of the set-up are
restored. A cable that is pulled and plugged in changes neither, as with real NICs.

While the two NICs negotiate (`link_up`), the driver has no cable, and neither end has a carrier. The step that connects
it is a separate event. If the cable is pulled, or the device goes down, before that event, it does not happen.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import AppStep, BatchStep, EthtoolStep, EventStep, IwStep, WriteStep
from hourglass.contract.plan import PlanEvent as PlannedEvent
from hourglass.plan import links, radios, switches
from hourglass.plan.apps import filled
from hourglass.plan.network import Network
from hourglass.plan.port import Port
from hourglass.scenario import Event, LinkChange, Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.edge import away
from hourglass.scenario.quantities import seconds_ns
from hourglass.scenario.trace import Trace
from hourglass.scenario.values import PLACEHOLDER

Act = Literal["kill", "pause", "resume", "restart"]
UNPLUGGED = "-1"
"""No cable, in the driver's words (kernel/drivers/wire/wire_sysfs.c)."""
LINES = ("tc", "ip", "bridge", "ethtool")
"""Actions that are lines for a tool, and name a device."""
WIRE_ONLY = ("write", "cable", "set", "power")
"""Actions that need our drivers, or a kernel that serves this run alone."""
EVENTS_MAX = 100_000


def all_events(scenario: Scenario, network: Network, able: Capabilities, end_ns: int) -> list[PlannedEvent]:
    """Return all events in the order of their times; equal times keep the scenario's order. Raises InputError."""
    moments = sorted(_moments(scenario, network, able, end_ns), key=lambda moment: moment[0])
    if len(moments) > EVENTS_MAX:
        raise refusal("event", f"{len(moments)} events", f"must be at most {EVENTS_MAX}, including repetitions")
    builder = _Builder(scenario, network, modelled=able.nic == "wire")
    changes = [
        PlannedEvent(
            at_ns=at_ns,
            node=event.node,
            name=event.label or action_text(event),
            steps=list(builder.steps(at_ns, index, event)),
        )
        for at_ns, index, event in moments
    ]
    changes += [event for event in builder.later if event.at_ns < end_ns]
    delays = list(_delays(scenario, network, end_ns))
    if len(changes) + len(delays) > EVENTS_MAX:
        number = f"{len(delays)} changes of delays"
        raise refusal("testbed.link.trace.delay", number, f"must be at most {EVENTS_MAX}, with all events")
    return sorted([*delays, *changes], key=lambda event: event.at_ns)


def _delays(scenario: Scenario, network: Network, end_ns: int) -> Iterator[PlannedEvent]:
    """Yield the steps of all traces of delays within the test. They have no name, because they are no event of the
    scenario."""
    for number, ports in enumerate(network.ports):
        for port in ports:
            trace = away(scenario.testbed.link[number].trace, port.side)
            for at_ns, delay_ns in _repeated(trace, end_ns) if trace else ():
                step = _write(port, "delay_ns", delay_ns, f"testbed.link.{number}.trace")
                yield PlannedEvent(at_ns=at_ns, node=port.node, name="", steps=[step])


def _repeated(trace: Trace, end_ns: int) -> Iterator[tuple[int, int]]:
    """Yield (ns, ns of delay) of a trace's steps before the end of the test."""
    steps = [(seconds_ns(step.at_s), step.delay_ns) for step in trace.delay or ()]
    period_ns = seconds_ns(trace.repeat)
    starts = range(0, end_ns, period_ns) if period_ns and steps else (0,)
    for start in starts:
        yield from ((start + at_ns, delay_ns) for at_ns, delay_ns in steps if start + at_ns < end_ns)


def _refuse_other_devices(key: str, lines: Iterable[str], devices: Sequence[str]) -> None:
    """On a machine that outlives the run, an event may change only devices that the plan names and restores."""
    for line in lines:
        if not set(line.split(" ")) & set(devices):
            raise refusal(
                key, line, f"must name one of the node's devices ({', '.join(devices)}); other devices are not touched"
            )


def _moments(scenario: Scenario, network: Network, able: Capabilities, end_ns: int) -> Iterator[tuple[int, int, Event]]:
    for index, event in enumerate(scenario.event):
        if able.nic != "wire" and event.action in WIRE_ONLY:
            raise refusal(
                f"event.{index}.{event.action}", _value_text(event), "this engine cannot do this; remove the event"
            )
        if able.nic == "real" and event.action in LINES:
            lines, devices = getattr(event, event.action), [port.device for port in network.of(event.node)]
            _refuse_other_devices(f"event.{index}.{event.action}", lines, devices)
        first_ns, every_ns = seconds_ns(event.at), seconds_ns(event.every or 0)
        last_ns = first_ns + (event.count - 1) * every_ns
        if last_ns >= end_ns:
            key, value = ("count", event.count) if first_ns < end_ns else ("at", event.at)
            raise refusal(f"event.{index}.{key}", value, f"must be within the test, which ends at {end_ns / 10**9:g} s")
        for number in range(event.count):
            yield first_ns + number * every_ns, index, event


def action_text(event: Event) -> str:
    """Return the event's action as the scenario writes it."""
    value_text = _value_text(event)
    match event.action:
        case "link" | "cable":
            return f"{event.action} {value_text} {event.device}"
        case "set":
            return f"set {value_text} at {event.device}"
        case action:
            return f"{action} {value_text}"


def _value_text(event: Event) -> str:
    value = event.model_dump(mode="json")[event.action]
    if isinstance(value, dict):
        return ", ".join(f"{name}={_short(part)}" for name, part in value.items())
    return "; ".join(value) if isinstance(value, list) else str(value)


def _short(value: object) -> str:
    return "/".join(map(_short, value)) if isinstance(value, list) else str(value)


class _Builder:
    """Makes the steps of each event in turn. It tracks absent stations, changed channels, pulled cables and devices
    that are down, on which later events depend."""

    def __init__(self, scenario: Scenario, network: Network, modelled: bool) -> None:
        """`modelled`: NICs are; links need their time until they carry."""
        self.scenario = scenario
        self.network = network
        self.modelled = modelled
        self.away: set[Port] = set()
        self.channels: dict[int, int] = {}
        """Channels of cells that have changed them."""
        self.pulled: set[Port] = set()
        self.down: set[Port] = set()
        self.later: list[PlannedEvent] = []
        """Events that follow from those of the scenario: carriers, and programs that start with a node."""
        self.pending: dict[Port | str, PlannedEvent] = {}
        """The last such event of each port, and of each node's programs."""
        self.at_ns = 0

    def steps(self, at_ns: int, index: int, event: Event) -> Iterator[EventStep]:
        """Yield the steps of an event."""
        self.at_ns = at_ns
        origin, node = f"event.{index}.{event.action}", event.node
        match event.action:
            case "tc" | "ip" | "bridge" as tool:
                lines = self._lines(node, getattr(event, tool), origin)
                yield BatchStep(do=tool, node=node, lines=lines, origin=origin)
            case "iw":
                for line in self._lines(node, event.iw, origin):
                    args = line.split(" ")
                    yield IwStep(do="iw", node=node, args=args, says=None, timeout_ns=radios.JOIN_NS, origin=origin)
            case "ethtool":
                for line in self._lines(node, event.ethtool, origin):
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

    def _lines(self, node: str, lines: Sequence[str] | None, origin: str) -> list[str]:
        """Return a tool's lines with addresses for placeholders."""
        for line in lines or ():
            if not self.modelled and any(match["mac"] for match in PLACEHOLDER.finditer(line)):
                raise refusal(origin, line, "this engine does not know MAC addresses; write the address itself")
        return [filled(line, node, self.network) for line in lines or ()]

    def _act(self, name: str, node: str, act: Act, origin: str) -> AppStep:
        number = next(number for number, app in enumerate(self.scenario.app) if app.name == name)
        return AppStep(do="app", node=node, app=number, act=act, origin=origin)

    def _power(self, node: str, on: bool, origin: str) -> Iterator[EventStep]:
        """Cables come first, so that dying programs send nothing. Programs start when all cables carry."""
        ports = self.network.wires(node)
        for port in ports:
            yield from self._plug(port, origin) if on else self._pull(port, origin)
        programs = [app.name for app in self.scenario.app if app.node == node]
        acts = [self._act(name, node, "restart" if on else "kill", origin) for name in programs]
        self._cancel(node)
        if on and acts and (wait_ns := max(map(self._negotiation_ns, ports), default=0)):
            self._later(node, wait_ns, node, "programs start", acts)
        else:
            yield from acts

    def _pull(self, port: Port, origin: str) -> Iterator[EventStep]:
        self.pulled.add(port)
        self._cancel(port)
        yield _write(port, "cable", UNPLUGGED, origin)

    def _plug(self, port: Port, origin: str) -> Iterator[EventStep]:
        """Yield the step that connects the cable, or leaves it until both ends have negotiated."""
        negotiates = port in self.pulled and port not in self.down and self._negotiation_ns(port) > 0
        self.pulled.discard(port)
        if negotiates:
            self._negotiate(port, origin)
        yield _write(port, "cable", UNPLUGGED if self._waits(port) else str(port.link), origin)

    def _negotiation_ns(self, port: Port) -> int:
        return (self.scenario.testbed.link[port.link].link_up or 0) if self.modelled else 0

    def _negotiate(self, port: Port, origin: str) -> None:
        step = _write(port, "cable", str(port.link), origin)
        self._later(port, self._negotiation_ns(port), port.node, f"carrier {port.device}", [step])

    def _later(self, key: Port | str, wait_ns: int, node: str, name: str, steps: Sequence[EventStep]) -> None:
        event = PlannedEvent(at_ns=self.at_ns + wait_ns, node=node, name=name, steps=list(steps))
        self.pending[key] = event
        self.later.append(event)

    def _waits(self, key: Port | str) -> bool:
        return key in self.pending and self.pending[key].at_ns >= self.at_ns

    def _cancel(self, key: Port | str) -> None:
        if self._waits(key):
            self.later.remove(self.pending[key])
        self.pending.pop(key, None)

    def _link(self, port: Port, up: bool, origin: str) -> Iterator[EventStep]:
        """Yield the steps that set a device up or down. Without a cable, it comes up without a carrier."""
        comes_up = up and port in self.down
        if comes_up and port not in self.pulled and self._negotiation_ns(port) > 0:
            yield _write(port, "cable", UNPLUGGED, origin)
            self._negotiate(port, origin)
        yield links.change(port.node, port.device, origin, state="up" if up else "down")
        if up:
            self.down.discard(port)
            yield from self._restore(port, origin)
        else:
            self.down.add(port)
            self._cancel(port)

    def _at_device(self, event: Event, origin: str) -> Iterator[EventStep]:
        port = next(port for port in self.network.of(event.node) if port.device == event.device)
        match event.action:
            case "link":
                yield from self._link(port, event.link == "up", origin)
            case "cable":
                yield from self._pull(port, origin) if event.cable == "pull" else self._plug(port, origin)
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

    def _restore(self, port: Port, origin: str) -> Iterator[EventStep]:
        """Yield the addresses and routes that a device lost when it went down."""
        interfaces = [each for each in self.network.interfaces(port.node) if each.link == port.link]
        for interface in interfaces:
            if interface.address.version == 6:
                yield links.address(interface, "replace", origin)
        gateways = {str(other.address.ip) for each in interfaces for other in self.network.far_ports(each)}
        for route in self.network.routes(port.node):
            if route.via in gateways:
                yield links.route(port.node, route, "replace", origin)

    def _change(self, port: Port, change: LinkChange, origin: str) -> Iterator[EventStep]:
        """Yield the changed keys of a link, at both its ends."""
        changes = {name: value for name in links.CHANGEABLE if (value := getattr(change, name)) is not None}
        link = self.scenario.testbed.link[port.link].model_copy(update=changes)
        for end in self.network.ports[port.link]:
            for name in changes:
                for attribute, value in links.attributes(link, end.side, name):
                    yield _write(end, attribute, value, f"{origin}.{name}")
            devices = [end.device, *(vlan.name for vlan in self.network.vlan_devices(end))]
            for device in devices if change.mtu is not None else ():
                yield links.change(end.node, device, f"{origin}.mtu", mtu=change.mtu)

    def _station(self, port: Port, joins: bool, origin: str) -> Iterator[EventStep]:
        yield radios.disconnect(port, origin)
        if joins:
            index = self.network.cell(port)
            yield radios.connect(self.scenario.testbed, index, port, origin, self.channels.get(index))
        self.away = self.away - {port} if joins else self.away | {port}

    def _restart(self, port: Port, origin: str) -> Iterator[EventStep]:
        """Yield the steps of an access point on its configured channel, as a port of its switch with its VLANs, and
        of those of its stations that were present."""
        index = self.network.cell(port)
        self.channels.pop(index, None)
        switching = radios.switching(self.scenario)
        yield radios.access_point(self.scenario.testbed, self.network, port, origin, switching)
        yield from switches.vlans(self.network, port, origin)
        for station in self.network.cells[index][1:]:
            if station not in self.away:
                yield from self._station(station, True, origin)


def _write(port: Port, name: str, value: object, origin: str) -> WriteStep:
    path = f"/sys/class/net/{port.device}/wire/{name}"
    return WriteStep(do="write", node=port.node, path=path, value=str(value), origin=origin)
