# SPDX-License-Identifier: Apache-2.0
"""Read the Makefile of a folder of C files, as kbuild has it: the compiled files and their flags.

    obj-m := my_cc.o                    obj-y is the same
    my_cc-y := main.o pacing.o          or my_cc-objs; without it, my_cc.c
    ccflags-y := -DDEBUG -I$(src)

It is read, not executed: a scenario from somebody else compiles its files and runs no commands. Lists are plain: names,
no variables. `=`, `:=` and `+=` mean the same, since a list is given once or grows. Rules, other variables and the
lines of conditionals are for the user's builds and are skipped; lists inside conditionals count.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

NAMES = ("Makefile", "Kbuild")
"""The files that kbuild looks for; the second wins."""

FLAG = r"-D\w+(=[\w.+-]*)?|-U\w+|-W[a-z0-9=+-]*|-I\$\((src|obj)\)|-I\$\(srctree\)/[\w][\w/-]*|-std=gnu\d\d"
FLAGS = "-D, -U, -W…, -I$(src), -I$(srctree)/FOLDER"

_FLAG = re.compile(FLAG, re.ASCII)
_LIST = re.compile(r"([\w.-]+?)(-y|-m|-objs)\s*(?::|\+)?=\s*(.*)", re.ASCII)
_OTHER = re.compile(r"(?:obj|ccflags|subdir|lib)-|[\w.-]+-\$|C?FLAGS_|EXTRA_CFLAGS|include\b", re.ASCII)
_OBJECT = re.compile(r"[A-Za-z0-9_][\w.+-]*\.o", re.ASCII)


@dataclass(frozen=True)
class Makefile:
    """`sources`: the compiled files, in the order of the lists; `flags`: for all of them."""

    sources: tuple[str, ...]
    flags: tuple[str, ...]


def read(text: str) -> Makefile:
    """Read sources and flags from a Makefile. Raises ValueError."""
    lists: dict[str, list[str]] = {}
    for number, line in _lines(text):
        match = _LIST.fullmatch(line)
        if match is None or (match[1] not in ("obj", "ccflags") and match[2] == "-m"):
            if _OTHER.match(line):
                raise ValueError(
                    f"line {number} of its Makefile, {line!r}, must be a plain list: obj-m, NAME-y, NAME-objs,"
                    " ccflags-y"
                )
            continue
        name = match[1] if match[1] in ("obj", "ccflags") else f"{match[1]}.o"
        check_list(name, tokens := match[3].split(), f"line {number} of its Makefile")
        lists.setdefault(name, []).extend(tokens)
    if not (objects := lists.get("obj")):
        raise ValueError("its Makefile names no object; add obj-m := NAME.o")
    parts = [part for object_name in objects for part in lists.get(object_name, [object_name])]
    sources = dict.fromkeys(f"{part.removesuffix('.o')}.c" for part in parts)
    return Makefile(tuple(sources), tuple(dict.fromkeys(lists.get("ccflags", []))))


def check_list(name: str, tokens: Iterable[str], where: str) -> None:
    """Check a list of objects or flags. Raises ValueError."""
    regex, allowed = (
        (_FLAG, f"must be one of the flags {FLAGS}")
        if name == "ccflags"
        else (_OBJECT, "must be an object of the folder, like a.o")
    )
    if invalid := next((word for word in tokens if not regex.fullmatch(word)), None):
        raise ValueError(f"{where}: {invalid!r} {allowed}")


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Yield numbered lines that belong to no rule, without comments, joined with their continuations."""
    statement, first = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if not statement:
            first = number
        statement += line
        if statement.endswith("\\"):
            statement = f"{statement[:-1]} "
            continue
        plain = statement.partition("#")[0].strip()
        if plain and not statement.startswith("\t"):
            yield first, plain
        statement = ""
