# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/: the tables of a run, and the table of layers in the guide; the layers' colours in the report."""

from hourglass.contract.probe import LAYER_COLOURS, PROBE
from hourglass.contract.records import ABOUT, TABLES, Column, Table

TYPES = {
    "bool": "boolean", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i64": "int64",
    "text": "utf8",
}  # fmt: skip


def records(origin: str) -> str:
    """docs/records.md: every table, every column."""
    tables = TABLES.values()
    parts = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"<!-- {origin} -->",
        "# The records of a run",
        ABOUT.strip(),
        "| table | a row is |\n|---|---|\n" + "".join(f"| [`{t.name}`](#{t.name}) | {t.doc} |\n" for t in tables),
        *(_table(table) for table in tables),
        "## The layers",
        PROBE.enum("layer").doc.strip().removesuffix(" The packet ..."),
        layers(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def layers() -> str:
    """What a packet does in each layer."""
    rows = "".join(f"| `{value.name}` | {value.doc} |\n" for value in PROBE.enum("layer").value)
    return "| layer | the packet |\n|---|---|\n" + rows


def layer_colours() -> str:
    """The style sheet's rules for the layers that have a colour of their own."""
    return "".join(f".l-{layer} {{ background: {colour} !important; }}\n" for layer, colour in LAYER_COLOURS.items())


def _table(table: Table) -> str:
    rows = "".join(f"| `{c.name}` | {_type(c)} | {_doc(c)} |\n" for c in table.columns)
    return f"## {table.name}\n\n{table.doc}\n\n| column | type | |\n|---|---|---|\n{rows}"


def _type(column: Column) -> str:
    return TYPES[column.type] + (" or null" if column.optional else "")


def _doc(column: Column) -> str:
    names = f"one of {', '.join(PROBE.enum(column.values).names)}" if column.values else ""
    return "; ".join(filter(None, [column.doc, names]))
