# SPDX-License-Identifier: Apache-2.0
"""The Makefile of a folder of C files, as kbuild has it: which are compiled, and with what.

    obj-m := my_cc.o                    obj-y is the same
    my_cc-y := main.o pacing.o          or my_cc-objs; without it my_cc.c is meant
    ccflags-y := -DDEBUG -I$(src)

It is read, not carried out: whoever is given a scenario compiles its files and runs no commands of it. Lists are plain:
names, no variables; `=`, `:=` and `+=` alike, as a list is given once or grows. Conditionals, rules and other variables
are for the user's own builds, and passed over.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

NAMES = ("Makefile", "Kbuild")
"""The files that kbuild looks for; where both are there, the second."""

FLAG = r"-D\w+(=[\w.+-]*)?|-U\w+|-W[a-z0-9=+-]*|-I\$\((src|obj)\)|-I\$\(srctree\)/[\w][\w/-]*|-std=gnu\d\d"
FLAGS = "-D, -U, -W…, -I$(src), -I$(srctree)/FOLDER"

_FLAG = re.compile(FLAG, re.ASCII)
_LIST = re.compile(r"([\w.-]+?)(-y|-m|-objs)\s*(?::|\+)?=\s*(.*)", re.ASCII)
_OTHER = re.compile(r"(?:obj|ccflags|subdir|lib)-|[\w.-]+-\$|C?FLAGS_|EXTRA_CFLAGS|include\b", re.ASCII)
_OBJECT = re.compile(r"[A-Za-z0-9_][\w.+-]*\.o", re.ASCII)


@dataclass(frozen=True)
class Makefile:
    """`sources`: what is compiled, in the order of the lists; `flags`: for all of them."""

    sources: tuple[str, ...]
    flags: tuple[str, ...]


def read(text: str) -> Makefile:
    """What a Makefile says. Raises ValueError."""
    lists: dict[str, list[str]] = {}
    for number, line in _lines(text):
        found = _LIST.fullmatch(line)
        if found is None or (found[1] not in ("obj", "ccflags") and found[2] == "-m"):
            if _OTHER.match(line):
                raise ValueError(
                    f"line {number} of its Makefile, {line!r}: plain lists alone: obj-m, NAME-y, NAME-objs, ccflags-y"
                )
            continue
        name = found[1] if found[1] in ("obj", "ccflags") else f"{found[1]}.o"
        check_list(name, words := found[3].split(), f"line {number} of its Makefile")
        lists.setdefault(name, []).extend(words)
    if not (objects := lists.get("obj")):
        raise ValueError("its Makefile names no object: obj-m := NAME.o")
    parts = [part for one in objects for part in lists.get(one, [one])]
    sources = dict.fromkeys(f"{part.removesuffix('.o')}.c" for part in parts)
    return Makefile(tuple(sources), tuple(dict.fromkeys(lists.get("ccflags", []))))


def check_list(name: str, words: Iterable[str], where: str) -> None:
    """Raises ValueError for what no list of objects, or of flags, may hold."""
    regex, allowed = (
        (_FLAG, f"flags are {FLAGS}") if name == "ccflags" else (_OBJECT, "objects of the folder, like a.o")
    )
    if odd := next((word for word in words if not regex.fullmatch(word)), None):
        raise ValueError(f"{where}: {odd!r}: {allowed}")


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Lines that are no rule's, without comments, with what continues them; each with its number."""
    whole, first = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if not whole:
            first = number
        whole += line
        if whole.endswith("\\"):
            whole = f"{whole[:-1]} "
            continue
        plain = whole.partition("#")[0].strip()
        if plain and not whole.startswith("\t"):
            yield first, plain
        whole = ""
