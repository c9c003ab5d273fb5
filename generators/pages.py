# SPDX-License-Identifier: Apache-2.0
"""Generates pages of docs/: the tables of a run, the codes of errors and the table of layers.

Generates also the layers' colours in the report."""

from hourglass.contract import error_codes
from hourglass.contract.probe import LAYER_COLOURS, PROBE
from hourglass.contract.record_tables import ABOUT, TABLES, RecordColumn, RecordTable

TYPES = {
    "bool": "boolean", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i64": "int64",
    "text": "utf8",
}  # fmt: skip


LAYERS = """\
The layers of one node, in the order in which a packet passes them. A layer that it does not pass is 0. They add up to
the time from the write of a packet's first byte to its read. Without a socket to write to, the time begins when the
packet is enqueued.
"""


def records(origin: str) -> str:
    """Return docs/reference/records.md: every table, every column."""
    tables = TABLES.values()
    parts = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"<!-- generated: {origin.removeprefix('Generated ')} -->",
        "# The records of a run",
        ABOUT.strip(),
        "| table | a row is |\n|---|---|\n" + "".join(f"| [`{t.name}`](#{t.name}) | {t.doc} |\n" for t in tables),
        *(_table(table) for table in tables),
        "## The layers",
        LAYERS,
        layers(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


ERRORS = """\
Each error has a code, which does not change when its message does. Match codes, not messages. Codes are in

* `run.json` of a failed run (`code`, and the values of the message as `fields`), and on stdout of `run --json`,
* `code` of each failed run of `check --json` and `study --json`, and `type` of an error in JUnit files,
* `HourglassError.code` and `.fields` in [Python](python.md).

An error of a step of the plan also has `origin` (your key), `step`, `node` and `line` as fields.
"""


def errors(origin: str) -> str:
    """Return docs/reference/errors.md: every code of an error."""
    parts = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"<!-- generated: {origin.removeprefix('Generated ')} -->",
        "# Codes of errors",
        ERRORS,
    ]
    for group, title in error_codes.GROUPS.items():
        rows = "".join(
            f"| `{name}` | {code.doc} | {', '.join(f'`{field}`' for field in code.fields)} | {code.fix} |\n"
            for name, code in sorted(error_codes.groups()[group].items())
        )
        parts += [f"## {title}", f"| code | cause | fields | remedy |\n|---|---|---|---|\n{rows}"]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def layers() -> str:
    """Return the table of layers: the state of a packet in each."""
    rows = "".join(f"| `{value.name}` | {value.doc} |\n" for value in PROBE.enum("layer").value)
    return "| layer | the packet |\n|---|---|\n" + rows


def layer_colours() -> str:
    """Return the style sheet's rules for the layers that have a colour."""
    colours = LAYER_COLOURS.items()
    return "".join(f".l-{layer} {{ background: {colour} !important; fill: {colour}; }}\n" for layer, colour in colours)


def _table(table: RecordTable) -> str:
    rows = "".join(f"| `{c.name}` | {_type(c)} | {_doc(c)} |\n" for c in table.columns)
    return f"## {table.name}\n\n{table.doc}\n\n| column | type | content |\n|---|---|---|\n{rows}"


def _type(column: RecordColumn) -> str:
    return TYPES[column.type] + (" or null" if column.optional else "")


def _doc(column: RecordColumn) -> str:
    names = f"one of {', '.join(PROBE.enum(column.values).names)}" if column.values else ""
    return "; ".join(filter(None, [column.doc, names]))
