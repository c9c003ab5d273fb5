# SPDX-License-Identifier: Apache-2.0
"""Modules of the agent: the packet probe's structures (`abi.rs`) and the tables' schemas (`tables.rs`)."""

import textwrap
from collections.abc import Iterable, Iterator

from hourglass.contract.probe import PROBE, WIDTHS, Enum, Member, Struct
from hourglass.contract.records import TABLES, Column, Table, group

NUMBERS = {"u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64", "s64": "i64", "char": "u8"}
WIDEST = 110


def abi(origin: str) -> str:
    """Constants, the enumerations' names and the structures of the packet probe."""
    lines = [
        *_head("The kernel's packet probe: `kernel/drivers/probe_abi.h` as Rust reads it.", origin),
        '#![allow(dead_code, reason = "the contract says more than is read here")]',
        '#![allow(clippy::doc_markdown, reason = "the words are those of the header")]',
        "",
        "use zerocopy::{FromBytes, Immutable, KnownLayout};",
    ]
    for constant in PROBE.constant:
        lines += ["", *_doc(_sentence(constant.doc)), f"pub const {constant.name}: u16 = {constant.value};"]
    for enum in PROBE.enums:
        lines += ["", *_enum(enum)]
    for struct in PROBE.structs:
        lines += ["", *_struct(struct)]
    return "\n".join(lines) + "\n"


def tables(origin: str) -> str:
    """The schema of every table that it writes, and where the fields of the kernel's `struct tcp_info` lie."""
    written = {name: table for name, table in TABLES.items() if table.agent}
    lines = [
        *_head("The schemas of all tables: docs/records.md says what the columns mean.", origin),
        "use crate::column::{Column, Kind};",
        "use crate::layout::Field;",
        "",
        "#[derive(Clone, Copy)]",
        "pub enum Table {",
        *(f"    {_camel(name)}," for name in written),
        "}",
        "",
        "/// Every table, in the order of `Table`.",
        f"pub const TABLES: [(&str, &[Column]); {len(written)}] = [",
        *(f'    ("{name}", {name.upper()}),' for name in written),
        "];",
    ]
    for table in written.values():
        lines += ["", *_table(table)]
    lines += ["", *_tcp_info(group("tcp_info"))]
    return "\n".join(lines) + "\n"


def _head(about: str, origin: str) -> list[str]:
    return ["// SPDX-License-Identifier: Apache-2.0", f"//! {about}", "//!", f"//! {origin}", ""]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _doc(text: str) -> list[str]:
    return [f"/// {line}" for line in textwrap.wrap(text.strip(), WIDEST - 4)]


def _listed(head: str, items: Iterable[str]) -> list[str]:
    """A list on one line, or with as many items on a line as fit."""
    found = [*items]
    line = f"{head}{', '.join(found)}];"
    if len(line) <= WIDEST:
        return [line]
    joined = ", ".join(item.replace(" ", "\xa0") for item in found) + ","
    return [head, *("    " + line.replace("\xa0", " ") for line in textwrap.wrap(joined, WIDEST - 4)), "];"]


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def _enum(enum: Enum) -> Iterator[str]:
    """The names; the numbers too where a field holds one, of its type."""
    yield from _doc(enum.doc)
    head = f"pub const {enum.name.upper()}: [&str; {len(enum.names)}] = "
    yield from _listed(f"{head}[", (f'"{name}"' for name in enum.names))
    prefix = enum.prefix.removeprefix("PROBE_")
    for kind in {member.type for struct in PROBE.structs for member in struct.field if member.enum == enum.name}:
        for number, name in enumerate(enum.names, enum.first):
            yield f"pub const {prefix}{name.upper()}: {NUMBERS[kind]} = {number};"


def _struct(struct: Struct) -> Iterator[str]:
    name = _camel(struct.name)
    yield from _doc(struct.doc)
    yield "#[derive(FromBytes, Immutable, KnownLayout)]"
    yield "#[repr(C)]"
    yield f"pub struct {name} {{"
    for member in struct.field:
        yield f"    pub {_named(member)}: {_type(member)},"
    yield "}"
    yield f'const _: () = assert!(size_of::<{name}>() == {PROBE.size(struct)}, "the fields\' sizes, without a gap");'


def _named(member: Member) -> str:
    return "kind" if member.name == "type" else member.name


def _type(member: Member) -> str:
    kind = NUMBERS[member.type] if member.type in WIDTHS else _camel(member.type)
    return kind if member.count is None else f"[{kind}; {PROBE.count(member)}]"


def _table(table: Table) -> Iterator[str]:
    yield from _listed(f"const {table.name.upper()}: &[Column] = &[", map(_column, table.columns))


def _column(column: Column) -> str:
    kind = "late" if column.late else "optional" if column.optional else "of"
    return f'Column::{kind}("{column.name}", Kind::{column.type.title()})'


def _tcp_info(columns: list[Column]) -> Iterator[str]:
    """The structure has no gaps: each field begins where the one before it ends; bit fields fill bytes."""
    yield "/// The fields of `struct tcp_info` in the order of the columns of `tcp`, from the fourth on."
    fields, bit = [], 0
    for column in columns:
        width = WIDTHS[column.type] * 8
        if column.bits is None:
            bit = -(-bit // 8) * 8
            assert bit % width == 0, f"struct tcp_info: a gap before {column.name}"
            fields.append(f"Field::of({bit // 8}, Kind::{column.type.title()})")
        else:
            fields.append(f"Field::bits({bit // 8}, {bit % 8}, {column.bits})")
        bit += column.bits or width
    yield from _listed(f"pub const TCP_INFO: [Field; {len(columns)}] = [", fields)
