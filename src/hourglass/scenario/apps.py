# SPDX-License-Identifier: Apache-2.0
"""`[apps]` and `[[app]]`: programs that run in the nodes, and their roots. Names of nodes and of other programs are
checked in check_apps.py. The types of values are in app_values.py."""

import base64
import binascii
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.app_values import (
    FILE_MAX,
    ORDINARY,
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
from hourglass.scenario.toml_table import Rows, TomlTable
from hourglass.scenario.value_kinds import SWITCH, ValueKind
from hourglass.scenario.values import NodeName, PositiveSeconds, Seconds


class FileContent(TomlTable):
    """The content of a file: text, or bytes in base64."""

    text: Annotated[str, PlainValidator(lambda value: word(value, "the text of a file")), ValueKind("text")] | None = (
        None
    )
    base64: Annotated[str, ValueKind("text")] | None = None
    executable: Annotated[bool, *SWITCH] = False

    @model_validator(mode="after")
    def _one_form(self) -> "FileContent":
        if (self.text is None) == (self.base64 is None):
            raise ValueError('must be the name of a file next to the scenario, { text = "…" } or { base64 = "…" }')
        try:
            content = self.content
        except binascii.Error:
            raise ValueError("must be base64 (RFC 4648, with padding)") from None
        if len(content) > FILE_MAX:
            raise ValueError(f"must be a file of at most {FILE_MAX >> 20} MiB; put larger ones into the root")
        return self

    @property
    def content(self) -> bytes:
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "", validate=True)


def _files(value: object) -> Any:
    allowed = 'a table of paths in the node and files, like { "/etc/nginx/nginx.conf" = "nginx.conf" }'
    if not isinstance(value, dict):
        raise ValueError(f"must be {allowed}")
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


def _mounts(value: object) -> Any:
    allowed = 'a table of paths in the node and folders, like { "/src" = "." }'
    if not isinstance(value, dict):
        raise ValueError(f"must be {allowed}")
    return {absolute(path): word(value[path], allowed) for path in sorted(value)}


Mounts = Annotated[
    dict[str, str],
    PlainValidator(_mounts),
    ValueKind("table of folders", schema={"type": "object", "additionalProperties": {"type": "string"}}),
]
Files = Annotated[
    dict[str, FileContent],
    PlainValidator(_files),
    PlainSerializer(lambda files: {path: content.model_dump(exclude_none=True) for path, content in files.items()}),
    ValueKind("table of files", schema={"type": "object", "additionalProperties": _FILE_SCHEMA}),
]


class Ready(TomlTable):
    """When a program is ready: exactly one condition."""

    listen: Port | None = Field(
        default=None, description="Ready when a socket of its node listens at this port, or is bound to it (UDP)."
    )
    output: SomeText | None = Field(
        default=None, description="Ready when it has written a line that contains this text."
    )
    file: Path | None = Field(default=None, description="Ready when this file exists.")
    delay: Delay | None = Field(default=None, description="Ready after this time since its start.")
    exit: Annotated[bool, *SWITCH] = Field(default=False, description="Ready when it has ended with status 0.")
    within: PositiveSeconds = Field(
        default=10, description="Time limit to become ready, in seconds. A program that exceeds it fails the run."
    )

    @model_validator(mode="after")
    def _one_condition(self) -> "Ready":
        conditions = [
            condition
            for condition in (self.listen, self.output, self.file, self.delay, self.exit or None)
            if condition is not None
        ]
        if len(conditions) != 1:
            raise ValueError(
                'must have exactly one of listen = "tcp:80", output = "text", file = "/path", delay = "1s" and'
                " exit = true"
            )
        return self


class Apps(TomlTable):
    """The settings that all programs of the scenario share."""

    root: RootName = Field(
        default="debian:12",
        description="The programs' root file system: `\"debian:12\"` (built from Debian's packages), a folder, an OCI"
        ' image archive, or `"/"`, this machine\'s root, read-only. Writes go to a layer above it.',
    )
    packages: Packages = Field(
        default=(),
        description="Debian packages of the root, with their dependencies. A shell and the usual small tools are"
        " always included.",
    )
    output: Output = Field(
        default=16 * 2**20, description="Maximum bytes stored of each program's stdout, and of its stderr."
    )


class App(TomlTable):
    """A program in a node."""

    name: AppName = Field(
        default="", description="Name of the program. Default: the command's name, numbered if it recurs."
    )
    node: NodeName = Field(description="The node in which the program runs.")
    command: Command = Field(
        description="The program and its arguments. `{server.address}` becomes the node's address as seen from this"
        " node, `{server.address6}` its IPv6 address, `{server.eth0}` the address of one device,"
        " `{server.eth0.mac}` its MAC address."
        " `{{server.eth0}}` stays as text, with single braces."
    )
    root: RootName | None = Field(default=None, description="Custom root of this program. Default: `apps.root`.")
    env: Env = Field(default={}, description="Environment variables, in addition to PATH, HOME, LANG, TZ and TERM.")
    files: Files = Field(
        default={},
        description='Files in the node, by path. Each is the name of a file next to the scenario, `{ text = "…" }`'
        ' or `{ base64 = "…" }`. The node\'s programs share them.',
    )
    mounts: Mounts = Field(
        default={},
        description="Folders of this machine that the node's programs see at these paths, read-only below a layer in"
        " memory. Relative to the scenario. Their content is not part of the run's identity.",
    )
    user: User = Field(
        default=ORDINARY,
        description="User of the program: a name of the root's /etc/passwd, or numbers. HOME is that of the name's"
        " entry, and /tmp with numbers. The default is an ordinary user."
        ' `"root"` is root of its node, as `ip`, `tc`, `nft` and `tcpdump` need.',
    )
    folder: Path = Field(default="/", description="Working directory.")
    stdin: Text = Field(default="", description="Text on the program's stdin. Default: /dev/null.")
    start: Seconds = Field(default=0, description="Start time, in seconds after the test's start.")
    after: AppNames = Field(default=(), description="Programs that must be ready before this one starts.")
    ready: Ready | None = Field(
        default=None, description="When the program is ready. Default: as soon as it has started."
    )
    stop: PositiveSeconds | None = Field(
        default=None,
        description="When the program is stopped, in seconds after the test's start. Default: at the test's end.",
    )
    signal: Signal = Field(default="SIGTERM", description="The signal that stops the program.")
    grace: Delay = Field(default=5 * 10**9, description="Time from the signal to SIGKILL.")
    restart: Restarts = Field(default=0, description="How often the program is restarted when it ends by itself.")
    restart_delay: Delay = Field(default=10**9, description="Time between its end and its restart.")
    expect: Expect | None = Field(
        default=None,
        description='The expected end, judged as a check: an exit status, a signal (`"SIGSEGV"`), `"running"` (until'
        ' it is stopped) or `"any"`. Default: 0, or `"running"` if `ready.listen` or `stop` is set.',
    )
    collect: Paths = Field(default=(), description="Files of its node to copy into the run directory at the end.")

    @property
    def background(self) -> bool:
        """Return true if the test may end before the program does."""
        return self.expect == RUNNING


AppRows = Rows[App]
