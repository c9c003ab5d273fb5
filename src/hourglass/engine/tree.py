# SPDX-License-Identifier: Apache-2.0
"""The tree of files that the guest's tools, their libraries and what they read are taken from.

It is unpacked from the packages of one Debian release, whatever release this machine is of: tools decide records by
what they send and when they end. Which release it is depends on the guest's kernel (`contract/kernels.py`): tools know
the kernels of their time. They are those of its last point release, without the updates after it, which not every
machine's apt knows of. The packages are the tools' own, and of those that they depend on the ones in which a
library is that an ELF file of the tree asks for.

    trees/RELEASE-KEY/root/            the files, with all libraries and programs below usr/
    trees/RELEASE-KEY/packages.json    versions, sources and files of the packages
    trees/RELEASE-KEY.unreachable      why there is none: no Debian archive could be reached. The machine's own files
                                       serve until `python -m hourglass.engine.tree` (`make setup`) asks again

A tree stays until it is deleted: a package's later version is taken when the tree is fetched anew.
"""

import hashlib
import json
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
from hourglass.contract.kernels import DEFAULT, tools
from hourglass.engine import elf, paths, process
from hourglass.engine.kernel import apt
from hourglass.errors import GoneError, HourglassError, MissingError, program

RELEASE = tools(DEFAULT)
"""The Debian release whose packages they are, for the default kernel."""

TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
"""The tools that every guest has, and the Debian packages they come in."""

WIFI_TOOLS = {"iw": "iw", "hostapd": "hostapd"}
"""Those that only plans with radios call: 8 MB with their libraries, by which a start takes 15 % longer."""

RECIPE = 2
"""Raised whenever something else is made of the same packages."""

PROGRAMS = ("usr/sbin", "usr/bin", "sbin", "bin")
LIBRARIES = ("usr/lib64", "lib64", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "lib")
"""Where libraries are looked for, in this order; Debian's loader alone is in the first. Not where those for CPUs of a
level are."""

UNPACKED = re.compile(r"usr/(s?bin|lib(64)?|share/iproute2)/|etc/iproute2/|usr/share/doc/[^/]+/copyright$")
"""The files of a package that are unpacked."""


@dataclass(frozen=True)
class Package:
    """A package of the tree. `source` and `source_version`: what it was built from; `sha256`: of the .deb."""

    name: str
    version: str
    source: str
    source_version: str
    sha256: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Needed:
    """`files`: libraries and loaders by name. `lacking`: who asks for what is not there."""

    files: dict[str, Path]
    lacking: dict[Path, list[str]]

    def missing(self) -> list[str]:
        """The names of what is not there."""
        return sorted({name for names in self.lacking.values() for name in names})


@dataclass(frozen=True)
class Tree:
    """A folder like a root. `packages` is empty where it is the machine's own, in place of those of `release`."""

    folder: Path
    packages: tuple[Package, ...] = ()
    release: str = RELEASE

    @property
    def described(self) -> Path:
        """What says of which packages it is; it changes whenever they do."""
        return self.folder.parent / "packages.json"

    def program(self, tool: str) -> Path:
        """Where a tool is. Raises MissingError."""
        found = self._first(PROGRAMS, tool)
        if found is None:
            reason = unreachable(self.release)
            why = f", and this machine has none of its own: {reason.splitlines()[0]}" if reason else ""
            remedy = f"apt-get install -y {(TOOLS | WIFI_TOOLS)[tool]}"
            raise MissingError(f"the guest's {tool} is not in {self.folder}{why}", remedy)
        return found

    def _first(self, folders: Iterable[str], name: str) -> Path | None:
        places = (self.folder / folder / name for folder in folders)
        return next((place for place in places if place.is_file()), None)

    def needed(self, programs: Iterable[Path]) -> "Needed":
        """What programs need to start, and what that needs."""
        needed, left = Needed({}, {}), list(programs)
        while left:
            path = left.pop()
            asked = elf.needs(path)
            for name in [*asked.libraries, *([PurePosixPath(asked.loader).name] if asked.loader else [])]:
                place = needed.files.get(name) or self._first(LIBRARIES, name)
                if place is None:
                    needed.lacking.setdefault(path, []).append(name)
                elif name not in needed.files:
                    needed.files[name] = place
                    left.append(place)
        return needed

    def place(self, path: Path) -> str:
        """Where a file of the tree stands in a root that has all programs and libraries below usr/."""
        return merged(PurePosixPath("/", path.relative_to(self.folder)))

    def versions(self) -> str:
        """The packages in words; for people."""
        return ", ".join(f"{package.name} {package.version}" for package in self.packages)


@cache
def find(release: str = RELEASE) -> Tree:
    """The tree of the cache, fetched if there is none; where no Debian archive can be reached, the machine's own."""
    return kept(release) or (Tree(Path("/"), (), release) if unreachable(release) else fetch(release))


def kept(release: str = RELEASE) -> Tree | None:
    """The tree that was fetched."""
    folder = _folder(release)
    described = folder / "packages.json"
    if not described.is_file():
        return None
    read = json.loads(described.read_text())
    return Tree(folder / "root", tuple(Package(**{**one, "files": tuple(one["files"])}) for one in read), release)


def unreachable(release: str = RELEASE) -> str:
    """Why no tree could be fetched, when it was last tried; else nothing."""
    said = _unreachable(release)
    return said.read_text() if said.is_file() else ""


def fetch(release: str = RELEASE) -> Tree:
    """Fetches the tree unless it is there. Gives the machine's own, and notes why, where that is not possible.

    Raises GoneError where a later release than `RELEASE` has gone: its kernels need tools that the machine's own are
    not known to be."""
    folder = _folder(release)
    with locks.held(folder.with_name(f"{folder.name}.lock")):
        if (there := kept(release)) is not None:
            return there
        try:
            with files.replacing(folder) as fresh:
                packages = unpack_all(fresh, release)
                described = json.dumps([asdict(one) for one in packages], indent=1)
                (fresh / "packages.json").write_text(described)
                shutil.rmtree(fresh / "apt")
        except HourglassError as error:
            if release != RELEASE and apt.GONE.search(str(error)):
                what = (
                    f"the guest's tools for this kernel are not in Debian {release} any more: {apt.last_words(error)}"
                )
                raise GoneError(release, what, f"copy {folder} from a machine that has it") from error
            files.write(_unreachable(release), str(error).encode())
            return Tree(Path("/"), (), release)
        _unreachable(release).unlink(missing_ok=True)
    found = kept(release)
    assert found is not None, "it was just put there"
    return found


def unpack_all(folder: Path, release: str) -> list[Package]:
    """Downloads and unpacks into `folder`/root a release's packages of the tools, then those with what they lack."""
    if lacking := process.missing_tools(apt.TOOLS):
        raise MissingError("the guest's tools cannot be fetched", f"apt-get install -y {' '.join(lacking)}")
    tree, packages, depends = Tree(folder / "root", (), release), list[Package](), dict[str, list[str]]()
    archive = apt.Archive(release, folder / "apt", updates=False)
    asked, wanted = set[str](), {*TOOLS.values(), *WIFI_TOOLS.values()}
    while wanted:
        for deb in archive.download(sorted(wanted)):
            package, depends[package.name] = unpack(deb, tree.folder)
            packages.append(package)
        asked |= wanted
        needed = tree.needed(tree.program(tool) for tool in TOOLS | WIFI_TOOLS)
        wanted = {name for owner in owning(packages, tree, needed.lacking) for name in depends[owner.name]} - asked
    if needed.lacking:
        raise HourglassError(
            f"no package of Debian {release} that the tools depend on has {', '.join(needed.missing())}"
        )
    programs = [tree.program(tool) for tool in TOOLS | WIFI_TOOLS]
    return sorted(owning(packages, tree, [*programs, *needed.files.values()]), key=lambda package: package.name)


def owning(packages: Iterable[Package], tree: Tree, paths: Iterable[Path]) -> list[Package]:
    """The packages in which files of the tree are."""
    wanted = {str(path.resolve().relative_to(tree.folder.resolve())) for path in paths}
    return [package for package in packages if wanted & {*package.files}]


def unpack(deb: Path, root: Path) -> tuple[Package, list[str]]:
    """Unpacks what UNPACKED names into the tree; gives the package, and the names of those that it depends on."""
    asked = subprocess.run(["dpkg-deb", "--field", deb], text=True, capture_output=True, check=False)
    if asked.returncode:
        raise HourglassError(f"{deb.name}: {asked.stderr.strip()}")
    (fields,) = apt.deb822_stanzas(asked.stdout)
    written = []
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as child,
        tarfile.open(fileobj=child.stdout, mode="r|") as archive,
    ):
        for member in archive:
            name = merged(PurePosixPath("/", member.name))
            if UNPACKED.match(name) and write(archive, member, root / name):
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


def write(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> bool:
    """Writes a file or a link of a package; a link's way stays inside the tree."""
    if not (member.isreg() or member.issym()):
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target = PurePosixPath("/", PurePosixPath(member.name).parent, member.linkname)
        root = Path(*[".."] * (len(PurePosixPath(merged(PurePosixPath("/", member.name))).parts) - 1))
        place.symlink_to(root / merged(target))
    else:
        content = archive.extractfile(member)
        assert content is not None, "it is a regular file"
        place.write_bytes(content.read())
    return True


def merged(path: PurePosixPath) -> str:
    """Where a file stands in a root that has all programs and libraries below usr/; "a/../b" is "b"."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    below = parts[:1] in (["bin"], ["sbin"], ["lib"], ["lib64"])
    return "/".join(["usr", *parts] if below else parts)


def first_alternatives(*fields: str) -> Iterator[str]:
    """The packages that "Depends: a (>= 1), b | c" names: a and b."""
    for clause in ",".join(fields).split(","):
        if found := re.match(r"\s*([a-z0-9][a-z0-9+.-]+)", clause):
            yield found[1]


def _folder(release: str) -> Path:
    made = hashlib.sha256(repr((RECIPE, sorted((TOOLS | WIFI_TOOLS).items()))).encode()).hexdigest()[:8]
    return paths.cache() / "trees" / f"{release}-{made}"


def _unreachable(release: str) -> Path:
    return _folder(release).with_suffix(".unreachable")


def main() -> None:
    """Fetches the tree, and says so where the machine's own files have to serve."""
    if fetch().folder == Path("/"):
        print(
            f"the guest's tools are this machine's own, so that digests are its own too: {unreachable()}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    program(main)
