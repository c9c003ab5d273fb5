# SPDX-License-Identifier: Apache-2.0
"""`cc = "my_cc.c"`, `qdisc = "my_qdisc.c"`: the user's C code that is compiled into the guest's kernel.

A file, a folder, or a table of `file`, `name`, `parameters` can replace the name of any congestion control or qdisc.
`take` puts back the name, and puts the sources into the scenario's list `module`: a scenario is data.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, model_validator

from hourglass.contract import kernel_module
from hourglass.scenario import c_source, makefile
from hourglass.scenario.blame import refusal
from hourglass.scenario.c_source import CC, DESCRIPTION, QDISC
from hourglass.scenario.source_files import Data, UserText, locate, read_file, with_mark_of
from hourglass.scenario.stack import STACK_KEYS
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import LIST, ValueKind, list_of, pattern, sequence
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, MULTIQUEUE_QDISCS, OTHER_QDISCS, QDISCS

SIZE_MAX = 2 * 2**20
"""The largest size of all files of one module, in bytes."""
KEYS = ("file", "name", "parameters")
NAMES = {CC: CONGESTION_CONTROLS, QDISC: (*QDISCS, *MULTIQUEUE_QDISCS, *OTHER_QDISCS)}
"""Names that the kernel uses."""

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}\.[ch]", re.ASCII)

_OUTSIDE = re.compile(
    r'#\s*include\s*["<](?:/|[^">\n]*\.\./)[^">\n]*[">]|#\s*include\s+\w[^\n]*'
    r"|\.incbin[^\n]*|\.include[^\n]*|#\s*embed[^\n]*"
)
"""Directives that would read a file of the host, and those whose file is a macro. A C file can hide them from this
pattern. It gives a clear error; the compiler's confinement (`builders/kernel/builder.py`) is what refuses."""

Value = int | bool | str


def _files(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("must be a table of names and texts of C files")
    check_files(value)
    return dict(sorted(value.items()))


def check_files(files: dict[str, str]) -> None:
    """Refuse names that no compiler should see, and sources that are too large. Raises ValueError."""
    if invalid := next((name for name in files if not _FILE.fullmatch(name)), None):
        raise ValueError(f"{invalid!r} is not a name of a C file: letters, digits and _ . + -, ending in .c or .h")
    if not any(name.endswith(".c") for name in files):
        raise ValueError("lacks a file that ends in .c")
    if outside := next((match[0] for text in files.values() if (match := _OUTSIDE.search(text))), None):
        raise ValueError(f"{outside.strip()!r} can read a file outside of the kernel's tree; paste its content instead")
    if any("\0" in text for text in files.values()) or sum(map(len, files.values())) > SIZE_MAX:
        raise ValueError(f"must be C sources of at most {SIZE_MAX >> 20} MiB, without NUL")


def _parameters(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ValueError("must be a table of the module's parameters, like { beta = 819 }")
    for name, setting in value.items():
        if not isinstance(setting, int | str):
            raise ValueError(f"parameter {name} = {setting!r} must be a whole number, true or false, or text")
    return dict(sorted(value.items()))


Files = Annotated[
    dict[str, str],
    PlainValidator(_files),
    ValueKind("table of texts", schema={"type": "object", "additionalProperties": {"type": "string"}}),
]
Parameters = Annotated[
    dict[str, Value],
    PlainValidator(_parameters),
    ValueKind(
        "table of values", schema={"type": "object", "additionalProperties": {"type": ["integer", "boolean", "string"]}}
    ),
]


def _flags(value: object) -> tuple[str, ...]:
    flags = tuple(str(flag) for flag in sequence(value, "flags of the compiler"))
    makefile.check_list("ccflags", flags, "flags")
    return flags


Flags = Annotated[
    tuple[str, ...],
    PlainValidator(_flags),
    LIST,
    ValueKind("list of texts", schema=list_of({"type": "string", "pattern": f"^({makefile.FLAG})$"})),
]
Name = Annotated[str, *pattern(c_source.NAMES, "1 to 15 letters, digits and _, beginning with a letter")]


class Module(TomlTable):
    """Sources of a congestion control or a qdisc."""

    name: Name = Field(description="Registered name, as `cc` or `qdisc` uses it.")
    files: Files = Field(description="Source files: names and texts.")
    flags: Flags = Field(default=(), description="Compiler flags from the Makefile of the folder.")
    parameters: Parameters = Field(default={}, description="Values of its `module_param`s.")

    @model_validator(mode="after")
    def _fits(self) -> "Module":
        if (registered_name := check_registration(self.files, self.parameters).name) != self.name:
            raise ValueError(f"the sources register {registered_name!r}, not {self.name!r}")
        return self

    @property
    def kind(self) -> str:
        """A congestion control or a qdisc."""
        return c_source.registered(self.files).kind

    def of_kernel(self) -> kernel_module.KernelModule:
        """Return the module as the engine takes it."""
        values = {name: c_source.parameter(self.files, name, value) for name, value in self.parameters.items()}
        return kernel_module.KernelModule(self.name, tuple(self.files.items()), tuple(values.items()), self.flags)


def check_registration(files: dict[str, str], parameters: dict[str, Value]) -> c_source.Registration:
    """Return the registration in the sources, if its name is free in the kernel. Raises ValueError."""
    registration = c_source.registered(files)
    if registration.name in NAMES[registration.kind]:
        raise ValueError(
            f"the kernel already has {DESCRIPTION[registration.kind]} called {registration.name!r}; set another `name`"
        )
    for name, value in parameters.items():
        try:
            c_source.parameter(files, name, value)
        except ValueError as error:
            raise ValueError(f"parameter {name}: {error}") from None
    return registration


def extract_modules(data: Data, folder: Path) -> None:
    """Move sources into `module`, and leave their names. Raises InputError."""
    for table, position, kind, key in _module_positions(data):
        if (declaration := _module_table(table[position])) is not None:
            table[position] = _add(data, key, kind, declaration, folder)


def kind(name: str) -> str | None:
    """Return the kind that a file or a folder of C sources registers, "cc" or "qdisc"; None for other words. Raises
    InputError."""
    path = Path(name)
    if path.suffix != ".c" and not (path.is_dir() and any(path.glob("*.c"))):
        return None
    try:
        return c_source.registered(_read("FILE", UserText(name), Path())[0]).kind
    except ValueError as error:
        raise refusal("FILE", name, str(error)) from None


def registered_names(data: Data) -> dict[str, tuple[str, ...]]:
    """Return the names that modules register, by kind; invalid modules are skipped here and refused later."""
    names_by_kind: dict[str, tuple[str, ...]] = {CC: (), QDISC: ()}
    rows = data.get("module")
    for row in rows if isinstance(rows, list) else []:
        files = row.get("files") if isinstance(row, dict) else None
        if isinstance(files, dict) and all(isinstance(text, str) for text in files.values()):
            try:
                registration = c_source.registered(files)
            except ValueError:
                continue
            names_by_kind[registration.kind] = (*names_by_kind[registration.kind], registration.name)
    return names_by_kind


def _module_table(value: object) -> Data | None:
    """Return the table for a value; None if it is not a file."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str) or not value.strip().endswith((".c", "/")):
        return None
    return {"file": with_mark_of(value, value.strip())}


def _add(data: Data, key: str, kind: str, declaration: Data, folder: Path) -> str:
    file, name, parameters = (declaration.get(word) for word in KEYS)
    if unknown := next((word for word in declaration if word not in KEYS), None):
        raise refusal(f"{key}.{unknown}", declaration[unknown], f"unknown key. Known here: {', '.join(KEYS)}")
    if not isinstance(file, str):
        raise refusal(f"{key}.file", file, "must be the name of a C file, or of a folder of them")
    files, flags = _read(f"{key}.file" if "name" in declaration or "parameters" in declaration else key, file, folder)
    try:
        check_files(files)
        if name is not None:
            files = c_source.renamed(files, str(name))
        parameters = _parameters(parameters or {})
        registration = check_registration(files, parameters)
        if registration.kind != kind:
            raise ValueError(f"registers {DESCRIPTION[registration.kind]}, not {DESCRIPTION[kind]}")
    except ValueError as error:
        raise refusal(key, file, str(error)) from None
    row: Data = {"name": registration.name, "files": files}
    row |= {word: value for word, value in (("flags", list(flags)), ("parameters", parameters)) if value}
    rows = data.setdefault("module", [])
    if not isinstance(rows, list):
        raise refusal("module", rows, "must be a list of tables")
    existing = next(
        (candidate for candidate in rows if isinstance(candidate, dict) and candidate.get("name") == registration.name),
        row,
    )
    if existing is row:
        rows.append(row)
    elif existing != row:
        raise refusal(
            key, file, f"another module is already called {registration.name!r}; give one of them another `name`"
        )
    return registration.name


def _read(key: str, name: str, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the C files of a name, and their flags. The name is a file next to the scenario or in the current
    folder, or a folder: all of its files, or those in its Makefile."""
    path, _ = locate(key, name, folder)
    try:
        if not path.is_dir():
            return {Path(name).name: _text(key, name, folder)}, ()

        def text(inside: str) -> str:
            return _text(key, with_mark_of(name, str(Path(name, inside))), folder)

        makefile_name = next(
            (candidate for candidate in reversed(makefile.NAMES) if (path / candidate).is_file()), None
        )
        makefile_content = makefile.read(text(makefile_name)) if makefile_name else None
        found_files = {
            file.name
            for file in path.iterdir()
            if file.suffix == ".h" or (file.suffix == ".c" and not makefile_content)
        }
        if (
            missing := next((source for source in makefile_content.sources if not (path / source).is_file()), None)
            if makefile_content
            else None
        ):
            raise ValueError(f"its Makefile lists {missing[:-1]}o, but the folder lacks {missing}")
        names = sorted({*found_files, *(makefile_content.sources if makefile_content else ())})
        return {file_name: text(file_name) for file_name in names}, makefile_content.flags if makefile_content else ()
    except UnicodeDecodeError:
        raise refusal(key, name, "must be C sources in UTF-8") from None
    except ValueError as error:
        raise refusal(key, name, str(error)) from None


def _text(key: str, name: str, folder: Path) -> str:
    return read_file(key, name, folder)[0].decode()


ModulePosition = tuple[Any, Any, str, str]
"""A table or list, a key or index in it, the kind of the value, its dotted key."""


def _module_positions(data: Data) -> Iterator[ModulePosition]:
    """Yield the positions where a congestion control or a qdisc may be named."""
    stack, test = data.get("stack"), data.get("test")
    if isinstance(stack, dict):
        yield from _positions_in(stack, "stack", cc=CC, qdisc=QDISC)
        for name, node in stack.items():
            if name not in STACK_KEYS and isinstance(node, dict):
                yield from _positions_in(node, f"stack.{name}", cc=CC, qdisc=QDISC)
                devices = node.get("device")
                for device, device_stack in devices.items() if isinstance(devices, dict) else ():
                    yield from _positions_in(device_stack, f"stack.{name}.device.{device}", qdisc=QDISC, ingress=QDISC)
    if isinstance(test, dict):
        for word in ("flow_cc", "cc_algos", "tcp_cong_control"):
            if isinstance(text := test.get(word), str) and "," in text:
                test[word] = [with_mark_of(text, name.strip()) for name in text.split(",")]
            if isinstance(listed := test.get(word), list):
                yield from ((listed, position, CC, f"test.{word}.{position}") for position in range(len(listed)))
            else:
                yield from _positions_in(test, "test", **{word: CC})
        rows = test.get("competing")
        for position, row in enumerate(rows if isinstance(rows, list) else []):
            yield from _positions_in(row, f"test.competing.{position}", cc=CC)


def _positions_in(table: Any, above: str, **kinds: str) -> Iterator[ModulePosition]:
    if isinstance(table, dict):
        yield from ((table, word, kind, f"{above}.{word}") for word, kind in kinds.items() if word in table)
