# SPDX-License-Identifier: Apache-2.0
"""Apply kernel/hooks, kernel/drivers and kernel/tests to a kernel tree. kernel/hooks/README.md describes the format.

An anchor consists of whole lines of the kernel's text, without line numbers, so one file serves several kernel
versions. It must match exactly as often as declared. Only the kernel's own lines match: no hook sees, or depends on,
the text of another hook.

`overlay` computes the changed files from a pristine tree. `lay` writes them into a working tree, and restores the files
that only an earlier overlay changed. Files whose bytes stay the same are not touched, so make rebuilds only the others.
"""

import argparse
import json
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
"""The folder with edits for readers of a patch. Guests are built without them."""

Version = tuple[int, int]
Overlay = dict[str, bytes]


class HookError(InputError):
    """A hook that does not match a tree."""

    code = "hook"


class Edit(BaseModel):
    """A change: `text` before, after or instead of the line or lines `anchor`."""

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
    """A new file: kernel/hooks/`source` becomes `target` in the tree."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str
    target: str
    versions: str = ""
    because: str = ""


class Letter(BaseModel):
    """Subject and message of a hook's patch for real kernels."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    subject: str
    message: str


class Hook(BaseModel):
    """A file of kernel/hooks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    why: str
    patch: Letter | None = None
    file: list[NewFile] = []
    edit: list[Edit] = []

    def parts(self) -> dict[str, str]:
        """Return the hook's parts, one per edited file, by the name that leaves it out: {"tsq@tcp_output.c": path}."""
        return {f"{self.name}@{Path(edit.file).name}": edit.file for edit in self.edit}

    def edits(self, version: Version, documentation: bool = False) -> list[Edit]:
        """Return the edits for a version; those below Documentation/ only on request."""
        edits = [edit for edit in self.edit if documentation or not edit.file.startswith(DOCUMENTATION)]
        return [edit for edit in edits if in_range(version, edit.versions)]

    def leaving_out(self, without: Collection[str]) -> "Hook":
        """Return the hook without some of its parts."""
        files = {path for part, path in self.parts().items() if part in without}
        return self.model_copy(update={"edit": [edit for edit in self.edit if edit.file not in files]})


@dataclass
class EditedLine:
    """A line of an edited file. `inserted` marks the lines of hooks."""

    text: str
    inserted: bool = False


def load(folder: Path) -> list[Hook]:
    """Return all hooks of a folder, by name. Raises InputError for a file that is not a hook."""
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
    """Return VERSION and PATCHLEVEL of a kernel tree. Raises InputError if the folder is not one."""
    makefile = tree / "Makefile"
    text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    matches = [re.search(rf"^{word} = (\d+)$", text, re.MULTILINE) for word in ("VERSION", "PATCHLEVEL")]
    if matches[0] is None or matches[1] is None:
        raise InputError(
            "kernel tree", str(tree), "is not a Linux source tree: its Makefile lacks VERSION and PATCHLEVEL"
        )
    return int(matches[0][1]), int(matches[1][1])


def release(tree: Path) -> str:
    """Return a kernel tree's release without a distributor's suffix: "7.3.4"."""
    minor = re.search(r"^SUBLEVEL = (\d+)$", (tree / "Makefile").read_text(errors="replace"), re.MULTILINE)
    return ".".join([*map(str, tree_version(tree)), minor[1] if minor else "0"])


def in_range(version: Version, ranges: str) -> bool:
    """Return whether a version satisfies ranges such as ">=5.10 <6.6". An empty text admits all."""
    compare = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq}
    for bound in ranges.replace(",", " ").split():
        parts = re.fullmatch(r"(>=|<=|==|>|<)(\d+)\.(\d+)", bound)
        if parts is None:
            raise InputError("versions", ranges, 'must be ranges like ">=5.10 <6.6"')
        if not compare[parts[1]](version, (int(parts[2]), int(parts[3]))):
            return False
    return True


def function_spans(lines: list[EditedLine], name: str) -> Iterator[range]:
    """Yield the lines of each definition of a C function: from the line with its name to the next line that is just
    "}"."""
    head = re.compile(rf"^[^\s#*/].*\b{re.escape(name)}\s*\(|^{re.escape(name)}\s*\(")
    for start, line in enumerate(lines):
        if not head.search(line.text):
            continue
        for brace in range(start, len(lines)):
            text = lines[brace].text
            if "{" in text:
                if text.rstrip().endswith("}"):
                    yield range(start, brace + 1)
                else:
                    end = next((i for i in range(brace, len(lines)) if lines[i].text.rstrip() == "}"), len(lines) - 1)
                    yield range(start, end + 1)
                break
            if ";" in text:
                break


def anchor_matches(lines: list[EditedLine], edit: Edit) -> list[int]:
    """Return the index of the anchor's first line for each match. Surrounding white space and lines of hooks do not
    count."""
    anchor = [line.strip() for line in edit.anchor.strip("\n").split("\n")]
    spans = [range(len(lines))] if edit.function is None else list(function_spans(lines, edit.function))
    return [
        first
        for span in spans
        for first in range(span.start, span.stop - len(anchor) + 1)
        if all(
            not lines[first + i].inserted and lines[first + i].text.strip() == expected
            for i, expected in enumerate(anchor)
        )
    ]


def apply_edit(lines: list[EditedLine], edit: Edit, hook: str, version: Version) -> None:
    """Apply an edit. Raises InputError with hook, file and anchor if the anchor does not match."""
    matches = anchor_matches(lines, edit)
    if not matches and edit.optional:
        return
    if len(matches) != edit.count:
        position = edit.file + (f", function {edit.function}" if edit.function else "")
        problem = f"matches {len(matches)} times in Linux {version[0]}.{version[1]}, must match {edit.count}"
        raise HookError(f"kernel/hooks/{hook}.toml: anchor in {position}", edit.anchor.strip(), problem)
    height = len(edit.anchor.strip("\n").split("\n"))
    new = [EditedLine(text, inserted=True) for text in edit.text.removesuffix("\n").split("\n")] if edit.text else []
    for first in reversed(matches):
        if edit.place == "replace":
            lines[first : first + height] = new
        else:
            index = first if edit.place == "before" else first + height
            lines[index:index] = new


def overlay(pristine: Path, kernel: Path = resources.KERNEL, without: Iterable[str] = ()) -> Overlay:
    """Return the files, by their path in the tree, that hooks, drivers and tests change or add in a pristine tree.

    `without`: hooks to leave out ("tsq"), or the part of one in a file ("tsq@tcp_output.c").
    """
    version, left_out = tree_version(pristine), set(without)
    hooks = load(kernel / "hooks")
    if unknown := left_out - {name for hook in hooks for name in (hook.name, *hook.parts())}:
        names = ", ".join(hook.name for hook in hooks)
        raise InputError("without", sorted(unknown), f"must be one of {names}, or HOOK@FILE")
    files = hooked(
        pristine, [hook.leaving_out(left_out) for hook in hooks if hook.name not in left_out], kernel, version
    )
    return files if "drivers" in left_out else files | drivers(kernel)


def hooked(
    pristine: Path, hooks: Iterable[Hook], kernel: Path, version: Version, documentation: bool = False
) -> Overlay:
    """Return the files that hooks change or add in a pristine tree; those below Documentation/ only on request."""
    edited: dict[str, list[EditedLine]] = {}
    files: Overlay = {}
    for hook in hooks:
        for new in hook.file:
            if in_range(version, new.versions):
                files[new.target] = (kernel / "hooks" / new.source).read_bytes()
        for edit in hook.edits(version, documentation):
            if edit.file not in edited:
                edited[edit.file] = read_lines(pristine / edit.file, edit, hook.name)
            apply_edit(edited[edit.file], edit, hook.name, version)
    return files | {
        name: "\n".join(line.text for line in lines).encode("utf-8", "surrogateescape")
        for name, lines in edited.items()
    }


def check(pristine: Path, kernel: Path = resources.KERNEL) -> list[str]:
    """Return a line for each edit that does not apply to a pristine tree, those below Documentation/ included: file,
    hook and anchor."""
    version, problems = tree_version(pristine), []
    edited: dict[str, list[EditedLine]] = {}
    if (pristine / MANIFEST).exists():
        raise InputError("kernel tree", str(pristine), "already has the hooks; give a fresh copy")
    for hook in load(kernel / "hooks"):
        for edit in hook.edits(version, documentation=True):
            try:
                lines = edited.get(edit.file) or read_lines(pristine / edit.file, edit, hook.name)
                apply_edit(edited.setdefault(edit.file, lines), edit, hook.name, version)
            except HookError as error:
                function = f", function {edit.function}" if edit.function else ""
                anchor = json.dumps(edit.anchor.strip("\n"), ensure_ascii=False)
                problems.append(f"{edit.file}{function}: {hook.name}: {anchor} {error.allowed}")
    return problems


def read_lines(path: Path, edit: Edit, hook: str) -> list[EditedLine]:
    """Return a file of the tree, ready for edits."""
    if not path.is_file():
        raise HookError(f"kernel/hooks/{hook}.toml: file", edit.file, "does not exist in this kernel tree")
    return [EditedLine(text) for text in path.read_bytes().decode("utf-8", "surrogateescape").split("\n")]


def drivers(kernel: Path) -> Overlay:
    """Return the files for drivers/net/hourglass: kernel/drivers with its folders, and the C files of kernel/tests."""
    candidates = [(path, path.relative_to(kernel / "drivers")) for path in (kernel / "drivers").rglob("*")]
    candidates += [(path, path.relative_to(kernel / "tests")) for path in (kernel / "tests").glob("*.[ch]")]
    build_files = {"Kconfig", "Makefile"}
    return {
        f"{DRIVERS_TARGET}/{name}": path.read_bytes()
        for path, name in sorted(candidates)
        if path.is_file() and (path.suffix in {".c", ".h"} or path.name in build_files)
    }


def lay(files: Overlay, tree: Path, pristine: Path | None = None) -> list[str]:
    """Write an overlay into a working tree and return the files whose bytes changed.

    With `pristine`, files that only an earlier overlay changed are restored. Without it, a tree that has an overlay
    already is refused: hooks are never applied twice.
    """
    manifest = tree / MANIFEST
    before = manifest.read_text().splitlines() if manifest.exists() else []
    if before and pristine is None:
        raise InputError("kernel tree", str(tree), "already has the hooks; give a fresh copy, or --pristine")
    manifest.write_text("\n".join(sorted({*files, *before})))
    changed = [name for name, content in files.items() if write_if_changed(tree / name, content)]
    for name in before:
        if name not in files and pristine is not None and restore(pristine / name, tree / name):
            changed.append(name)
    manifest.write_text("\n".join(sorted(files)))
    return changed


def write_if_changed(path: Path, content: bytes) -> bool:
    """Replace a file unless its bytes are the same. Return whether they differed. Hard links to the old file stay."""
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
    """Restore a file to its pristine bytes, or delete it if it is not in the pristine tree. Return whether it
    changed."""
    if original.is_file():
        return write_if_changed(path, original.read_bytes())
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def main() -> None:
    """Run `python -m hourglass.builders.kernel.hooks TREE`, for experiments with a hook."""
    parser = argparse.ArgumentParser(description="Apply kernel/hooks, kernel/drivers and kernel/tests to a tree.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--pristine", type=Path, help="derive from this tree; allows TREE to have older hooks")
    parser.add_argument("--without", action="append", default=[], metavar="HOOK")
    arguments = parser.parse_args()
    try:
        files = overlay(arguments.pristine or arguments.tree, without=arguments.without)
        for name in lay(files, arguments.tree, arguments.pristine):
            print(os.fspath(arguments.tree / name))
    except HourglassError as problem:
        raise SystemExit(str(problem)) from None


if __name__ == "__main__":
    main()
