# SPDX-License-Identifier: Apache-2.0
"""What C sources of a congestion control or a qdisc say of themselves: what it is called, which parameters it has.

Read from the text, not by a compiler: the struct whose address is registered, and the name in its initializer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CC, QDISC = "cc", "qdisc"

_REGISTERED = {
    CC: (r"\btcp_register_congestion_control\s*\(\s*&\s*(\w+)", "tcp_congestion_ops", "name"),
    QDISC: (r"\bregister_qdisc\s*\(\s*&\s*(\w+)", "Qdisc_ops", "id"),
}
"""By kind: who registers it, the struct that is registered, the field with its name."""

WHAT = {CC: "a congestion control", QDISC: "a qdisc"}

_SAID = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
NAMES = r"[A-Za-z][A-Za-z0-9_]{0,14}"
_PARAMETER = re.compile(r"\bmodule_param\s*\(\s*(\w+)\s*,\s*(\w+)|\bmodule_param_named\s*\(\s*(\w+)\s*,[^,]*,\s*(\w+)")

INTEGERS = {
    "byte": (0, 2**8 - 1), "short": (-(2**15), 2**15 - 1), "ushort": (0, 2**16 - 1), "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1), "hexint": (0, 2**32 - 1), "long": (-(2**63), 2**63 - 1), "ulong": (0, 2**64 - 1),
    "ullong": (0, 2**64 - 1),
}  # fmt: skip
"""Bounds of the types of a module's parameters that are numbers."""
_TEXT = re.compile(r"[!#-~]{1,200}", re.ASCII)


@dataclass(frozen=True)
class Registered:
    """What sources register. `file`, `start`, `end`: where its name stands, between the quotes."""

    kind: str
    name: str
    file: str
    start: int
    end: int


def registered(files: Mapping[str, str]) -> Registered:
    """The one congestion control or qdisc that sources register. Raises ValueError."""
    found = [
        _named(kind, ops, files)
        for text in files.values()
        for kind, (call, _, _) in _REGISTERED.items()
        for ops in re.findall(call, without_comments(text))
    ]
    if not found:
        raise ValueError("registers nothing: neither tcp_register_congestion_control(&…) nor register_qdisc(&…)")
    if len(found) > 1:
        raise ValueError(f"registers {' and '.join(one.name for one in found)}: give each a file of its own")
    if not re.fullmatch(NAMES, found[0].name, re.ASCII):
        raise ValueError(f"its name {found[0].name!r} is not 1 to 15 letters, digits and _, beginning with a letter")
    return found[0]


def _named(kind: str, ops: str, files: Mapping[str, str]) -> Registered:
    _, struct, field = _REGISTERED[kind]
    for file, text in files.items():
        code = without_comments(text)
        if not (begin := re.search(rf"\bstruct\s+{struct}\s+{ops}\b[^;={{]*=\s*{{", code)):
            continue
        end = code.find("};", begin.end())
        name = re.compile(rf'\.{field}\s*=\s*"([^"\n]*)"').search(code, begin.end(), end if end > 0 else len(code))
        if name:
            return Registered(kind, name[1], file, name.start(1), name.end(1))
    raise ValueError(f'registers {ops}, but has no `struct {struct} {ops} = {{ … .{field} = "NAME" … }}`')


def without_comments(text: str) -> str:
    """The same with blanks for comments; places stay."""
    return _SAID.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text)


def renamed(files: Mapping[str, str], name: str) -> dict[str, str]:
    """The sources with another name in place of what they register, and nothing else changed."""
    found = registered(files)
    text = files[found.file]
    return {**files, found.file: text[: found.start] + name + text[found.end :]}


def parameters(files: Mapping[str, str]) -> dict[str, str]:
    """The parameters of the module, and their types."""
    found = [one for text in files.values() for one in _PARAMETER.findall(without_comments(text))]
    return {plain or named: kind or other for plain, kind, named, other in found}


def parameter(files: Mapping[str, str], name: str, value: object) -> str:
    """A parameter's value as the kernel reads it. Raises ValueError for what it has not, or would not take."""
    there = parameters(files)
    if name not in there:
        raise ValueError(f"no module_param of this name; there are: {', '.join(sorted(there)) or 'none'}")
    kind = there[name]
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{kind}: a whole number from {low} to {high}")
        return str(value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError("true or false")
        return "Y" if value else "N"
    if kind == "charp":
        if not isinstance(value, str) or not _TEXT.fullmatch(value):
            raise ValueError('text of at most 200 visible characters of ASCII, without blanks and "')
        return value
    raise ValueError(f"of the type {kind}; parameters that can be set are {', '.join((*INTEGERS, 'bool', 'charp'))}")
