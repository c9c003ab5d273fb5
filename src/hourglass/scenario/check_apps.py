# SPDX-License-Identifier: Apache-2.0
"""What no single value of a program shows: its node, the programs it waits for, the nodes that its command names.
Fills in names and expectations."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from hourglass.errors import closest
from hourglass.scenario.app import App, Apps
from hourglass.scenario.app_values import APPS_MAX, DEBIAN_ROOT, RUNNING
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.check_wifi import devices as radios
from hourglass.scenario.testbed import Testbed

NONE = "none"
"""The test of a scenario that consists of programs."""
END_S = 600
"""When programs that are the whole test are cut off, unless `test.length` says it."""

PLACEHOLDER = re.compile(r"\{(\{?)([A-Za-z][A-Za-z0-9_-]*)\.([A-Za-z][A-Za-z0-9_-]*)\}(\}?)", re.ASCII)
"""{node.address} and {{node.address}}; other braces are the program's."""
ADDRESS, ADDRESS6 = "address", "address6"


def resolve(apps: Apps, rows: tuple[App, ...], testbed: Testbed) -> tuple[App, ...]:
    """The programs with every default spelled out. Raises InputError."""
    nodes = [node.name for node in testbed.node]
    if len(rows) > APPS_MAX:
        raise refusal("app", f"{len(rows)} programs", f"at most {APPS_MAX}")
    if apps.packages and not any((one.root or apps.root).startswith(DEBIAN_ROOT) for one in rows) and rows:
        raise refusal(
            "apps.packages", list(apps.packages), f'goes with a root of Debian\'s packages, "{DEBIAN_ROOT}12"'
        )
    named = _named(rows)
    names = [one.name for one in named]
    for index, one in enumerate(named):
        key = f"app.{index}"
        check_node(f"{key}.node", one.node, nodes)
        if one.name in names[:index]:
            raise refusal(f"{key}.name", one.name, "is the name of another program")
        for other in one.after:
            if other == one.name or other not in names:
                known = several(name for name in names if name != one.name)
                raise refusal(f"{key}.after", other, f"no other program. {closest(other, names)}Programs: {known}")
        if one.stop is not None and one.stop <= one.start:
            raise refusal(f"{key}.stop", one.stop, f"after its start, {one.start} s")
        for text in words(one):
            _check_placeholders(key, text, testbed)
    _check_order(named)
    return tuple(_expecting(one) for one in named)


def words(app: App) -> Iterator[str]:
    """The texts in which names of nodes stand for addresses."""
    yield from app.command
    yield from app.env.values()


def _named(rows: Sequence[App]) -> list[App]:
    """Each with a name: its own, or its program's, and a number if it is not the first of that."""
    taken = {one.name for one in rows if one.name}
    named = []
    for one in rows:
        name = one.name
        if not name:
            base = (
                re.sub(r"[^A-Za-z0-9_-]", "-", PurePosixPath(one.command[0]).name)[:28].lstrip("-_0123456789") or "app"
            )
            numbers = (base if count == 1 else f"{base}-{count}" for count in range(1, APPS_MAX + 2))
            name = next(candidate for candidate in numbers if candidate not in taken)
            taken.add(name)
        named.append(one.model_copy(update={"name": name}))
    return named


def _check_placeholders(key: str, text: str, testbed: Testbed) -> None:
    for opening, node, what, _ in PLACEHOLDER.findall(text):
        if opening:
            continue
        shown = f"{{{node}.{what}}}"
        check_node(f"{key}.command", node, [one.name for one in testbed.node])
        places = [*(end for link in testbed.link for end in link.ends), *(place for _, place in radios(testbed))]
        devices = [place.device for place in places if place.node == node]
        if what not in (ADDRESS, ADDRESS6, *devices):
            allowed = f"after the node {ADDRESS}, {ADDRESS6} or a device of it: {several(devices)}"
            raise refusal(f"{key}.command", shown, f"{allowed}; {{{shown}}} is left as {shown}")
        if what == ADDRESS6 and testbed.ip != 6:
            raise refusal(f"{key}.command", shown, f"the testbed has IPv{testbed.ip}: {ADDRESS}, or testbed.ip = 6")


def _check_order(apps: Sequence[App]) -> None:
    """Nobody waits for himself."""
    left = {one.name: set(one.after) for one in apps}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    if left:
        index = next(index for index, one in enumerate(apps) if one.name in left)
        raise refusal(f"app.{index}.after", list(apps[index].after), f"programs wait for each other: {several(left)}")


def _expecting(app: App) -> App:
    listens = app.ready.listen if app.ready else None
    expect = app.expect
    if expect is None:
        expect = RUNNING if listens or app.stop is not None else 0
    return app.model_copy(update={"expect": expect})
