# SPDX-License-Identifier: Apache-2.0
"""The types of a program's single values (apps.py)."""

import base64
import re
import signal
from typing import Annotated, Any, Final

from pydantic import PlainValidator

from hourglass.scenario.quantities import SIZE, TIME, Bounds
from hourglass.scenario.value_kinds import LIST, ValueKind, integer, list_of, pattern, quantity, sequence
from hourglass.scenario.values import HOUR_NS

APPS_MAX: Final = 1000
WORD_MAX: Final = 100_000
"""The largest argument in bytes: Linux takes 128 KiB."""
FILE_MAX: Final = 8 * 2**20
DEBIAN: Final = {"11": "bullseye", "12": "bookworm", "13": "trixie"}
HOST_ROOT: Final = "/"
DEBIAN_ROOT: Final = "debian:"
RUNNING: Final = "running"
ANY: Final = "any"
SIGNALS: Final = {number.name: int(number) for number in signal.Signals}

_NUL_FREE = "text without NUL"
_PORT = re.compile(r"(tcp|udp):([1-9][0-9]{0,4})", re.ASCII)
_PORT_MAX = 2**16 - 1
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,127}", re.ASCII)


def word(value: object, allowed: str) -> str:
    if not isinstance(value, str) or "\0" in value or len(value.encode(errors="replace")) > WORD_MAX:
        raise ValueError(f"must be {allowed}: {_NUL_FREE} of at most {WORD_MAX} bytes")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"must be {allowed}: text in Unicode") from None
    return value


def _command(value: object) -> tuple[str, ...]:
    example = 'a list of the program and its arguments, like ["iperf3", "-c", "{server.address}"]'
    arguments = tuple(word(argument, example) for argument in sequence(value, example.removeprefix("a list of ")))
    if not arguments or not arguments[0]:
        raise ValueError(f"must be {example}")
    return arguments


def _env(value: object) -> dict[str, str]:
    allowed = 'a table of variables, like { TERM = "dumb" }'
    if not isinstance(value, dict):
        raise ValueError(f"must be {allowed}")
    for name in value:
        if not _ENV.fullmatch(name):
            raise ValueError(f"must be {allowed}; {name[:80]!r} is not a name of a variable")
    return {name: word(value[name], allowed) for name in sorted(value)}


def absolute(value: object) -> str:
    """Return a path within a node. Raises ValueError."""
    example = 'an absolute path, like "/etc/nginx/nginx.conf"'
    text = word(value, example)
    if not text.startswith("/") or ".." in text.split("/") or not text.isprintable() or len(text) > 4000:
        raise ValueError(f"must be {example}, without ..")
    return text


def _paths(value: object) -> tuple[str, ...]:
    return tuple(absolute(path) for path in sequence(value, 'paths in the node, like ["/var/log/nginx/*.log"]'))


def _port(value: object) -> str:
    match = _PORT.fullmatch(value) if isinstance(value, str) else None
    if not match or int(match[2]) > _PORT_MAX:
        raise ValueError(f'must be a port like "tcp:80" or "udp:443", from 1 to {_PORT_MAX}')
    return match[0]


def _names(value: object) -> tuple[str, ...]:
    return tuple(word(name, "names of programs") for name in sequence(value, "names of programs"))


def _packages(value: object) -> tuple[str, ...]:
    names = sequence(value, 'Debian packages, like ["nginx-light", "curl"]')
    for package in names:
        if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
            raise ValueError('must be a list of Debian packages, like ["nginx-light", "curl"]')
    return tuple(sorted(set(names)))


def _expect(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255:
        return value
    if isinstance(value, str) and (value in (RUNNING, ANY) or value in SIGNALS):
        return value
    raise ValueError('must be an exit status from 0 to 255, a signal like "SIGTERM", "running" or "any"')


def _signal(value: object) -> str:
    if not isinstance(value, str) or value not in SIGNALS:
        raise ValueError('must be a signal like "SIGTERM", "SIGINT" or "SIGHUP"')
    return value


def _root(value: object) -> str:
    text = word(value, "a folder, an archive or debian:12")
    release = text.removeprefix(DEBIAN_ROOT)
    if not text or not text.isprintable() or (release != text and release not in DEBIAN):
        releases = ", ".join(f'"{DEBIAN_ROOT}{number}"' for number in DEBIAN)
        raise ValueError(
            f'must be {releases}, a folder like "/srv/root", an OCI image archive like "image.tar", or "/"'
        )
    return text


def file_content(content: bytes, executable: bool) -> dict[str, Any]:
    """Return the files as a table, with text where the content is text."""
    try:
        form = {"text": content.decode()}
    except UnicodeDecodeError:
        form = {}
    if not form or "\0" in form["text"] or len(content) > WORD_MAX:
        form = {"base64": base64.b64encode(content).decode()}
    return {**form, **({"executable": True} if executable else {})}


TEXT = {"type": "string"}
_TEXTS = list_of(TEXT)
_PATH_SCHEMA = {"type": "string", "pattern": "^/"}
_PORT_SCHEMA = {"type": "string", "pattern": f"^{_PORT.pattern}$", "examples": ["tcp:80"]}

AppName = Annotated[
    str, *pattern(r"[A-Za-z][A-Za-z0-9_-]{0,31}", "1 to 32 letters, digits, _ and -, beginning with a letter")
]
Command = Annotated[
    tuple[str, ...], PlainValidator(_command), LIST, ValueKind("list of texts", schema=list_of(TEXT, minItems=1))
]
Env = Annotated[
    dict[str, str],
    PlainValidator(_env),
    ValueKind("table of texts", schema={"type": "object", "additionalProperties": {"type": "string"}}),
]
Path = Annotated[str, PlainValidator(absolute), ValueKind("path", schema=_PATH_SCHEMA)]
Paths = Annotated[
    tuple[str, ...], PlainValidator(_paths), LIST, ValueKind("list of globs", schema=list_of(_PATH_SCHEMA))
]
Port = Annotated[str, PlainValidator(_port), ValueKind('"tcp:PORT" or "udp:PORT"', schema=_PORT_SCHEMA)]
AppNames = Annotated[tuple[str, ...], PlainValidator(_names), LIST, ValueKind("list of programs", schema=_TEXTS)]
Packages = Annotated[tuple[str, ...], PlainValidator(_packages), LIST, ValueKind("list of packages", schema=_TEXTS)]
Expect = Annotated[
    int | str,
    PlainValidator(_expect),
    ValueKind('integer, signal, "running" or "any"', schema={"type": ["integer", "string"]}),
]
Signal = Annotated[str, PlainValidator(_signal), ValueKind("signal", schema={"enum": list(SIGNALS)})]
ORDINARY = "1000:1000"
"""The default user of a program: no capabilities, no home but /tmp."""
User = Annotated[
    str,
    *pattern(
        r"[a-z_][a-z0-9_-]{0,31}|[0-9]{1,9}(:[0-9]{1,9})?",
        'a user of the root\'s /etc/passwd, or "1000", or "1000:1000"',
    ),
]
RootName = Annotated[str, PlainValidator(_root), ValueKind("root", schema={"type": "string", "minLength": 1})]
Text = Annotated[str, PlainValidator(lambda value: word(value, "text")), ValueKind("text", schema={"type": "string"})]
SomeText = Annotated[
    str,
    *pattern(r"[^\n\0]{1,1000}", "part of a line: 1 to 1000 characters"),
]
Delay = Annotated[int, *quantity(Bounds(TIME, 0, HOUR_NS))]
Restarts = Annotated[int, *integer(0, 1000, "restarts")]
Output = Annotated[int, *quantity(Bounds(SIZE, 0, 2**30))]
