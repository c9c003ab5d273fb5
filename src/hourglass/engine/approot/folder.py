# SPDX-License-Identifier: Apache-2.0
"""A folder like a root: what packages and images are unpacked into, never outside it, whatever links they bring.

A path's links are followed as they would be with the folder as `/`. All programs and libraries are below usr/: `bin`,
`sbin`, `lib` and `lib64` are links.
"""

import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hourglass.errors import HourglassError

TIME_S = 1_704_067_200
"""Of every file: 2024-01-01 UTC, when guests begin."""

LINKS_MAX = 40
"""Links in one path; Linux's own bound."""

READABLE = stat.S_IRUSR
ENTERABLE = stat.S_IRUSR | stat.S_IWUSR | stat.S_IXUSR

MERGED = ("bin", "sbin", "lib", "lib64")


class Folder:
    """Where a root is made. Raises HourglassError when what is unpacked does not fit a root."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self) -> None:
        """Makes it, empty."""
        self.path.mkdir()
        self.path.chmod(0o755)

    def merge(self) -> None:
        """Makes the links of a root whose programs and libraries are below usr/."""
        for name in MERGED:
            self.make(f"usr/{name}")
            (self.path / name).symlink_to(f"usr/{name}")

    def make(self, name: str) -> Path:
        """The folder of a name, made if it is not there, with those above it."""
        return self._follow(_parts(name))

    def place(self, name: str | PurePosixPath) -> Path:
        """Where the file of a name is or is to be: all links but the last part's followed."""
        parts = _parts(name)
        return self._follow(parts[:-1]) / parts[-1] if parts else self.path

    def _follow(self, parts: list[str]) -> Path:
        """The folder that a path leads to, made if need be."""
        done: list[str] = []
        left, links = list(parts), 0
        while left:
            part = left.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            here = self.path.joinpath(*done, part)
            if here.is_symlink():
                links += 1
                if links > LINKS_MAX:
                    raise HourglassError(f"{'/'.join(parts)}: too many links in it")
                target = PurePosixPath(here.readlink())
                done = [] if target.is_absolute() else done
                left = [*_parts(target, keep_up=True), *left]
                continue
            if not here.is_dir():
                if here.exists():
                    raise HourglassError(f"{'/'.join(parts)}: {part} is a file")
                here.mkdir()
                here.chmod(0o755)
            done.append(part)
        return self.path.joinpath(*done)

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Unpacks one member; device nodes are left out."""
        place = self.place(member.name)
        if place == self.path:
            return
        mode = stat.S_IMODE(member.mode)
        if member.isdir():
            if place.is_symlink() and not self._follow(_parts(member.name)).is_dir():
                place.unlink()
            if not place.is_symlink():
                if place.exists() and not place.is_dir():
                    place.unlink()
                place.mkdir(exist_ok=True)
                place.chmod(mode | ENTERABLE)
            return
        if not (member.isreg() or member.issym() or member.islnk()):
            return
        self.remove(place)
        if member.issym():
            place.symlink_to(member.linkname)
        elif member.islnk():
            target = self.place(member.linkname)
            if not target.is_file() or target.is_symlink():
                raise HourglassError(f"{member.name}: a link to {member.linkname}, which is not there")
            place.hardlink_to(target)
        else:
            content = archive.extractfile(member)
            assert content is not None, "it is a regular file"
            with place.open("wb") as file:
                shutil.copyfileobj(content, file)
            place.chmod(mode | READABLE)

    def remove(self, place: Path) -> None:
        """Takes away what is at a place."""
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def finish(self) -> str:
        """Gives all files one time; the digest of what is there."""
        for _, path in walk(self.path):
            os.utime(path, (TIME_S, TIME_S), follow_symlinks=False)
        return digest(self.path)


def _parts(name: str | PurePosixPath, keep_up: bool = False) -> list[str]:
    """The parts of a path below the root; "a/../b" is "b", unless links may decide it."""
    parts: list[str] = []
    for part in PurePosixPath("/", name).parts[1:]:
        if part == ".." and not keep_up:
            parts = parts[:-1]
        else:
            parts.append(part)
    return parts


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Everything below a folder with its name there, in the order of the names; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name.encode(errors="surrogateescape")):
        path = Path(entry.path)
        yield entry.name, path
        if entry.is_dir(follow_symlinks=False):
            for name, below in walk(path):
                yield f"{entry.name}/{name}", below


def digest(folder: Path) -> str:
    """SHA-256 over names, kinds, modes and contents. Raises HourglassError when a file cannot be read."""
    total = hashlib.sha256()
    try:
        for name, path in walk(folder):
            found = path.lstat()
            total.update(f"{name}\0{found.st_mode:o}\0".encode(errors="surrogateescape"))
            if stat.S_ISLNK(found.st_mode):
                total.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(found.st_mode):
                with path.open("rb") as file:
                    total.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise HourglassError(f"the root {folder} cannot be read: {error.filename}: {error.strerror}") from None
    return total.hexdigest()


def signature(folder: Path) -> str:
    """What changes when a file below the folder is written: cheaper than its digest."""
    total = hashlib.sha256()
    for name, path in walk(folder):
        found = path.lstat()
        written = (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        total.update(f"{name}\0{written}\0".encode(errors="surrogateescape"))
    return total.hexdigest()
