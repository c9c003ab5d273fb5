# SPDX-License-Identifier: Apache-2.0
"""Read name and parameters of a congestion control or a qdisc from its C sources.

They are read from the text, without a compiler: the struct whose address is registered, and the name in its
initializer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CC, QDISC = "cc", "qdisc"

_REGISTERED = {
    CC: (r"\btcp_register_congestion_control\s*\(\s*&\s*(\w+)", "tcp_congestion_ops", "name"),
    QDISC: (r"\bregister_qdisc\s*\(\s*&\s*(\w+)", "Qdisc_ops", "id"),
}
"""By kind: the registering function, the registered struct, the field with its name."""

_BPF_OPS = {kind: rf'\bSEC\s*\(\s*"\.struct_ops[.\w]*"\s*\)\s*struct\s+{ops}\s+(\w+)'
            for kind, (_, ops, _) in _REGISTERED.items()}  # fmt: skip
"""By kind: the struct that a BPF object registers."""

DESCRIPTION = {CC: "a congestion control", QDISC: "a qdisc"}

_EXPORT = re.compile(r"^EXPORT_SYMBOL\w*\((\w+).*\);\n", re.MULTILINE)
_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
NAMES = r"[A-Za-z][A-Za-z0-9_]{0,14}"
FILES_OF_MAKE = ("Makefile", "Kbuild", "Kconfig")
"""Names that a folder of modules needs for itself."""
_PARAMETER = re.compile(r"\bmodule_param\s*\(\s*(\w+)\s*,\s*(\w+)|\bmodule_param_named\s*\(\s*(\w+)\s*,[^,]*,\s*(\w+)")

INTEGERS = {
    "byte": (0, 2**8 - 1), "short": (-(2**15), 2**15 - 1), "ushort": (0, 2**16 - 1), "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1), "hexint": (0, 2**32 - 1), "long": (-(2**63), 2**63 - 1), "ulong": (0, 2**64 - 1),
    "ullong": (0, 2**64 - 1),
}  # fmt: skip
"""The ranges of integer module parameters."""
_TEXT = re.compile(r"[!#-~]{1,200}", re.ASCII)


@dataclass(frozen=True)
class Registration:
    """The algorithm that sources register. `file`, `start`, `end`: the position of its name, between the quotes."""

    kind: str
    name: str
    file: str
    start: int
    end: int


def registered(files: Mapping[str, str]) -> Registration:
    """Return the only congestion control or qdisc that the sources register. Raises ValueError."""
    registrations = [
        _named(kind, ops, files)
        for text in files.values()
        for kind, (call, _, _) in _REGISTERED.items()
        for pattern in (call, _BPF_OPS[kind])
        for ops in re.findall(pattern, without_comments(text))
    ]
    if not registrations:
        raise ValueError(
            "registers nothing: call tcp_register_congestion_control(&…) or register_qdisc(&…), or in BPF declare"
            ' SEC(".struct_ops") struct tcp_congestion_ops … or struct Qdisc_ops …'
        )
    if len(registrations) > 1:
        names = " and ".join(registration.name for registration in registrations)
        raise ValueError(f"registers {names}; put each into a separate file")
    if registrations[0].name in FILES_OF_MAKE:
        raise ValueError(f"registers the name {registrations[0].name!r}, which is a file of make; set another `name`")
    if not re.fullmatch(NAMES, registrations[0].name, re.ASCII):
        raise ValueError(
            f"registers the name {registrations[0].name!r}; a name is 1 to 15 letters, digits and _,"
            " beginning with a letter"
        )
    return registrations[0]


def _named(kind: str, ops: str, files: Mapping[str, str]) -> Registration:
    _, struct, field = _REGISTERED[kind]
    for file, text in files.items():
        code = without_comments(text)
        if not (begin := re.search(rf"\bstruct\s+{struct}\s+{ops}\b[^;={{]*=\s*{{", code)):
            continue
        end = code.find("};", begin.end())
        name = re.compile(rf'\.{field}\s*=\s*"([^"\n]*)"').search(code, begin.end(), end if end > 0 else len(code))
        if name:
            return Registration(kind, name[1], file, name.start(1), name.end(1))
    raise ValueError(f'registers {ops}, but lacks `struct {struct} {ops} = {{ … .{field} = "NAME" … }}`')


def without_comments(text: str) -> str:
    """Replace comments by blanks; positions stay the same."""
    return _TEXT_OR_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)


def renamed(files: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the sources with another registered name, and no other change."""
    registration = registered(files)
    text = files[registration.file]
    return {**files, registration.file: text[: registration.start] + name + text[registration.end :]}


def private(text: str, prefix: str) -> str:
    """Return a source without exports: its exported functions become static and get a prefix, so that a kernel can
    contain a second copy. Raises ValueError if it exports anything but functions that it defines."""
    names = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    for name in names:
        text = re.sub(rf"\b{name}\b", f"{prefix}_{name}", text)
        definition = rf"^(?!static\b)([a-z_][\w *]*[ *]){prefix}_{name}\("
        text, count = re.subn(definition, rf"static \1{prefix}_{name}(", text, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"exports {name}, which is not a function that it defines")
    return text


def parameters(files: Mapping[str, str]) -> dict[str, str]:
    """Return the module's parameters and their types."""
    declarations = [
        declaration for text in files.values() for declaration in _PARAMETER.findall(without_comments(text))
    ]
    return {plain or alias: kind or alias_type for plain, kind, alias, alias_type in declarations}


def parameter(files: Mapping[str, str], name: str, value: object) -> str:
    """Return a parameter's value as the kernel reads it. Raises ValueError if it is unknown or out of range."""
    declared = parameters(files)
    if name not in declared:
        raise ValueError(f"no module_param has this name; known here: {', '.join(sorted(declared)) or 'none'}")
    kind = declared[name]
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high} ({kind})")
        return str(value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return "Y" if value else "N"
    if kind == "charp":
        if not isinstance(value, str) or not _TEXT.fullmatch(value):
            raise ValueError('must be text of at most 200 visible ASCII characters, without blanks and "')
        return value
    raise ValueError(f"has the type {kind}; parameters that you can set are {', '.join((*INTEGERS, 'bool', 'charp'))}")
