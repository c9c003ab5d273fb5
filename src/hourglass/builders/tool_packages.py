# SPDX-License-Identifier: Apache-2.0
"""Fetch the guest's tools, their libraries and their data from Debian packages.

The packages are those of one Debian release, whatever release this machine runs: tools affect records by what they send
and when they end. The release depends on the guest's kernel (`contract/kernels.py`): tools know the kernels of their
time. The packages are those of the release's last point release, without later updates, which not every machine's apt
lists. They are the tools' packages, and those dependencies that contain a library that an ELF file of the tree needs.

    trees/RELEASE-KEY/root/            the files, with all libraries and programs below usr/
    trees/RELEASE-KEY/packages.json    versions, sources and files of the packages
    trees/RELEASE-KEY.unreachable      why the tree is missing: no Debian archive could be reached. The machine's files
                                       are used until `make setup` (`python -m hourglass.builders.tool_packages`)
                                       retries

A tree stays until it is deleted. A later version of a package is used when the tree is fetched again."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from hourglass import files, locks
from hourglass.builders import elf
from hourglass.builders.kernel import apt
from hourglass.contract.kernels import DEFAULT, tools
from hourglass.errors import GoneError, HourglassError, MissingError, program
from hourglass.host import directories, process

RELEASE = tools(DEFAULT)
"""The Debian release of the packages for the default kernel."""

TOOLS = {"ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "ethtool": "ethtool"}
"""The tools of every guest, and their Debian packages."""

WIFI_TOOLS = {"iw": "iw", "hostapd": "hostapd"}
"""The tools of plans with radios: 8 MB with their libraries, which prolong a start by 15 %."""

BPF_TOOLS = {"bpftool": "bpftool"}
"""The tool of plans with congestion controls or qdiscs in BPF."""

ALL_TOOLS = TOOLS | WIFI_TOOLS | BPF_TOOLS

RECIPE = 2
"""Raised when the tree changes while the packages stay the same."""

PROGRAMS = ("usr/sbin", "usr/bin", "sbin", "bin")
LIBRARIES = ("usr/lib64", "lib64", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "lib")
"""Folders of libraries, in search order. Only Debian's loader is in the first. Folders for CPU levels are omitted."""

UNPACKED = re.compile(r"usr/(s?bin|lib(64)?|share/iproute2)/|etc/iproute2/|usr/share/doc/[^/]+/copyright$")
"""The files of a package that are unpacked."""


@dataclass(frozen=True)
class Package:
    """A package of the tree. `source` and `source_version`: the source package; `sha256`: of the .deb."""

    name: str
    version: str
    source: str
    source_version: str
    sha256: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Dependencies:
    """`files`: libraries and loaders by name. `unmet`: the missing names, by the file that needs them."""

    files: dict[str, Path]
    unmet: dict[Path, list[str]]

    def missing(self) -> list[str]:
        """Return the missing names."""
        return sorted({name for names in self.unmet.values() for name in names})


@dataclass(frozen=True)
class Tree:
    """A folder with the layout of a root. `packages` is empty for the machine's files, which replace those of
    `release`."""

    folder: Path
    packages: tuple[Package, ...] = ()
    release: str = RELEASE

    @property
    def described(self) -> Path:
        """The list of its packages. The file changes whenever they do."""
        return self.folder.parent / "packages.json"

    def program(self, tool: str) -> Path:
        """Return the path of a tool. Raises MissingError."""
        path = self._first(PROGRAMS, tool)
        if path is None:
            reason = unreachable(self.release)
            why = f", and this machine does not have it either: {reason.splitlines()[0]}" if reason else ""
            remedy = f"apt-get install -y {ALL_TOOLS[tool]}"
            raise MissingError(f"the guest's {tool} is not in {self.folder}{why}", remedy)
        return path

    def _first(self, folders: Iterable[str], name: str) -> Path | None:
        candidates = (self.folder / folder / name for folder in folders)
        return next((path for path in candidates if path.is_file()), None)

    def dependencies(self, programs: Iterable[Path]) -> Dependencies:
        """Return the loaders and libraries of programs, and of those libraries."""
        dependencies, pending = Dependencies({}, {}), list(programs)
        while pending:
            path = pending.pop()
            needs = elf.needs(path)
            for name in [*needs.libraries, *([PurePosixPath(needs.loader).name] if needs.loader else [])]:
                library = dependencies.files.get(name) or self._first(LIBRARIES, name)
                if library is None:
                    dependencies.unmet.setdefault(path, []).append(name)
                elif name not in dependencies.files:
                    dependencies.files[name] = library
                    pending.append(library)
        return dependencies

    def path_in_root(self, path: Path) -> str:
        """Return the path of a file in a root that has all programs and libraries below usr/."""
        return merged(PurePosixPath("/", path.relative_to(self.folder)))

    def versions(self) -> str:
        """Return the packages as text for people."""
        return ", ".join(f"{package.name} {package.version}" for package in self.packages)


@cache
def find(release: str = RELEASE) -> Tree:
    """Return the tree of the cache, fetched if missing; if no Debian archive can be reached, the machine's root."""
    return cached(release) or (Tree(Path("/"), (), release) if unreachable(release) else fetch(release))


def cached(release: str = RELEASE) -> Tree | None:
    """Return the tree of the cache, if any."""
    folder = _folder(release)
    described = folder / "packages.json"
    if not described.is_file():
        return None
    described_packages = json.loads(described.read_text())
    return Tree(
        folder / "root",
        tuple(Package(**{**package, "files": tuple(package["files"])}) for package in described_packages),
        release,
    )


def unreachable(release: str = RELEASE) -> str:
    """Return why the last attempt to fetch a tree failed; "" otherwise."""
    file = _unreachable(release)
    return file.read_text() if file.is_file() else ""


def fetch(release: str = RELEASE) -> Tree:
    """Fetch the tree unless the cache has it. If that fails, record the reason and return the machine's root.

    Raises GoneError for a release other than `RELEASE` that Debian has removed: its kernels need tools that the
    machine's are not known to be."""
    folder = _folder(release)
    with locks.exclusive(folder.with_name(f"{folder.name}.lock")):
        if (tree := cached(release)) is not None:
            return tree
        try:
            with files.replacing(folder) as fresh:
                packages = unpack_all(fresh, release)
                described = json.dumps([asdict(package) for package in packages], indent=1)
                (fresh / "packages.json").write_text(described)
                shutil.rmtree(fresh / "apt")
        except HourglassError as error:
            if release != RELEASE and isinstance(error, apt.DownloadError) and error.gone:
                problem = f"Debian {release} no longer has the guest's tools for this kernel: {error.reason}"
                raise GoneError(release, problem, f"copy {folder} from a machine that has it") from error
            files.write(_unreachable(release), str(error).encode())
            return Tree(Path("/"), (), release)
        _unreachable(release).unlink(missing_ok=True)
    tree = cached(release)
    assert tree is not None, "just fetched"
    return tree


def unpack_all(folder: Path, release: str) -> list[Package]:
    """Download a release's packages of the tools and their needed dependencies; unpack them into `folder`/root."""
    if missing := process.missing_tools(apt.TOOLS):
        raise MissingError("the guest's tools cannot be fetched", f"apt-get install -y {' '.join(missing)}")
    tree, packages, depends = Tree(folder / "root", (), release), list[Package](), dict[str, list[str]]()
    archive = apt.Archive(release, folder / "apt", updates=False)
    fetched, pending = set[str](), {*ALL_TOOLS.values()}
    while pending:
        for deb in archive.download(sorted(pending)):
            package, depends[package.name] = unpack(deb, tree.folder)
            packages.append(package)
        fetched |= pending
        dependencies = tree.dependencies(tree.program(tool) for tool in ALL_TOOLS)
        pending = {
            name for owner in owning(packages, tree, dependencies.unmet) for name in depends[owner.name]
        } - fetched
    if dependencies.unmet:
        raise HourglassError(
            f"no package of Debian {release} that the tools depend on has {', '.join(dependencies.missing())}"
        )
    programs = [tree.program(tool) for tool in ALL_TOOLS]
    return sorted(owning(packages, tree, [*programs, *dependencies.files.values()]), key=lambda package: package.name)


def owning(packages: Iterable[Package], tree: Tree, paths: Iterable[Path]) -> list[Package]:
    """Return the packages that contain these files of the tree."""
    names = {str(path.resolve().relative_to(tree.folder.resolve())) for path in paths}
    return [package for package in packages if names & {*package.files}]


def unpack(deb: Path, root: Path) -> tuple[Package, list[str]]:
    """Unpack the files that match UNPACKED; return the package, and the names of its dependencies."""
    result = subprocess.run(["dpkg-deb", "--field", deb], text=True, capture_output=True, check=False)
    if result.returncode:
        raise HourglassError(f"{deb.name}: {result.stderr.strip()}")
    (fields,) = apt.deb822_stanzas(result.stdout)
    written = []
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as child,
        tarfile.open(fileobj=child.stdout, mode="r|") as archive,
    ):
        for member in archive:
            name = merged(PurePosixPath("/", member.name))
            if UNPACKED.match(name) and write(archive, member, root, name):
                written.append(name)
    if child.returncode:
        raise HourglassError(f"{deb.name} cannot be unpacked (is the disk full?)")
    source = re.fullmatch(r"(\S+)(?: \((\S+)\))?", fields.get("source", fields["package"]))
    assert source is not None, "dpkg wrote it"
    package = Package(
        fields["package"],
        fields["version"],
        source[1],
        source[2] or fields["version"],
        files.sha256(deb),
        tuple(sorted(written)),
    )
    return package, list(first_alternatives(fields.get("pre-depends", ""), fields.get("depends", "")))


def write(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path, name: str) -> bool:
    """Write a file or a link of a package into the tree. No link leads out of it."""
    if not (member.isreg() or member.issym()):
        return False
    path = (root / name).parent.resolve() / PurePosixPath(name).name
    if not path.is_relative_to(root.resolve()):
        raise HourglassError(f"{name}: a link of a package leads out of the tree")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if member.issym():
        target = PurePosixPath("/", PurePosixPath(member.name).parent, member.linkname)
        path.symlink_to(os.path.relpath(root.resolve() / merged(target), path.parent))
    else:
        content = archive.extractfile(member)
        assert content is not None, "it is a regular file"
        path.write_bytes(content.read())
    return True


def merged(path: PurePosixPath) -> str:
    """Return a path in a root that has all programs and libraries below usr/; "a/../b" is "b"."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    below = parts[:1] in (["bin"], ["sbin"], ["lib"], ["lib64"])
    return "/".join(["usr", *parts] if below else parts)


def first_alternatives(*fields: str) -> Iterator[str]:
    """Yield the packages that "Depends: a (>= 1), b | c" names: a and b."""
    for clause in ",".join(fields).split(","):
        if match := re.match(r"\s*([a-z0-9][a-z0-9+.-]+)", clause):
            yield match[1]


def _folder(release: str) -> Path:
    key = hashlib.sha256(repr((RECIPE, sorted(ALL_TOOLS.items()))).encode()).hexdigest()[:8]
    return directories.cache() / "trees" / f"{release}-{key}"


def _unreachable(release: str) -> Path:
    return _folder(release).with_suffix(".unreachable")


def main() -> None:
    """Fetch the tree, and report if the machine's files must be used instead."""
    if fetch().folder == Path("/"):
        print(
            f"the guest's tools are those of this machine, so digests depend on it: {unreachable()}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    program(main)
