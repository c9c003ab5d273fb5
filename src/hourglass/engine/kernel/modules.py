# SPDX-License-Identifier: Apache-2.0
"""Congestion controls and qdiscs of the user's own: their sources laid into a tree, to be compiled into the kernel.

Each has a folder below drivers/net/hourglass/modules, with a Makefile that makes one object of its files, so that its
parameters are NAME.PARAMETER on the command line, as of any module that is built in. What the compiler says is about
the user's file: `#line` names it.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hourglass.contract.modules import Module
from hourglass.engine.kernel.hooks import DRIVERS_TARGET, Overlay
from hourglass.errors import InputError

FOLDER = f"{DRIVERS_TARGET}/modules"
LINES_SHOWN = 20

_HEAD = "# SPDX-License-Identifier: GPL-2.0-only\n"
_INCLUDED = " ".join(f"-I$(srctree)/{one}" for one in (DRIVERS_TARGET, "net/ipv4", "net/sched"))
_SAID = re.compile(r"^\S+\.[ch]:\d+(:\d+)?: (fatal error|error|note): ")
_LINKING = re.compile(r"undefined reference|multiple definition")
_OWN = {
    "net/ipv4/tcp_*.c": r'\.name\s*=\s*"{}"', "net/sched/sch_*.c": r'\.id\s*=\s*"{}"'
}  # fmt: skip
"""Where a kernel's own congestion controls and qdiscs are, and how they say their names."""


def laid(files: Overlay, modules: Sequence[Module]) -> Overlay:
    """An overlay with the sources of modules."""
    if not modules:
        return files
    makefile = f"{DRIVERS_TARGET}/Makefile"
    own = {makefile: files[makefile] + b"obj-y += modules/\n"}
    folders = " ".join(f"{one.name}/" for one in modules)
    own[f"{FOLDER}/Makefile"] = f"{_HEAD}obj-y := {folders}\n".encode()
    for one in modules:
        own |= {f"{FOLDER}/{one.name}/{name}": text.encode() for name, text in _files(one)}
    return files | own


def _files(module: Module) -> Iterable[tuple[str, str]]:
    """A module's folder: sources under names that are not the module's, headers, the Makefile."""
    objects = []
    for place, (name, text) in enumerate(module.files):
        if name.endswith(".c"):
            objects.append(f"{module.name}_{place}.o")
            yield f"{module.name}_{place}.c", f'#line 1 "{name}"\n{text}'
        else:
            yield name, text
    parts = f"obj-y := {module.name}.o\n{module.name}-y := {' '.join(objects)}\n"
    yield "Makefile", f"{_HEAD}ccflags-y := {' '.join([_INCLUDED, *module.flags])}\n{parts}"


def refuse_known(tree: Path, modules: Sequence[Module]) -> None:
    """Raises InputError for a name that the kernel has already: it would go on with its own."""
    for module in modules:
        for pattern, named in _OWN.items():
            for path in tree.glob(pattern):
                if re.search(named.format(module.name), path.read_text(errors="replace")):
                    raise InputError("name", module.name, f"this kernel has one in {path.relative_to(tree)}")


def blamed(log: Path, modules: Sequence[Module]) -> list[str]:
    """The lines of a failed build's log that are about modules, with the names of the user's files; none if it failed
    for another reason."""
    whole = log.read_text(errors="replace")
    for module in modules:
        whole = whole.replace(f"{FOLDER}/{module.name}/", "")
    names = {name for module in modules for name, _ in module.files}
    lines = whole.splitlines()
    said = [line for line in lines if _SAID.match(line) and line.split(":")[0] in names]
    if not any("error: " in line for line in said):
        said = [line for line in lines if _LINKING.search(line)] if modules else []
    return said[:LINES_SHOWN]
