# SPDX-License-Identifier: Apache-2.0
"""Generates modules of the agent: the packet probe's structures (`abi.rs`), the tables' schemas (`tables.rs`) and the
causes of failures (`cause.rs`)."""

import textwrap
from collections.abc import Iterable, Iterator

from hourglass.contract import error_codes
from hourglass.contract.error_codes import ErrorCode
from hourglass.contract.probe import PROBE, WIDTHS, Enum, Struct, StructField
from hourglass.contract.record_tables import TABLES, RecordColumn, RecordTable, group

NUMBERS = {"u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64", "s64": "i64", "char": "u8"}
WIDEST = 110


def abi(origin: str) -> str:
    """Return the constants, the names of enumerations and the structures of the packet probe."""
    lines = [
        *_head("The kernel's packet probe: `kernel/drivers/probe/probe_abi.h` as Rust reads it.", origin),
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
    """Return the schema of every table that the agent writes, and the offsets of the fields of `struct tcp_info`."""
    written = {name: table for name, table in TABLES.items() if table.agent}
    lines = [
        *_head("The schemas of all tables: docs/reference/records.md says what the columns mean.", origin),
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


def causes(origin: str) -> str:
    """Return the causes of failures, with their messages."""
    codes = error_codes.groups()["agent"]
    lines = [
        *_head("The causes of failures: docs/reference/errors.md lists their codes.", origin),
        '#![allow(clippy::match_same_arms, reason = "an arm for each cause")]',
        "",
        "use std::fmt::{Display, Formatter, Result};",
        "",
        "use serde::{Deserialize, Serialize};",
        "",
        "use crate::clock::seconds;",
        "use crate::error_text::{errno_text, quoted};",
        "",
        "#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]",
        '#[serde(tag = "code", rename_all = "kebab-case")]',
        "pub enum Cause {",
    ]
    for name, code in codes.items():
        fields = ", ".join(f"{field}: {_cause_type(field)}" for field in code.fields)
        lines += [f"    {line}" for line in _doc(_sentence(code.doc))]
        lines += [f"    {_variant(name)} {{ {fields} }}," if fields else f"    {_variant(name)} {{}},"]
    lines += ["}", "", "impl Display for Cause {", "    fn fmt(&self, to: &mut Formatter<'_>) -> Result {"]
    lines += ["        match self {"]
    for name, code in codes.items():
        used = [field if f"{{{field}}}" in code.text else f"{field}: _" for field in code.fields]
        pattern = f"{{ {', '.join(used)} }}" if used else "{}"
        lines += [f"            Self::{_variant(name)} {pattern} => {{"]
        lines += [*(f"                {line}" for line in _cause_text(code)), "            }"]
    return "\n".join([*lines, "        }", "    }", "}"]) + "\n"


def _variant(name: str) -> str:
    return name.title().replace("-", "")


def _cause_type(field: str) -> str:
    return "i32" if field == "errno" else "i64" if field.endswith("_ns") else "String"


def _cause_text(code: ErrorCode) -> list[str]:
    """Return the statements that write a cause's message."""
    text = code.text
    converted = {"errno": "errno_text(*errno)", "output": "quoted(output)"}
    converted |= {field: f"seconds(*{field})" for field in code.fields if field.endswith("_ns")}
    lines = [f"let {field} = {value};" for field, value in converted.items() if field in code.fields]
    for field in code.fields:
        if field.endswith("_ns"):
            text = text.replace(f"{{{field}}}", f"{{{field}}} s")
    return [*lines, f'write!(to, "{text}")']


def _head(about: str, origin: str) -> list[str]:
    return ["// SPDX-License-Identifier: Apache-2.0", f"//! {about}", "//!", f"//! {origin}", ""]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _doc(text: str) -> list[str]:
    return [f"/// {line}" for line in textwrap.wrap(text.strip(), WIDEST - 4)]


def _listed(head: str, items: Iterable[str]) -> list[str]:
    """Return a list on one line, or with as many items on a line as fit."""
    texts = [*items]
    line = f"{head}{', '.join(texts)}];"
    if len(line) <= WIDEST:
        return [line]
    joined = ", ".join(item.replace(" ", "\xa0") for item in texts) + ","
    return [head, *("    " + line.replace("\xa0", " ") for line in textwrap.wrap(joined, WIDEST - 4)), "];"]


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def _enum(enum: Enum) -> Iterator[str]:
    """Yield the names, and the numbers with the type of each field that contains them."""
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


def _named(member: StructField) -> str:
    return "kind" if member.name == "type" else member.name


def _type(member: StructField) -> str:
    kind = NUMBERS[member.type] if member.type in WIDTHS else _camel(member.type)
    return kind if member.count is None else f"[{kind}; {PROBE.count(member)}]"


def _table(table: RecordTable) -> Iterator[str]:
    yield from _listed(f"const {table.name.upper()}: &[Column] = &[", map(_column, table.columns))


def _column(column: RecordColumn) -> str:
    kind = "late" if column.late else "optional" if column.optional else "of"
    return f'Column::{kind}("{column.name}", Kind::{column.type.title()})'


def _tcp_info(columns: list[RecordColumn]) -> Iterator[str]:
    """Yield the offsets. The structure has no gaps: a field begins where the previous field ends; bit fields fill
    bytes."""
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
