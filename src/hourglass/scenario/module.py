# SPDX-License-Identifier: Apache-2.0
"""`cc = "my_cc.c"`, `qdisc = "my_qdisc.c"`: what of the user's own is compiled into the guest's kernel.

A file, a folder, or a table of `file`, `name`, `parameters` may stand wherever the name of a congestion control or a
qdisc may. `take` puts its name there, and its sources into the scenario's list `module`: a scenario is data.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, model_validator

from hourglass.contract import modules
from hourglass.scenario import c_source, makefile
from hourglass.scenario.blame import refusal
from hourglass.scenario.c_source import CC, QDISC, WHAT
from hourglass.scenario.kinds import LIST, Kind, list_of, pattern, sequence
from hourglass.scenario.source import Data, read_file
from hourglass.scenario.stack import STACK_KEYS
from hourglass.scenario.table import Table
from hourglass.scenario.vocabulary import CLASSFUL_QDISCS, CONGESTION_CONTROLS, QDISCS

SIZE_MAX = 2 * 2**20
"""Bytes of all files of one module."""
KEYS = ("file", "name", "parameters")
NAMES = {CC: CONGESTION_CONTROLS, QDISC: (*QDISCS, *CLASSFUL_QDISCS)}
"""The kernel's own."""

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}\.[ch]", re.ASCII)

Value = int | bool | str


def _files(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError("a table of names and texts of C files")
    check_files(value)
    return dict(sorted(value.items()))


def check_files(files: dict[str, str]) -> None:
    """Raises ValueError for names that no compiler should see, and for too much."""
    if odd := next((name for name in files if not _FILE.fullmatch(name)), None):
        raise ValueError(f"{odd!r} is no name of a C file: letters, digits and _ . + -, ending in .c or .h")
    if not any(name.endswith(".c") for name in files):
        raise ValueError("has no file that ends in .c")
    if any("\0" in text for text in files.values()) or sum(map(len, files.values())) > SIZE_MAX:
        raise ValueError(f"C sources of at most {SIZE_MAX >> 20} MiB, without NUL")


def _parameters(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ValueError("a table of the module's parameters, like { beta = 819 }")
    for name, one in value.items():
        if not isinstance(one, int | str):
            raise ValueError(f"parameter {name} = {one!r}: a whole number, true or false, or text")
    return dict(sorted(value.items()))


Files = Annotated[
    dict[str, str],
    PlainValidator(_files),
    Kind("table of texts", schema={"type": "object", "additionalProperties": {"type": "string"}}),
]
Parameters = Annotated[
    dict[str, Value],
    PlainValidator(_parameters),
    Kind(
        "table of values", schema={"type": "object", "additionalProperties": {"type": ["integer", "boolean", "string"]}}
    ),
]


def _flags(value: object) -> tuple[str, ...]:
    words = tuple(str(one) for one in sequence(value, "flags of the compiler"))
    makefile.check_list("ccflags", words, "flags")
    return words


Flags = Annotated[
    tuple[str, ...],
    PlainValidator(_flags),
    LIST,
    Kind("list of texts", schema=list_of({"type": "string", "pattern": f"^({makefile.FLAG})$"})),
]
Name = Annotated[str, *pattern(c_source.NAMES, "1 to 15 letters, digits and _, beginning with a letter")]


class Module(Table):
    """Sources of a congestion control or a qdisc."""

    name: Name = Field(description="What it registers: its name in `cc` or `qdisc`.")
    files: Files = Field(description="Its sources: names and texts.")
    flags: Flags = Field(default=(), description="Of the compiler: what the Makefile of its folder adds.")
    parameters: Parameters = Field(default={}, description="Values of its `module_param`s.")

    @model_validator(mode="after")
    def _fits(self) -> "Module":
        if (found := check(self.files, self.parameters).name) != self.name:
            raise ValueError(f"the sources register {found!r}, not {self.name!r}")
        return self

    @property
    def kind(self) -> str:
        """A congestion control or a qdisc."""
        return c_source.registered(self.files).kind

    def of_kernel(self) -> modules.Module:
        """As the engine takes it."""
        values = {name: c_source.parameter(self.files, name, value) for name, value in self.parameters.items()}
        return modules.Module(self.name, tuple(self.files.items()), tuple(values.items()), self.flags)


def check(files: dict[str, str], parameters: dict[str, Value]) -> c_source.Registered:
    """What sources register, if it can be compiled in beside the kernel's own. Raises ValueError."""
    found = c_source.registered(files)
    if found.name in NAMES[found.kind]:
        raise ValueError(f"the kernel has {WHAT[found.kind]} called {found.name!r}: name it otherwise, with `name`")
    for name, value in parameters.items():
        try:
            c_source.parameter(files, name, value)
        except ValueError as error:
            raise ValueError(f"parameter {name}: {error}") from None
    return found


def take(data: Data, folder: Path) -> None:
    """Puts sources into `module`, and names in their places. Raises InputError."""
    for table, place, kind, key in _places(data):
        if (wanted := _wanted(table[place])) is not None:
            table[place] = _add(data, key, kind, wanted, folder)


def kind(words: str) -> str | None:
    """What a file or a folder of C sources registers, "cc" or "qdisc"; None for words that are no such thing. Raises
    InputError."""
    path = Path(words)
    if path.suffix != ".c" and not (path.is_dir() and any(path.glob("*.c"))):
        return None
    try:
        return c_source.registered(_read("FILE", words, Path())[0]).kind
    except ValueError as error:
        raise refusal("FILE", words, str(error)) from None


def names(data: Data) -> dict[str, tuple[str, ...]]:
    """What the modules register, by kind; what is wrong with them is left to their checks."""
    found: dict[str, tuple[str, ...]] = {CC: (), QDISC: ()}
    rows = data.get("module")
    for row in rows if isinstance(rows, list) else []:
        files = row.get("files") if isinstance(row, dict) else None
        if isinstance(files, dict) and all(isinstance(one, str) for one in files.values()):
            try:
                one = c_source.registered(files)
            except ValueError:
                continue
            found[one.kind] = (*found[one.kind], one.name)
    return found


def _wanted(value: object) -> Data | None:
    """The table that a value stands for; None: it is no file."""
    if isinstance(value, dict):
        return value
    named = isinstance(value, str) and value.strip().endswith((".c", "/"))
    return {"file": str(value).strip()} if named else None


def _add(data: Data, key: str, kind: str, wanted: Data, folder: Path) -> str:
    file, name, parameters = (wanted.get(word) for word in KEYS)
    if unknown := next((word for word in wanted if word not in KEYS), None):
        raise refusal(f"{key}.{unknown}", wanted[unknown], f"unknown key. Known here: {', '.join(KEYS)}")
    if not isinstance(file, str):
        raise refusal(f"{key}.file", file, "the name of a C file, or of a folder of them")
    files, flags = _read(f"{key}.file" if "name" in wanted or "parameters" in wanted else key, file, folder)
    try:
        check_files(files)
        if name is not None:
            files = c_source.renamed(files, str(name))
        parameters = _parameters(parameters or {})
        found = check(files, parameters)
        if found.kind != kind:
            raise ValueError(f"registers {WHAT[found.kind]}, not {WHAT[kind]}")
    except ValueError as error:
        raise refusal(key, file, str(error)) from None
    row: Data = {"name": found.name, "files": files}
    row |= {word: value for word, value in (("flags", list(flags)), ("parameters", parameters)) if value}
    rows = data.setdefault("module", [])
    if not isinstance(rows, list):
        raise refusal("module", rows, "a list of tables")
    same = next((one for one in rows if isinstance(one, dict) and one.get("name") == found.name), row)
    if same is row:
        rows.append(row)
    elif same != row:
        raise refusal(key, file, f"another one is called {found.name!r}: give one another `name`")
    return found.name


def _read(key: str, name: str, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The C files that a name stands for, and their flags: a file beside the scenario's, or in the current folder; or a
    folder's, all of them or those that its Makefile lists."""
    place = next((one for one in (folder / name, Path(name)) if name.isprintable() and name and one.is_dir()), None)
    try:
        if place is None:
            return {Path(name).name: _text(key, name, folder)}, ()
        listed = next((place / one for one in reversed(makefile.NAMES) if (place / one).is_file()), None)
        told = makefile.read(_text(key, str(listed), folder)) if listed else None
        inside = {one.name for one in place.iterdir() if one.suffix == ".h" or (one.suffix == ".c" and not told)}
        if lacking := next((one for one in told.sources if not (place / one).is_file()), None) if told else None:
            raise ValueError(f"its Makefile lists {lacking[:-1]}o, and there is no {lacking} in the folder")
        names = sorted({*inside, *(told.sources if told else ())})
        return {one: _text(key, str(place / one), folder) for one in names}, told.flags if told else ()
    except UnicodeDecodeError:
        raise refusal(key, name, "C sources in UTF-8") from None
    except ValueError as error:
        raise refusal(key, name, str(error)) from None


def _text(key: str, name: str, folder: Path) -> str:
    return read_file(key, name, folder)[0].decode()


Found = tuple[Any, Any, str, str]
"""A table or list, a key or place in it, the kind of what stands there, its dotted key."""


def _places(data: Data) -> Iterator[Found]:
    """Where the name of a congestion control or a qdisc may stand."""
    stack, test = data.get("stack"), data.get("test")
    if isinstance(stack, dict):
        yield from _of(stack, "stack", cc=CC, qdisc=QDISC)
        for name, node in stack.items():
            if name not in STACK_KEYS and isinstance(node, dict):
                yield from _of(node, f"stack.{name}", cc=CC, qdisc=QDISC)
                devices = node.get("device")
                for device, own in devices.items() if isinstance(devices, dict) else ():
                    yield from _of(own, f"stack.{name}.device.{device}", qdisc=QDISC, ingress=QDISC)
    if isinstance(test, dict):
        for word in ("flow_cc", "cc_algos", "tcp_cong_control"):
            if isinstance(given := test.get(word), str) and "," in given:
                test[word] = [one.strip() for one in given.split(",")]
            if isinstance(listed := test.get(word), list):
                yield from ((listed, place, CC, f"test.{word}.{place}") for place in range(len(listed)))
            else:
                yield from _of(test, "test", **{word: CC})
        rows = test.get("competing")
        for place, row in enumerate(rows if isinstance(rows, list) else []):
            yield from _of(row, f"test.competing.{place}", cc=CC)


def _of(table: Any, above: str, **words: str) -> Iterator[Found]:
    if isinstance(table, dict):
        yield from ((table, word, kind, f"{above}.{word}") for word, kind in words.items() if word in table)
