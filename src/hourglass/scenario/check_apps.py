# SPDX-License-Identifier: Apache-2.0
"""Checks of programs across tables: the node, the programs it waits for, the nodes in its command. Fills in names
and expectations."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from hourglass.errors import closest
from hourglass.scenario import check_lan
from hourglass.scenario.app_values import APPS_MAX, DEBIAN_ROOT, RUNNING
from hourglass.scenario.apps import App, Apps
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.check_wifi import devices as radios
from hourglass.scenario.testbed import Testbed
from hourglass.scenario.values import PLACEHOLDER, NodeDevice

NONE = "none"
"""The test of a scenario that consists of programs."""
END_S = 600
"""When programs without another test are stopped, unless `test.length` is set."""

ADDRESS, ADDRESS6 = "address", "address6"


def resolve(apps: Apps, rows: tuple[App, ...], testbed: Testbed) -> tuple[App, ...]:
    """Return the programs with every default spelled out. Raises InputError."""
    nodes = [node.name for node in testbed.node]
    if len(rows) > APPS_MAX:
        raise refusal("app", f"{len(rows)} programs", f"at most {APPS_MAX}")
    if apps.packages and not any((app.root or apps.root).startswith(DEBIAN_ROOT) for app in rows) and rows:
        raise refusal(
            "apps.packages", list(apps.packages), f'needs a root of Debian\'s packages: apps.root = "{DEBIAN_ROOT}12"'
        )
    named = _named(rows)
    names = [app.name for app in named]
    for index, app in enumerate(named):
        key = f"app.{index}"
        check_node(f"{key}.node", app.node, nodes)
        if app.name in names[:index]:
            raise refusal(f"{key}.name", app.name, "is already the name of another program")
        for other in app.after:
            if other == app.name or other not in names:
                program_names = several(name for name in names if name != app.name)
                raise refusal(
                    f"{key}.after",
                    other,
                    f"no other program has this name. {closest(other, names)}Programs: {program_names}",
                )
        if app.stop is not None and app.stop <= app.start:
            raise refusal(f"{key}.stop", app.stop, f"must be after its start, {app.start} s")
        for text in texts(app):
            check_placeholders(f"{key}.command", text, testbed)
    _check_order(named)
    return tuple(_expecting(app) for app in named)


def texts(app: App) -> Iterator[str]:
    """Return the texts in which names of nodes become addresses."""
    yield from app.command
    yield from app.env.values()


def _named(rows: Sequence[App]) -> list[App]:
    """Return the programs with names: the given one, or the command's, numbered if it recurs."""
    used = {app.name for app in rows if app.name}
    named = []
    for app in rows:
        name = app.name
        if not name:
            base = (
                re.sub(r"[^A-Za-z0-9_-]", "-", PurePosixPath(app.command[0]).name)[:28].lstrip("-_0123456789") or "app"
            )
            numbers = (base if count == 1 else f"{base}-{count}" for count in range(1, APPS_MAX + 2))
            name = next(candidate for candidate in numbers if candidate not in used)
            used.add(name)
        named.append(app.model_copy(update={"name": name}))
    return named


def check_placeholders(key: str, text: str, testbed: Testbed) -> None:
    """Raise `InputError` for a placeholder whose node or device does not exist."""
    for opening, node, suffix, mac, _ in PLACEHOLDER.findall(text):
        if opening:
            continue
        placeholder = f"{{{node}.{suffix}{mac}}}"
        check_node(key, node, [testbed_node.name for testbed_node in testbed.node])
        devices = [*(end for link in testbed.link for end in link.ends), *(device for _, device in radios(testbed))]
        device_names = [device.device for device in devices if device.node == node]
        if mac and suffix not in device_names:
            raise refusal(
                key, placeholder, f"{node} has no device {suffix}. Devices: {several(device_names) or 'none'}"
            )
        if not mac and node in check_lan.switches(testbed.node):
            raise refusal(key, placeholder, f"{node} is a switch, which has no address")
        if not mac and NodeDevice(node, suffix) in check_lan.trunks(testbed):
            reason = f"is a trunk with an address for each VLAN; {{{node}.{ADDRESS}}} is the one that this node reaches"
            raise refusal(key, placeholder, reason)
        if suffix not in (ADDRESS, ADDRESS6, *device_names):
            allowed = (
                f"a node's name is followed by {ADDRESS}, {ADDRESS6} or one of its devices: {several(device_names)}"
            )
            raise refusal(key, placeholder, f"{allowed}; write {{{placeholder}}} for the text {placeholder}")
        if suffix == ADDRESS6 and testbed.ip != 6:
            allowed = f"the testbed has IPv{testbed.ip}; use {ADDRESS}, or set testbed.ip = 6"
            raise refusal(key, placeholder, allowed)


def _check_order(apps: Sequence[App]) -> None:
    """Refuse programs that wait for each other in a circle."""
    waiting = {app.name: set(app.after) for app in apps}
    while free := [name for name, awaited in waiting.items() if not awaited & waiting.keys()]:
        for name in free:
            del waiting[name]
    if waiting:
        index = next(index for index, app in enumerate(apps) if app.name in waiting)
        raise refusal(
            f"app.{index}.after", list(apps[index].after), f"these programs wait for each other: {several(waiting)}"
        )


def _expecting(app: App) -> App:
    listens = app.ready.listen if app.ready else None
    expect = app.expect
    if expect is None:
        expect = RUNNING if listens or app.stop is not None else 0
    return app.model_copy(update={"expect": expect})
