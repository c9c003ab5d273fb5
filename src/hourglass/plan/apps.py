# SPDX-License-Identifier: Apache-2.0
"""Programs: their roots, a container for each node and root, the order of their starts.

A container's /etc describes the testbed: every node's name with the address by which this node reaches it. There is no
name server, so names that no file has do not resolve.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from hourglass.contract.plan import WriteStep
from hourglass.contract.plan.apps import (
    Container,
    ContainerFile,
    Mount,
    PlanApp,
    Ready,
    ReadyAfterDelay,
    ReadyAtStart,
    ReadyOnExit,
    ReadyOnOutput,
    ReadyWhenFileExists,
    ReadyWhenListening,
    Root,
)
from hourglass.errors import InputError
from hourglass.plan.network import Network
from hourglass.scenario import Scenario
from hourglass.scenario.app_roots import mounted_folders, root_name, root_names, roots
from hourglass.scenario.app_values import SIGNALS
from hourglass.scenario.apps import App as ScenarioApp
from hourglass.scenario.blame import refusal
from hourglass.scenario.check_apps import ADDRESS, ADDRESS6, NONE
from hourglass.scenario.quantities import seconds_ns
from hourglass.scenario.values import PLACEHOLDER

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM": "dumb",
    "TZ": "UTC0",
}
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\nethers: files\n"
RESOLVER = "# No name server is part of this testbed: /etc/hosts has the nodes.\n"
LOOPBACK = "127.0.0.1"
CPU = "/proc/hourglass/cpu"
"""The driver parameters: ns per call and ps per byte (`kernel/hooks/program_cpu.c`)."""
READABLE, RUNNABLE = 0o644, 0o755


@dataclass(frozen=True)
class Programs:
    """The programs' part of a plan."""

    roots: list[Root]
    rooms: list[Container]
    apps: list[PlanApp]
    end: bool


def programs(scenario: Scenario, network: Network, end_ns: int, able: bool) -> Programs:
    """Return the programs of a scenario. `able`: whether the engine can run programs. Raises InputError."""
    requested = scenario.app
    if requested and not able:
        raise refusal("app", f"{len(requested)} programs", "this engine runs no programs; remove them")
    names = root_names(scenario)
    containers = list(dict.fromkeys((app.node, root_name(scenario, app)) for app in requested))
    numbers = {app.name: number for number, app in enumerate(requested)}
    sources = roots(scenario)
    rooms = [_room(scenario, network, node, name, names.index(name), sources) for node, name in containers]
    waited = [not app.background for app in requested]
    if not any(waited):
        waited = [app.stop is not None for app in requested]  # all of them keep running, so the last stop ends the test
    apps = [
        _app(
            index,
            app,
            containers.index((app.node, root_name(scenario, app))),
            numbers,
            scenario,
            network,
            end_ns,
            is_waited_for,
        )
        for index, (app, is_waited_for) in enumerate(zip(requested, waited, strict=True))
    ]
    ends_with_programs = scenario.test.name == NONE and any(waited)
    return Programs(sources, rooms, apps, ends_with_programs)


def cpus(scenario: Scenario, able: bool) -> Iterator[WriteStep]:
    """Return the CPUs of nodes that have one. `able`: as of `programs`."""
    for number, node in enumerate(scenario.testbed.node):
        if (cpu := node.cpu) is None:
            continue
        key = f"testbed.node.{number}.cpu"
        if not able:
            allowed = "this engine's nodes have real CPUs; remove the node's CPU, or use --engine virtual"
            raise refusal(key, cpu.model_dump(mode="json"), allowed)
        value = f"{cpu.syscall} {cpu.per_byte} {cpu.received} {cpu.sent} {cpu.timer}"
        yield WriteStep(do="write", node=node.name, path=CPU, value=value, origin=key)


def _room(scenario: Scenario, network: Network, node: str, name: str, root: int, sources: list[Root]) -> Container:
    files = [
        _file("/etc/hosts", hosts(network, node)),
        _file("/etc/hostname", f"{node}\n"),
        _file("/etc/resolv.conf", RESOLVER),
    ]
    if sources[root].kind != "debian":  # packages of Debian, such as libnss-mdns, change theirs
        files.append(_file("/etc/nsswitch.conf", NSSWITCH))
    folders = mounted_folders(scenario)
    mounts: dict[str, int] = {}
    for app in scenario.app:
        if (app.node, root_name(scenario, app)) == (node, name):
            for path, content in app.files.items():
                files.append(_file(path, content.content, RUNNABLE if content.executable else READABLE))
            for path, folder in app.mounts.items():
                mounts[str(PurePosixPath(path))] = len(root_names(scenario)) + folders.index(folder)
    ordered = [Mount(path=path, root=mounts[path]) for path in sorted(mounts)]
    return Container(node=node, root=root, mounts=ordered, files=files)


def _file(path: str, content: str | bytes, mode: int = READABLE) -> ContainerFile:
    content_bytes = content.encode() if isinstance(content, str) else content
    return ContainerFile(path=str(PurePosixPath(path)), mode=mode, content=_coded(content_bytes))


def _coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def hosts(network: Network, node: str) -> str:
    """Return /etc/hosts of a node."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for name in (name for name in network.nodes if name not in network.lans.switches):
        reached = address(network, node, name)
        addresses = dict.fromkeys([reached, *(str(port.address.ip) for port in network.interfaces(name))])
        lines += [f"{address_text} {name}" for address_text in addresses]
    return "\n".join(lines) + "\n"


def address(network: Network, node: str, other: str) -> str:
    """Return the address by which a node reaches another. An unreachable node, and the node itself, have their first
    address; without devices, the loopback address."""
    if node != other:
        try:
            return str(network.arrival(node, other).address.ip)
        except InputError:
            pass
    return next((str(port.address.ip) for port in network.interfaces(other)), LOOPBACK)


def filled(text: str, node: str, network: Network) -> str:
    """Return a text of a node, as a word of a command, with its placeholders replaced by addresses."""

    def answer(match: re.Match[str]) -> str:
        opening, other, device, is_mac, closing = match.groups()
        if opening:
            return match[0][1:-1] if closing else match[0]
        if device in (ADDRESS, ADDRESS6) and not is_mac:
            return address(network, node, other) + closing
        port = next(port for port in network.of(other) if port.device == device)
        return (port.mac if is_mac else str(port.address.ip)) + closing

    return PLACEHOLDER.sub(answer, text)


def _app(
    index: int,
    app: ScenarioApp,
    room: int,
    ids: dict[str, int],
    scenario: Scenario,
    network: Network,
    end_ns: int,
    is_waited_for: bool,
) -> PlanApp:
    key, ends = f"app.{index}", f"must be within the test, which ends at {end_ns / 10**9:g} s"
    if seconds_ns(app.start) >= end_ns:
        raise refusal(f"{key}.start", app.start, ends)
    if app.stop is not None and seconds_ns(app.stop) > end_ns:
        raise refusal(f"{key}.stop", app.stop, ends)
    env = dict(ENVIRONMENT)
    if app.user in ("root", "0", "0:0"):
        env["HOME"] = "/root"
    elif app.user[0].isdigit():
        env["HOME"] = "/tmp"  # the agent looks up that of a name
    return PlanApp(
        id=index,
        name=app.name,
        room=room,
        command=[filled(word, app.node, network) for word in app.command],
        env=env | {name: filled(text, app.node, network) for name, text in app.env.items()},
        folder=app.folder,
        user=app.user,
        stdin=_coded(app.stdin.encode()),
        start_ns=seconds_ns(app.start),
        after=sorted(ids[name] for name in set(app.after)),
        stop_ns=None if app.stop is None else seconds_ns(app.stop),
        stop_signal=SIGNALS[app.signal],
        grace_ns=app.grace,
        ready=_ready(app),
        ready_ns=seconds_ns(app.ready.within if app.ready else 10),
        restarts=app.restart,
        restart_ns=app.restart_delay,
        background=not is_waited_for,
        output_bytes=scenario.apps.output,
        collect=list(app.collect),
        origin=key,
    )


def _ready(app: ScenarioApp) -> Ready:
    ready = app.ready
    if ready is None:
        return ReadyAtStart(when="start")
    if ready.listen:
        protocol, _, port = ready.listen.partition(":")
        return ReadyWhenListening(when="listen", protocol="udp" if protocol == "udp" else "tcp", port=int(port))
    if ready.output:
        return ReadyOnOutput(when="output", text=ready.output)
    if ready.file:
        return ReadyWhenFileExists(when="file", path=ready.file)
    return ReadyOnExit(when="exit") if ready.exit else ReadyAfterDelay(when="delay", ns=ready.delay or 0)
