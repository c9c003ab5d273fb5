# SPDX-License-Identifier: Apache-2.0
"""Generate `kernel/drivers/probe/probe_abi.h`, the packet probe's contract as a kernel header."""

import textwrap
from collections.abc import Iterator

from hourglass.contract.probe import PROBE, Enum, Struct, StructField

COLUMNS = 100
TYPES = {"u8": "__u8", "u16": "__u16", "u32": "__u32", "u64": "__u64", "s64": "__s64", "char": "char"}


def probe_abi(origin: str) -> str:
    """Return the header. `origin` is the comment that names its source."""
    counted = {member.count for struct in PROBE.structs for member in struct.field}
    parts = [
        ["/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */", *_head(origin)],
        ["#ifndef _PROBE_ABI_H", "#define _PROBE_ABI_H"],
        ["#include <linux/types.h>"],
        [
            line
            for constant in PROBE.constant
            for line in _with_comment(f"#define PROBE_{constant.name} {constant.value}", constant.doc)
        ],
        *([*_enum(enum, enum.name in counted)] for enum in PROBE.enums),
        *([*_struct(struct)] for struct in PROBE.structs),
        ["#endif"],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(origin: str) -> list[str]:
    lines = ["probe: the interface of /proc/hourglass/probe.", "", *textwrap.wrap(origin, COLUMNS - 3), ""]
    lines += ["Commands, one per line of a write:", ""]
    for command in PROBE.command:
        lines += textwrap.wrap(f"{command.form}: {command.doc}", COLUMNS - 3, subsequent_indent="    ")
    lines += ["", *textwrap.wrap(PROBE.about.strip(), COLUMNS - 3)]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _comment(text: str, indent: str) -> Iterator[str]:
    """Yield a comment that precedes a declaration, on one line if it fits."""
    room = COLUMNS - len(indent.expandtabs())
    if len(text) + 6 <= room:
        yield f"{indent}/* {text} */"
        return
    yield f"{indent}/*"
    yield from (f"{indent} * {line}" for line in textwrap.wrap(text, room - 3))
    yield f"{indent} */"


def _with_comment(line: str, doc: str) -> Iterator[str]:
    """Yield a line with its comment after it, or before it if the line would be too long."""
    on_one_line = f"{line} /* {doc} */"
    if not doc:
        yield line
    elif len(on_one_line.expandtabs()) <= COLUMNS:
        yield on_one_line
    else:
        yield from _comment(doc, "\t" if line.startswith("\t") else "")
        yield line


def _enum(enum: Enum, counted: bool) -> Iterator[str]:
    yield from _comment(enum.doc, "")
    yield f"enum probe_{enum.name} {{"
    for number, value in enumerate(enum.value):
        first = f" = {enum.first}" if enum.first and not number else ""
        yield from _with_comment(f"\t{enum.prefix}{value.name.upper()}{first},", value.doc)
    if counted:
        yield f"\t{_count_of(enum)},"
    yield "};"


def _count_of(enum: Enum) -> str:
    return f"PROBE_{enum.name.upper()}_COUNT"


def _struct(struct: Struct) -> Iterator[str]:
    list(PROBE.layout(struct))  # refuses gaps
    yield from _comment(struct.doc, "")
    yield f"struct probe_{struct.name} {{"
    for member in struct.field:
        yield from _with_comment(f"\t{_declared(member)};", _doc(member))
    if struct.follows:
        follows = struct.follows
        doc = f"[{follows.count}], {follows.doc}"
        yield from _with_comment(f"\tstruct probe_{follows.type} {follows.name}[];", doc)
    yield "};"


def _declared(member: StructField) -> str:
    kind = TYPES.get(member.type) or f"struct probe_{member.type}"
    match member.count:
        case None:
            return f"{kind} {member.name}"
        case str(name):
            return f"{kind} {member.name}[{_count_of(PROBE.enum(name))}]"
        case count:
            return f"{kind} {member.name}[{count}]"


def _doc(member: StructField) -> str:
    return ", ".join(filter(None, [f"enum probe_{member.enum}" if member.enum else "", member.doc]))
