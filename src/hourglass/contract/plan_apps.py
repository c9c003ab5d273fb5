# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan: the roots that they are taken from, the rooms in which they run, what is started when.

    root ----> room (a node's file system: the root below, memory above) ----> apps

A root is the engine's affair: the agent is given it as a folder. The agent's `app_plan.rs` is the other end.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from hourglass.contract.plan_values import U16, U32, Ns, Part

STATUS_MAX: Final = 255
SIGNAL_MAX: Final = 64
MODE_MAX: Final = 0o7777


def _base64(text: str) -> str:
    """Equal bytes are equal texts."""
    try:
        if base64.b64encode(base64.b64decode(text, validate=True)).decode() == text:
            return text
    except (binascii.Error, ValueError):
        pass
    raise ValueError("is not base64 (RFC 4648, with padding)")


Content = Annotated[str, AfterValidator(_base64)]
"""Bytes, in base64."""
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\x00]*$")]
AppName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
"""It names the files of the program's output."""


class Root(Part):
    """What programs are taken from: a `folder`, an OCI image `archive`, a release of `debian` with the `packages`, or
    the `host`'s own. `place`: the path, or the release's number."""

    kind: Literal["folder", "archive", "debian", "host"]
    place: str
    packages: list[str]


class File(Part):
    """A file of root's in a room."""

    path: AbsolutePath
    mode: Annotated[int, Field(ge=0, le=MODE_MAX)]
    content: Content


class Room(Part):
    """The file system of a node's programs: a root, to be read, and above it memory, to be written. Its programs share
    processes, host name and mounts. `root`: the place in `roots`. Of two `files` of one path the later one is there."""

    node: str
    root: U32
    files: list[File]


class AtStart(Part):
    """At once."""

    when: Literal["start"]


class WhenListening(Part):
    """A socket of the node listens there (UDP: is bound)."""

    when: Literal["listen"]
    protocol: Literal["tcp", "udp"]
    port: U16


class WhenSaid(Part):
    """A line of either output contains the text."""

    when: Literal["output"]
    text: Annotated[str, Field(min_length=1)]


class WhenThere(Part):
    """A file is there."""

    when: Literal["file"]
    path: AbsolutePath


class Later(Part):
    """So long after its start."""

    when: Literal["delay"]
    ns: Ns


class WhenDone(Part):
    """It has ended, with status 0."""

    when: Literal["exit"]


Ready = Annotated[AtStart | WhenListening | WhenSaid | WhenThere | Later | WhenDone, Field(discriminator="when")]


class App(Part):
    """A program. It starts at `start_ns`, and not before all those of `after` (ids) are ready; it has `ready_ns` from
    its start to be ready itself.

    At `stop_ns` (null: only when the test ends) it gets `stop_signal` and after `grace_ns` SIGKILL. If it ends by
    itself before, it is started again, `restarts` times, `restart_ns` after its end. `room`: the place in `rooms`.
    `folder`: where it starts. `user`: a name, a number or UID:GID. `stdin`: what it reads; nothing: /dev/null.
    `output_bytes`: how much is kept of each of its outputs. `collect`: globs of files that are kept. `background`: the
    test does not wait for its end."""

    id: U16
    name: AppName
    room: U32
    command: Annotated[list[str], Field(min_length=1)]
    env: dict[str, str]
    folder: AbsolutePath
    user: str
    stdin: Content
    start_ns: Ns
    after: list[U16]
    stop_ns: Ns | None
    stop_signal: Annotated[int, Field(ge=1, le=SIGNAL_MAX)]
    grace_ns: Ns
    ready: Ready
    ready_ns: Ns
    restarts: U32
    restart_ns: Ns
    background: bool
    output_bytes: Ns
    collect: list[AbsolutePath]
    origin: str | None


def app_problems(
    nodes: set[str], roots: Sequence[Root], rooms: Sequence[Room], apps: Sequence[App], end_ns: int
) -> Iterator[str]:
    """What no single part shows; the agent checks the same."""
    for room in rooms:
        if room.node not in nodes:
            yield f"a room names the node {room.node}, which is not in nodes"
        if room.root >= len(roots):
            yield f"a room names root {room.root}, which is not there"
    if len({(room.node, room.root) for room in rooms}) != len(rooms):
        yield "two rooms are the same"
    if len({app.name for app in apps}) != len(apps):
        yield "two apps are the same"
    for place, app in enumerate(apps):
        if app.id != place:
            yield f"app {app.name} has the id {app.id}, not its place {place}"
        if app.room >= len(rooms):
            yield f"app {app.name} is in room {app.room}, which is not there"
        if any(one >= len(apps) or one == place for one in app.after):
            yield f"app {app.name} comes after one that is not there"
        if not app.start_ns < end_ns:
            yield f"app {app.name} starts at the end of the test or later"
        if app.stop_ns is not None and not app.start_ns < app.stop_ns <= end_ns:
            yield f"app {app.name}: start_ns < stop_ns <= end_ns does not hold"
