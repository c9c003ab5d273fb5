# SPDX-License-Identifier: Apache-2.0
"""Lays kernel/hooks, kernel/drivers and kernel/tests over a kernel tree. The format is kernel/hooks/README.md.

A hook is anchored on whole lines of the kernel's own text, never on line numbers, so one file serves several kernel
versions; an anchor that is not found exactly as often as said is an error, never a guess. Anchors are looked for in the
kernel's own lines only: no hook can see, or depend on, what another hook wrote.

`overlay` works out the changed files from a pristine tree; `lay` writes them into a working tree and puts back what an
earlier overlay changed. Only files whose bytes differ are touched, so make rebuilds only those.
"""

import argparse
import operator
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hourglass import resources
from hourglass.errors import HourglassError, InputError

DRIVERS_TARGET = "drivers/net/hourglass"
MANIFEST = ".hourglass-overlay"
DOCUMENTATION = "Documentation/"
"""The folder whose edits are for readers of a patch: a guest is built without them."""

Version = tuple[int, int]
Overlay = dict[str, bytes]


class HookError(InputError):
    """A tree does not take a hook."""


class Edit(BaseModel):
    """One change: `text` before, after or instead of the line or lines `anchor`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str
    anchor: str
    place: Literal["before", "after", "replace"]
    text: str
    function: str | None = None
    optional: bool = False
    versions: str = ""
    because: str = ""
    count: int = 1


class NewFile(BaseModel):
    """A file of ours: kernel/hooks/`source` becomes `target` in the tree."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str
    target: str
    versions: str = ""
    because: str = ""


class Letter(BaseModel):
    """What a hook says where it is sent as a patch for real kernels."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    subject: str
    message: str


class Hook(BaseModel):
    """One file of kernel/hooks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    why: str
    patch: Letter | None = None
    file: list[NewFile] = []
    edit: list[Edit] = []

    def parts(self) -> dict[str, str]:
        """What it does in a file of the tree, as it is named where it is left out: {"tsq@tcp_output.c": path}."""
        return {f"{self.name}@{Path(edit.file).name}": edit.file for edit in self.edit}

    def less(self, without: Collection[str]) -> "Hook":
        """Without some of its parts."""
        gone = {path for part, path in self.parts().items() if part in without}
        return self.model_copy(update={"edit": [edit for edit in self.edit if edit.file not in gone]})


@dataclass
class Line:
    """One line of a file under edit; `ours` marks lines that a hook wrote."""

    text: str
    ours: bool = False


def load(folder: Path) -> list[Hook]:
    """All hooks of a folder, by name. Raises InputError for a file that is not a hook."""
    hooks = []
    for path in sorted(folder.glob("*.toml")):
        try:
            hook = Hook.model_validate(tomllib.loads(path.read_text()))
        except (tomllib.TOMLDecodeError, ValidationError) as problem:
            raise InputError("hook", path.name, str(problem)) from problem
        if hook.name != path.stem:
            raise InputError(f"{path.name}: name", hook.name, f"must be the file's own name, {path.stem!r}")
        hooks.append(hook)
    return hooks


def tree_version(tree: Path) -> Version:
    """VERSION and PATCHLEVEL of a kernel tree. Raises InputError when it is not one."""
    makefile = tree / "Makefile"
    text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    found = [re.search(rf"^{word} = (\d+)$", text, re.MULTILINE) for word in ("VERSION", "PATCHLEVEL")]
    if found[0] is None or found[1] is None:
        raise InputError("kernel tree", str(tree), "no Linux source tree: its Makefile lacks VERSION and PATCHLEVEL")
    return int(found[0][1]), int(found[1][1])


def release(tree: Path) -> str:
    """A kernel tree's release without what distributors add: "7.3.4"."""
    minor = re.search(r"^SUBLEVEL = (\d+)$", (tree / "Makefile").read_text(errors="replace"), re.MULTILINE)
    return ".".join([*map(str, tree_version(tree)), minor[1] if minor else "0"])


def in_range(version: Version, ranges: str) -> bool:
    """Whether a version satisfies e.g. ">=5.10 <6.6"; an empty range admits all."""
    compare = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq}
    for bound in ranges.replace(",", " ").split():
        parts = re.fullmatch(r"(>=|<=|==|>|<)(\d+)\.(\d+)", bound)
        if parts is None:
            raise InputError("versions", ranges, 'ranges such as ">=5.10 <6.6"')
        if not compare[parts[1]](version, (int(parts[2]), int(parts[3]))):
            return False
    return True


def function_spans(lines: list[Line], name: str) -> Iterator[range]:
    """The lines of each definition of a C function: from the line that names it to the next line that is just "}"."""
    head = re.compile(rf"^[^\s#*/].*\b{re.escape(name)}\s*\(|^{re.escape(name)}\s*\(")
    for start, line in enumerate(lines):
        if not head.search(line.text):
            continue
        for here in range(start, len(lines)):
            text = lines[here].text
            if "{" in text:
                if text.rstrip().endswith("}"):
                    yield range(start, here + 1)
                else:
                    end = next((i for i in range(here, len(lines)) if lines[i].text.rstrip() == "}"), len(lines) - 1)
                    yield range(start, end + 1)
                break
            if ";" in text:
                break


def anchor_places(lines: list[Line], edit: Edit) -> list[int]:
    """Where the anchor's first line stands; surrounding white space does not count, lines of hooks do not either."""
    anchor = [line.strip() for line in edit.anchor.strip("\n").split("\n")]
    spans = [range(len(lines))] if edit.function is None else list(function_spans(lines, edit.function))
    return [
        first
        for span in spans
        for first in range(span.start, span.stop - len(anchor) + 1)
        if all(not lines[first + i].ours and lines[first + i].text.strip() == wanted for i, wanted in enumerate(anchor))
    ]


def apply_edit(lines: list[Line], edit: Edit, hook: str, version: Version) -> None:
    """Carries out one edit. Raises InputError naming hook, file and anchor when the anchor does not match."""
    places = anchor_places(lines, edit)
    if not places and edit.optional:
        return
    if len(places) != edit.count:
        where = edit.file + (f", function {edit.function}" if edit.function else "")
        found = f"matches {len(places)} times in Linux {version[0]}.{version[1]}, must match {edit.count}"
        raise HookError(f"kernel/hooks/{hook}.toml: anchor in {where}", edit.anchor.strip(), found)
    height = len(edit.anchor.strip("\n").split("\n"))
    new = [Line(text, ours=True) for text in edit.text.removesuffix("\n").split("\n")] if edit.text else []
    for first in reversed(places):
        if edit.place == "replace":
            lines[first : first + height] = new
        else:
            at = first if edit.place == "before" else first + height
            lines[at:at] = new


def overlay(pristine: Path, kernel: Path = resources.KERNEL, without: Iterable[str] = ()) -> Overlay:
    """The files, by their path in the tree, that hooks, drivers and tests change or add in a pristine tree.

    `without`: hooks that are left out ("tsq"), or what one does in a file ("tsq@tcp_output.c").
    """
    version, left_out = tree_version(pristine), set(without)
    hooks = load(kernel / "hooks")
    if unknown := left_out - {name for hook in hooks for name in (hook.name, *hook.parts())}:
        raise InputError("without", sorted(unknown), f"one of {[hook.name for hook in hooks]}, or HOOK@FILE")
    files = hooked(pristine, [hook.less(left_out) for hook in hooks if hook.name not in left_out], kernel, version)
    return files if "drivers" in left_out else files | drivers(kernel)


def hooked(
    pristine: Path, hooks: Iterable[Hook], kernel: Path, version: Version, documentation: bool = False
) -> Overlay:
    """The files that hooks change or add in a pristine tree; below Documentation/ only if asked for."""
    edited: dict[str, list[Line]] = {}
    files: Overlay = {}
    for hook in hooks:
        for new in hook.file:
            if in_range(version, new.versions):
                files[new.target] = (kernel / "hooks" / new.source).read_bytes()
        for edit in hook.edit:
            if in_range(version, edit.versions) and (documentation or not edit.file.startswith(DOCUMENTATION)):
                if edit.file not in edited:
                    edited[edit.file] = read_lines(pristine / edit.file, edit, hook.name)
                apply_edit(edited[edit.file], edit, hook.name, version)
    return files | {
        name: "\n".join(line.text for line in lines).encode("utf-8", "surrogateescape")
        for name, lines in edited.items()
    }


def read_lines(path: Path, edit: Edit, hook: str) -> list[Line]:
    """A file of the tree, ready for edits."""
    if not path.is_file():
        raise HookError(f"kernel/hooks/{hook}.toml: file", edit.file, "is not in this kernel tree")
    return [Line(text) for text in path.read_bytes().decode("utf-8", "surrogateescape").split("\n")]


def drivers(kernel: Path) -> Overlay:
    """kernel/drivers with its folders, and the C files of kernel/tests, all for drivers/net/hourglass of the tree."""
    found = [(path, path.relative_to(kernel / "drivers")) for path in (kernel / "drivers").rglob("*")]
    found += [(path, path.relative_to(kernel / "tests")) for path in (kernel / "tests").glob("*.[ch]")]
    wanted = {"Kconfig", "Makefile"}
    return {
        f"{DRIVERS_TARGET}/{name}": path.read_bytes()
        for path, name in sorted(found)
        if path.is_file() and (path.suffix in {".c", ".h"} or path.name in wanted)
    }


def lay(files: Overlay, tree: Path, pristine: Path | None = None) -> list[str]:
    """Writes an overlay into a working tree; gives the files whose bytes changed.

    With `pristine`, what an earlier overlay changed and this one does not is put back. Without it, a tree that already
    has an overlay is refused: hooks are never applied twice.
    """
    manifest = tree / MANIFEST
    before = manifest.read_text().splitlines() if manifest.exists() else []
    if before and pristine is None:
        raise InputError("kernel tree", str(tree), "already has the hooks: give a fresh copy, or --pristine")
    manifest.write_text("\n".join(sorted({*files, *before})))
    changed = [name for name, content in files.items() if write_if_changed(tree / name, content)]
    for name in before:
        if name not in files and pristine is not None and restore(pristine / name, tree / name):
            changed.append(name)
    manifest.write_text("\n".join(sorted(files)))
    return changed


def write_if_changed(path: Path, content: bytes) -> bool:
    """Writes a new file in place of the old one, hard links to which stay as they were; leaves equal files alone."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".hourglass-new")
    fresh.write_bytes(content)
    if path.exists():
        fresh.chmod(path.stat().st_mode)
    fresh.replace(path)
    return True


def restore(original: Path, path: Path) -> bool:
    """Puts a file back to what it was before any overlay: its pristine bytes, or nothing."""
    if original.is_file():
        return write_if_changed(path, original.read_bytes())
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def main() -> None:
    """`python -m hourglass.engine.kernel.hooks TREE`: for experiments with a hook."""
    parser = argparse.ArgumentParser(description="Applies kernel/hooks, kernel/drivers and kernel/tests to a tree.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--pristine", type=Path, help="derive from this tree; allows TREE to have older hooks")
    parser.add_argument("--without", action="append", default=[], metavar="HOOK")
    given = parser.parse_args()
    try:
        files = overlay(given.pristine or given.tree, without=given.without)
        for name in lay(files, given.tree, given.pristine):
            print(os.fspath(given.tree / name))
    except HourglassError as problem:
        raise SystemExit(str(problem)) from None


if __name__ == "__main__":
    main()
