# SPDX-License-Identifier: Apache-2.0
"""Add the sources of custom congestion controls and qdiscs to a kernel tree, to be compiled into the kernel.

Each module has a folder below drivers/net/hourglass/modules, with a Makefile that links its files to one object.
So its parameters are NAME.PARAMETER on the kernel's command line, like those of every built-in module. `#line` lets the
compiler's messages name the user's file.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hourglass import files
from hourglass.builders.kernel.hooks import DRIVERS_TARGET, Overlay
from hourglass.contract.kernel_module import KernelModule
from hourglass.errors import InputError

MODULES_FOLDER = f"{DRIVERS_TARGET}/modules"
LINES_SHOWN, CHARACTERS_SHOWN = 20, 1000

LINKED = (
    "linux", "vmlinux", "vmlinux.o", "vmlinux.unstripped", "vmlinux.map", "vmlinux.symvers", ".vmlinux.export.*",
    ".tmp_vmlinux*", "*System.map", "modules.builtin.modinfo",
)  # fmt: skip
"""The programs that contain all objects, in the top folder, and lists of their names. The last link makes them."""

_HEAD = "# SPDX-License-Identifier: GPL-2.0-only\n"
_INCLUDE_FOLDERS = (f"{DRIVERS_TARGET}/lib", f"{DRIVERS_TARGET}/probe", "net/ipv4", "net/sched")
_INCLUDE_FLAGS = " ".join(f"-I$(srctree)/{folder}" for folder in _INCLUDE_FOLDERS)
_COMPILER_MESSAGE = re.compile(r"^\S+\.[ch]:\d+(:\d+)?: (fatal error|error|note): ")
_LINKER_MESSAGE = re.compile(
    r"undefined reference|multiple definition|terminated program|memory exhausted|out of memory"
)
_BUILTIN_NAMES = {
    "net/ipv4/tcp_*.c": r'\.name\s*=\s*"{}"', "net/sched/sch_*.c": r'\.id\s*=\s*"{}"'
}  # fmt: skip
"""The files of a kernel's own congestion controls and qdiscs, and the pattern of their names."""


def with_modules(files: Overlay, modules: Sequence[KernelModule]) -> Overlay:
    """Return an overlay with the sources of modules."""
    if not modules:
        return files
    makefile = f"{DRIVERS_TARGET}/Makefile"
    added = {makefile: files[makefile] + b"obj-y += modules/\n"}
    folders = " ".join(f"{module.name}/" for module in modules)
    added[f"{MODULES_FOLDER}/Makefile"] = f"{_HEAD}obj-y := {folders}\n".encode()
    for module in modules:
        added |= {f"{MODULES_FOLDER}/{module.name}/{name}": text.encode() for name, text in _files(module)}
    return files | added


def _files(module: KernelModule) -> Iterable[tuple[str, str]]:
    """Yield the files of a module's folder: the Makefile, the headers, and the sources as NAME_INDEX.c, since
    NAME.o is their linked object."""
    objects = []
    for index, (name, text) in enumerate(module.files):
        if name.endswith(".c"):
            objects.append(f"{module.name}_{index}.o")
            yield f"{module.name}_{index}.c", f'#line 1 "{name}"\n{text}'
        else:
            yield name, text
    rules = f"obj-y := {module.name}.o\n{module.name}-y := {' '.join(objects)}\n"
    yield "Makefile", f"{_HEAD}ccflags-y := {' '.join([_INCLUDE_FLAGS, *module.flags])}\n{rules}"


def delete_objects(work: Path, modules: Sequence[KernelModule]) -> None:
    """Delete what earlier modules left in a working tree: their objects, and the programs that contain them. Otherwise
    the `.incbin` of a later module could read them."""
    if not modules:
        return
    folder, names = work / MODULES_FOLDER, {module.name for module in modules}
    for earlier in folder.iterdir():
        if earlier.is_dir() and earlier.name not in names:
            files.delete(earlier)
    for pattern in LINKED:
        for path in work.glob(pattern):
            path.unlink()
    for path in folder.rglob("*.o"):
        path.unlink()


def refuse_builtin_names(tree: Path, modules: Sequence[KernelModule]) -> None:
    """Raise InputError for a name that the kernel has already: the kernel would use its own module."""
    for module in modules:
        for pattern, name_pattern in _BUILTIN_NAMES.items():
            for path in tree.glob(pattern):
                if re.search(name_pattern.format(module.name), path.read_text(errors="replace")):
                    raise InputError(
                        "name",
                        module.name,
                        f"this kernel already has it, in {path.relative_to(tree)}; choose another name",
                    )


def compiler_messages(log: Path, modules: Sequence[KernelModule]) -> list[str]:
    """Return the compiler's messages on the modules' files from a failed build's log, or else the linker's messages. At
    most `LINES_SHOWN` lines of `CHARACTERS_SHOWN`."""
    text = log.read_text(errors="replace")
    for module in modules:
        text = text.replace(f"{MODULES_FOLDER}/{module.name}/", "")
    names = {name for module in modules for name, _ in module.files}
    lines = text.splitlines()
    messages = [line for line in lines if _COMPILER_MESSAGE.match(line) and line.split(":")[0] in names]
    if not any("error: " in line for line in messages):
        messages = [line for line in lines if _LINKER_MESSAGE.search(line)] if modules else []
    return [line[:CHARACTERS_SHOWN] for line in messages[:LINES_SHOWN]]
