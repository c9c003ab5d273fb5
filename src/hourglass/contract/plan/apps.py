# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan: their roots, their containers (`rooms` in the plan), and their start conditions.

    root ----> container (a node's file system: the root below, memory above) ----> apps

The engine provides each root to the agent as a folder.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from hourglass.contract.plan.plan_values import U16, U32, AgentType, Ns, PlanPart

STATUS_MAX: Final = 255
SIGNAL_MAX: Final = 64
MODE_MAX: Final = 0o7777


def _base64(text: str) -> str:
    """Return the text if it is canonical base64: equal bytes are equal texts."""
    try:
        if base64.b64encode(base64.b64decode(text, validate=True)).decode() == text:
            return text
    except (binascii.Error, ValueError):
        pass
    raise ValueError("must be base64 (RFC 4648, with padding)")


Content = Annotated[str, AfterValidator(_base64), AgentType("Content")]
"""Bytes, in base64."""
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\x00]*$"), AgentType("String", "absolute_path")]
AppName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$"), AgentType("String", "app_name")]
"""The name of the program, and of the files of its output."""


class Root(PlanPart):
    """A source of files: a `folder`, an OCI image `archive`, a release of `debian` with the `packages`, or the `host`
    itself, each as a root; or a folder to `mount`. `place`: the path, or the number of the release."""

    kind: Literal["folder", "archive", "debian", "host", "mount"]
    place: str
    packages: list[str]


class ContainerFile(PlanPart):
    """A file of a container, owned by root."""

    path: AbsolutePath
    mode: Annotated[int, Field(ge=0, le=MODE_MAX), AgentType("u32", "mode")]
    content: Content


class Mount(PlanPart):
    """A folder at a path of a container, with a writable layer in memory. `root`: the position in `roots`."""

    path: AbsolutePath
    root: U32


class Container(PlanPart):
    """The file system of a node's programs: a read-only root with a writable layer in memory. The programs share
    processes, host name and mounts. `root`: the position in `roots`. Of two `files` with one path, the later one
    wins."""

    node: str
    root: U32
    mounts: list[Mount]
    files: list[ContainerFile]


class ReadyAtStart(PlanPart):
    """Ready at the start."""

    when: Literal["start"]


class ReadyWhenListening(PlanPart):
    """Ready when a socket of the node listens on the port (UDP: is bound to it)."""

    when: Literal["listen"]
    protocol: Literal["tcp", "udp"]
    port: U16


class ReadyOnOutput(PlanPart):
    """Ready when a line of either output contains the text."""

    when: Literal["output"]
    text: Annotated[str, Field(min_length=1), AgentType("String", "some_text")]


class ReadyWhenFileExists(PlanPart):
    """Ready when the file exists."""

    when: Literal["file"]
    path: AbsolutePath


class ReadyAfterDelay(PlanPart):
    """Ready `ns` after the start."""

    when: Literal["delay"]
    ns: Ns


class ReadyOnExit(PlanPart):
    """Ready when the program has ended with status 0."""

    when: Literal["exit"]


Ready = Annotated[
    ReadyAtStart | ReadyWhenListening | ReadyOnOutput | ReadyWhenFileExists | ReadyAfterDelay | ReadyOnExit,
    Field(discriminator="when"),
]


class PlanApp(PlanPart):
    """A program. It starts at `start_ns`, but not before all programs in `after` (ids) are ready. It must be ready
    within `ready_ns` of its start.

    At `stop_ns` (null: at the end of the test) it gets `stop_signal`, and SIGKILL after `grace_ns`. If it ends earlier,
    it is restarted up to `restarts` times, `restart_ns` after its end. `room`: the position in `rooms`. `folder`: the
    working directory. `user`: a name, a number or UID:GID. `stdin`: its input; empty means /dev/null. `output_bytes`:
    the stored bytes of each output. `collect`: globs of files to store. `background`: the test does not wait for its
    end."""

    id: U16
    name: AppName
    room: U32
    command: Annotated[list[str], Field(min_length=1), AgentType("Vec<String>", "command")]
    env: dict[str, str]
    folder: AbsolutePath
    user: str
    stdin: Content
    start_ns: Ns
    after: list[U16]
    stop_ns: Ns | None
    stop_signal: Annotated[int, Field(ge=1, le=SIGNAL_MAX), AgentType("i32", "signal")]
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
    nodes: set[str], roots: Sequence[Root], rooms: Sequence[Container], apps: Sequence[PlanApp], end_ns: int
) -> Iterator[str]:
    """Yield the inconsistencies between parts."""
    for room in rooms:
        if room.node not in nodes:
            yield f"a container (rooms) names the node {room.node}, which is not in nodes"
        for root in (room.root, *(mount.root for mount in room.mounts)):
            if root >= len(roots):
                yield f"a container (rooms) names root {root}, which does not exist"
    if len({(room.node, room.root) for room in rooms}) != len(rooms):
        yield "two containers (rooms) are the same"
    if len({app.name for app in apps}) != len(apps):
        yield "two apps are the same"
    for position, app in enumerate(apps):
        if app.id != position:
            yield f"app {app.name} has the id {app.id}, not its position {position}"
        if app.room >= len(rooms):
            yield f"app {app.name} is in container {app.room}, which does not exist"
        if any(dependency >= len(apps) or dependency == position for dependency in app.after):
            yield f"app {app.name} starts after an app that does not exist"
        if not app.start_ns < end_ns:
            yield f"app {app.name} starts at the end of the test or later"
        if app.stop_ns is not None and not app.start_ns < app.stop_ns <= end_ns:
            yield f"app {app.name}: start_ns < stop_ns <= end_ns does not hold"
