# SPDX-License-Identifier: Apache-2.0
"""Programs: the roots they are taken from, a room for each node and root, what is started when.

A room's /etc says what the testbed is: every node's name with the address by which this node reaches it. There is no
name server: what no file answers is not there.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from hourglass.contract.plan import WriteStep
from hourglass.contract.plan_apps import (
    App,
    AtStart,
    File,
    Later,
    Ready,
    Room,
    Root,
    WhenDone,
    WhenListening,
    WhenSaid,
    WhenThere,
)
from hourglass.errors import InputError
from hourglass.plan.network import Network
from hourglass.scenario import Scenario
from hourglass.scenario.app import App as Wanted
from hourglass.scenario.app_roots import root_name, root_names, roots
from hourglass.scenario.app_values import SIGNALS
from hourglass.scenario.blame import refusal
from hourglass.scenario.check_apps import ADDRESS, ADDRESS6, NONE, PLACEHOLDER
from hourglass.scenario.units import seconds_ns

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM": "dumb",
    "TZ": "UTC0",
}
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\nethers: files\n"
RESOLVER = "# No name server is part of this testbed: /etc/hosts has the nodes.\n"
CPU = "/proc/hourglass/cpu"
"""Takes ns per call and ps per byte (`kernel/hooks/program_cpu.c`)."""
READABLE, RUNNABLE = 0o644, 0o755


@dataclass(frozen=True)
class Programs:
    """A plan's part."""

    roots: list[Root]
    rooms: list[Room]
    apps: list[App]
    end: bool


def programs(scenario: Scenario, network: Network, end_ns: int, able: bool) -> Programs:
    """The programs of a scenario. `able`: whether whoever executes the plan can run some. Raises InputError."""
    wanted = scenario.app
    if wanted and not able:
        raise refusal("app", f"{len(wanted)} programs", "this engine runs none: leave them out")
    names = root_names(scenario)
    places = list(dict.fromkeys((one.node, root_name(scenario, one)) for one in wanted))
    ids = {one.name: place for place, one in enumerate(wanted)}
    rooms = [_room(scenario, network, node, name, names.index(name)) for node, name in places]
    waited = [not one.background for one in wanted]
    if not any(waited):
        waited = [one.stop is not None for one in wanted]  # where all go on running, the last that is stopped ends it
    apps = [
        _app(index, one, places.index((one.node, root_name(scenario, one))), ids, scenario, network, end_ns, wait)
        for index, (one, wait) in enumerate(zip(wanted, waited, strict=True))
    ]
    waits = scenario.test.name == NONE and any(waited)
    return Programs(roots(scenario), rooms, apps, waits)


def cpus(scenario: Scenario, able: bool) -> Iterator[WriteStep]:
    """The CPUs of nodes that have one. `able`: as of `programs`."""
    for number, node in enumerate(scenario.testbed.node):
        if (cpu := node.cpu) is None:
            continue
        key = f"testbed.node.{number}.cpu"
        if not able:
            raise refusal(key, cpu.model_dump(mode="json"), "this engine runs no programs: leave it out")
        value = f"{cpu.syscall} {cpu.per_byte}"
        yield WriteStep(do="write", node=node.name, path=CPU, value=value, origin=key)


def _room(scenario: Scenario, network: Network, node: str, name: str, root: int) -> Room:
    files = [
        _file("/etc/hosts", hosts(network, node)),
        _file("/etc/hostname", f"{node}\n"),
        _file("/etc/resolv.conf", RESOLVER),
        _file("/etc/nsswitch.conf", NSSWITCH),
    ]
    for one in scenario.app:
        if (one.node, root_name(scenario, one)) == (node, name):
            for path, content in one.files.items():
                files.append(_file(path, content.content, RUNNABLE if content.executable else READABLE))
    return Room(node=node, root=root, files=files)


def _file(path: str, content: str | bytes, mode: int = READABLE) -> File:
    held = content.encode() if isinstance(content, str) else content
    return File(path=str(PurePosixPath(path)), mode=mode, content=_coded(held))


def _coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def hosts(network: Network, node: str) -> str:
    """/etc/hosts of a node."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for name in network.nodes:
        addresses = dict.fromkeys([address(network, node, name), *(str(port.address.ip) for port in network.of(name))])
        lines += [f"{one} {name}" for one in addresses]
    return "\n".join(lines) + "\n"


def address(network: Network, node: str, other: str) -> str:
    """The address by which a node reaches another; of one it does not reach, and its own, the first."""
    if node != other:
        try:
            return str(network.arrival(node, other).address.ip)
        except InputError:
            pass
    return str(network.of(other)[0].address.ip)


def filled(text: str, node: str, network: Network) -> str:
    """A word of a command with the addresses it asks for."""

    def answer(match: re.Match[str]) -> str:
        opening, other, what, closing = match.groups()
        if opening:
            return match[0][1:-1] if closing else match[0]
        if what in (ADDRESS, ADDRESS6):
            return address(network, node, other) + closing
        port = next(port for port in network.of(other) if port.device == what)
        return str(port.address.ip) + closing

    return PLACEHOLDER.sub(answer, text)


def _app(
    index: int,
    one: Wanted,
    room: int,
    ids: dict[str, int],
    scenario: Scenario,
    network: Network,
    end_ns: int,
    waited: bool,
) -> App:
    key, ends = f"app.{index}", f"within the test, which ends at {end_ns / 10**9:g} s"
    if seconds_ns(one.start) >= end_ns:
        raise refusal(f"{key}.start", one.start, ends)
    if one.stop is not None and seconds_ns(one.stop) > end_ns:
        raise refusal(f"{key}.stop", one.stop, ends)
    env = ENVIRONMENT | {"HOME": "/root" if one.user in ("root", "0", "0:0") else "/"}
    return App(
        id=index,
        name=one.name,
        room=room,
        command=[filled(word, one.node, network) for word in one.command],
        env=env | {name: filled(text, one.node, network) for name, text in one.env.items()},
        folder=one.folder,
        user=one.user,
        stdin=_coded(one.stdin.encode()),
        start_ns=seconds_ns(one.start),
        after=sorted(ids[name] for name in set(one.after)),
        stop_ns=None if one.stop is None else seconds_ns(one.stop),
        stop_signal=SIGNALS[one.signal],
        grace_ns=one.grace,
        ready=_ready(one),
        ready_ns=seconds_ns(one.ready.within if one.ready else 10),
        restarts=one.restart,
        restart_ns=one.restart_delay,
        background=not waited,
        output_bytes=scenario.apps.output,
        collect=list(one.collect),
        origin=key,
    )


def _ready(one: Wanted) -> Ready:
    ready = one.ready
    if ready is None:
        return AtStart(when="start")
    if ready.listen:
        protocol, _, port = ready.listen.partition(":")
        return WhenListening(when="listen", protocol="udp" if protocol == "udp" else "tcp", port=int(port))
    if ready.output:
        return WhenSaid(when="output", text=ready.output)
    if ready.file:
        return WhenThere(when="file", path=ready.file)
    return WhenDone(when="exit") if ready.exit else Later(when="delay", ns=ready.delay or 0)
