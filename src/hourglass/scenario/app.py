# SPDX-License-Identifier: Apache-2.0
"""`[apps]` and `[[app]]`: programs that run in the nodes, and what they are taken from. Names of nodes and of other
programs are checked in check_apps.py; the types of values are in app_values.py."""

import base64
import binascii
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.app_values import (
    FILE_MAX,
    RUNNING,
    TEXT,
    AppName,
    AppNames,
    Command,
    Delay,
    Env,
    Expect,
    Output,
    Packages,
    Path,
    Paths,
    Port,
    Restarts,
    RootName,
    Signal,
    SomeText,
    Text,
    User,
    absolute,
    word,
)
from hourglass.scenario.kinds import SWITCH, Kind
from hourglass.scenario.table import Rows, Table
from hourglass.scenario.values import NodeName, PositiveSeconds, Seconds


class FileContent(Table):
    """What a file holds: text, or any bytes in base64."""

    text: Annotated[str, PlainValidator(lambda value: word(value, "the text of a file")), Kind("text")] | None = None
    base64: Annotated[str, Kind("text")] | None = None
    executable: Annotated[bool, *SWITCH] = False

    @model_validator(mode="after")
    def _one_form(self) -> "FileContent":
        if (self.text is None) == (self.base64 is None):
            raise ValueError('the name of a file beside the scenario, { text = "…" } or { base64 = "…" }')
        try:
            content = self.content
        except binascii.Error:
            raise ValueError("base64 (RFC 4648, with padding)") from None
        if len(content) > FILE_MAX:
            raise ValueError(f"a file of at most {FILE_MAX >> 20} MiB; put larger ones into the root")
        return self

    @property
    def content(self) -> bytes:
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "", validate=True)


def _files(value: object) -> Any:
    what = 'a table of paths in the node and files, like { "/etc/nginx/nginx.conf" = "nginx.conf" }'
    if not isinstance(value, dict):
        raise ValueError(what)
    return {absolute(path): FileContent.model_validate(value[path]) for path in sorted(value)}


_FILE_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {"text": TEXT, "base64": TEXT, "executable": {"type": "boolean"}},
            "additionalProperties": False,
        },
    ]
}


Files = Annotated[
    dict[str, FileContent],
    PlainValidator(_files),
    PlainSerializer(lambda files: {path: one.model_dump(exclude_none=True) for path, one in files.items()}),
    Kind("table of files", schema={"type": "object", "additionalProperties": _FILE_SCHEMA}),
]


class Ready(Table):
    """When a program is ready: one of these."""

    listen: Port | None = Field(default=None, description="A socket of its node listens there; UDP: is bound.")
    output: SomeText | None = Field(default=None, description="It has written a line with this text.")
    file: Path | None = Field(default=None, description="This file is there.")
    delay: Delay | None = Field(default=None, description="So long after its start.")
    exit: Annotated[bool, *SWITCH] = Field(default=False, description="It has ended, with status 0.")
    within: PositiveSeconds = Field(default=10, description="Seconds it has; a program that is late fails the run.")

    @model_validator(mode="after")
    def _one(self) -> "Ready":
        given = [one for one in (self.listen, self.output, self.file, self.delay, self.exit or None) if one is not None]
        if len(given) != 1:
            raise ValueError('one of listen = "tcp:80", output = "text", file = "/path", delay = "1s" and exit = true')
        return self


class Apps(Table):
    """What all programs of the scenario have in common."""

    root: RootName = Field(
        default="debian:12",
        description='What programs see as `/`, below what they write: `"debian:12"`, made of Debian\'s packages; a'
        ' folder; an OCI image archive; or `"/"`, this machine\'s own, read-only.',
    )
    packages: Packages = Field(
        default=(),
        description="Debian packages of the root, with what they depend on, beside a shell and the usual small tools.",
    )
    output: Output = Field(default=16 * 2**20, description="How much is kept of each output of each program.")


class App(Table):
    """A program in a node."""

    name: AppName = Field(default="", description="Its name; default: the program's, numbered if need be.")
    node: NodeName = Field(description="The node in which it runs.")
    command: Command = Field(
        description="The program and its arguments. `{server.address}` is the node's address as seen from here,"
        " `{server.address6}` if it is IPv6, `{server.eth0}` that of a device; `{{server.eth0}}` is left as it is, with"
        " single braces."
    )
    root: RootName | None = Field(default=None, description="Its own root; default: `apps.root`.")
    env: Env = Field(default={}, description="Environment, beside PATH, HOME, LANG, TZ and TERM.")
    files: Files = Field(
        default={},
        description='Files in the node, by path: the name of a file beside the scenario, `{ text = "…" }` or'
        ' `{ base64 = "…" }`. The node\'s programs share them.',
    )
    user: User = Field(default="root", description="Who runs it.")
    folder: Path = Field(default="/", description="Where it is started.")
    stdin: Text = Field(default="", description="What it reads; nothing: /dev/null.")
    start: Seconds = Field(default=0, description="When it starts, in seconds after the test's beginning.")
    after: AppNames = Field(default=(), description="Programs that have to be ready before it starts.")
    ready: Ready | None = Field(default=None, description="When it is ready; default: when it has started.")
    stop: PositiveSeconds | None = Field(
        default=None,
        description="When it is told to stop, in seconds after the test's beginning; default: at the test's end.",
    )
    signal: Signal = Field(default="SIGTERM", description="The signal that tells it to stop.")
    grace: Delay = Field(default=5 * 10**9, description="Time to obey, before it is killed.")
    restart: Restarts = Field(default=0, description="How often it is started again when it ends by itself.")
    restart_delay: Delay = Field(default=10**9, description="Time between its end and its next start.")
    expect: Expect | None = Field(
        default=None,
        description='How it ends, judged as a check: an exit status, a signal (`"SIGSEGV"`), `"running"` (until it is'
        ' told to stop), `"any"`. Default: 0; of a program that has `ready.listen` or `stop`, running.',
    )
    collect: Paths = Field(
        default=(), description="Files of its node that are copied into the run directory at the end."
    )

    @property
    def background(self) -> bool:
        """Whether the test ends without its end."""
        return self.expect == RUNNING


AppRows = Rows[App]
