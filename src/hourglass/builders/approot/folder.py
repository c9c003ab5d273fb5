# SPDX-License-Identifier: Apache-2.0
"""Write the files of packages and images into a folder, never outside it, whatever links they contain.

Links of a path are resolved as if the folder were `/`. All programs and libraries are below usr/: `bin`, `sbin`, `lib`
and `lib64` are links."""

import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hourglass.errors import HourglassError

TIME_S = 1_704_067_200
"""The time of every file: 2024-01-01 UTC, the start of guests."""

LINKS_MAX = 40
"""Links in one path; Linux has the same limit."""

DEPTH_MAX = 128
"""Nested folders. Functions that walk a tree (Python's `rmtree` too) recurse for each of them."""
FILES_MAX = 1_000_000
BYTES_MAX = 32 * 2**30
"""The content of one root: far more than any image that runs in a guest's memory."""

ID_END = 2**32 - 1
"""The first number that is no user and no group."""

READABLE = stat.S_IRUSR
ENTERABLE = stat.S_IRUSR | stat.S_IWUSR | stat.S_IXUSR

MERGED = ("bin", "sbin", "lib", "lib64")


class Folder:
    """The folder of a root. Raises HourglassError if the content does not fit a root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files, self._bytes = 0, 0
        self._owners: dict[Path, tuple[int, int]] = {}
        """UID and GID of the paths that do not belong to root."""

    def begin(self) -> None:
        """Create it, empty."""
        self.path.mkdir()
        self.path.chmod(0o755)

    def merge(self) -> None:
        """Create the links of a root whose programs and libraries are below usr/."""
        for name in MERGED:
            self.make(f"usr/{name}")
            (self.path / name).symlink_to(f"usr/{name}")

    def make(self, name: str) -> Path:
        """Return the folder of a name, created if missing, with its parents."""
        return self._follow(_parts(name))

    def resolve(self, name: str | PurePosixPath) -> Path:
        """Return the path of a file, which may not exist: all links except the last part's are resolved."""
        parts = _parts(name)
        return self._follow(parts[:-1]) / parts[-1] if parts else self.path

    def _follow(self, parts: list[str]) -> Path:
        """Return the folder at a path, created if missing."""
        if len(parts) > DEPTH_MAX:
            raise HourglassError(f"{'/'.join(parts)[:80]}…: more than {DEPTH_MAX} nested folders")
        resolved: list[str] = []
        remaining, links = list(parts), 0
        while remaining:
            part = remaining.pop(0)
            if part == "..":
                resolved = resolved[:-1]
                continue
            current = self.path.joinpath(*resolved, part)
            if current.is_symlink():
                links += 1
                if links > LINKS_MAX:
                    raise HourglassError(f"{'/'.join(parts)}: too many links in it")
                target = PurePosixPath(current.readlink())
                resolved = [] if target.is_absolute() else resolved
                remaining = [*_parts(target, keep_up=True), *remaining]
                continue
            if not current.is_dir():
                if current.exists():
                    raise HourglassError(f"{'/'.join(parts)}: {part} is a file")
                current.mkdir()
                current.chmod(0o755)
            resolved.append(part)
            if len(resolved) > DEPTH_MAX:
                raise HourglassError(f"{'/'.join(parts)[:80]}: links lead to more than {DEPTH_MAX} folders")
        return self.path.joinpath(*resolved)

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Unpack one member; device nodes are skipped."""
        self._count(member)
        if "\0" in member.name + member.linkname:
            raise HourglassError(f"{member.name!r}: a name with NUL in it")
        path = self.resolve(member.name)
        if path == self.path:
            return
        mode = stat.S_IMODE(member.mode)
        if member.isdir():
            if path.is_symlink() and not self._follow(_parts(member.name)).is_dir():
                path.unlink()
            if not path.is_symlink():
                if path.exists() and not path.is_dir():
                    path.unlink()
                path.mkdir(exist_ok=True)
                path.chmod(mode | ENTERABLE)
                self._store_owner(path, member)
            return
        if not (member.isreg() or member.issym() or member.islnk()):
            return
        self.remove(path)
        if member.issym():
            path.symlink_to(member.linkname)
        elif member.islnk():
            target = self.resolve(member.linkname)
            if not target.is_file() or target.is_symlink():
                raise HourglassError(f"{member.name}: a link to {member.linkname}, which does not exist")
            path.hardlink_to(target)
        else:
            content = archive.extractfile(member)
            assert content is not None, "it is a regular file"
            with path.open("wb") as file:
                shutil.copyfileobj(content, file)
            path.chmod(mode | READABLE)
        self._store_owner(path, member)

    def _store_owner(self, path: Path, member: tarfile.TarInfo) -> None:
        """Remember the owner of a member."""
        if not (0 <= member.uid < ID_END and 0 <= member.gid < ID_END):
            raise HourglassError(f"{member.name}: its owner is {member.uid}:{member.gid}; Linux has no such numbers")
        if member.uid or member.gid:
            self._owners[path] = (member.uid, member.gid)
        else:
            self._owners.pop(path, None)

    def _count(self, member: tarfile.TarInfo) -> None:
        """Raise HourglassError above the limits. A size is known before its bytes are read, even of sparse files."""
        self._files += 1
        self._bytes += max(0, member.size)
        if self._files > FILES_MAX or self._bytes > BYTES_MAX:
            raise HourglassError(f"a root has at most {FILES_MAX} files and {BYTES_MAX >> 30} GiB; this root has more")

    def remove(self, path: Path) -> None:
        """Remove a file or folder, but not the root itself."""
        if path == self.path:
            raise HourglassError("a layer removes the root itself")
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
            self._owners = {at: owner for at, owner in self._owners.items() if not at.is_relative_to(path)}
        else:
            path.unlink(missing_ok=True)
            self._owners.pop(path, None)

    def owners(self) -> bytes:
        """Return the owners of the files that do not belong to root, as `kernel/hooks/hostroot.c` reads them."""
        paths = {os.fsencode(path.relative_to(self.path)): owner for path, owner in self._owners.items()
                 if os.path.lexists(path)}  # fmt: skip
        return b"".join(b"%d %d %s\0" % (*paths[path], path) for path in sorted(paths))

    def finish(self) -> str:
        """Give all files one time; return the digest of contents and owners."""
        for _, path in walk(self.path):
            os.utime(path, (TIME_S, TIME_S), follow_symlinks=False)
        content, owners = digest(self.path), self.owners()
        return hashlib.sha256(content.encode() + owners).hexdigest() if owners else content


def _parts(name: str | PurePosixPath, keep_up: bool = False) -> list[str]:
    """Return the parts of a path below the root; "a/../b" is "b", unless links may decide it."""
    parts: list[str] = []
    for part in PurePosixPath("/", name).parts[1:]:
        if part == ".." and not keep_up:
            parts = parts[:-1]
        else:
            parts.append(part)
    return parts


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all names and paths below a folder, sorted by name; links are not followed."""
    pending = [_entries(folder)]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        path = Path(entry.path)
        yield str(path.relative_to(folder)), path
        if entry.is_dir(follow_symlinks=False):
            pending.append(_entries(path))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    return iter(sorted(os.scandir(folder), key=lambda entry: entry.name.encode(errors="surrogateescape")))


def digest(folder: Path) -> str:
    """Return the SHA-256 over names, kinds, modes and contents. Raises HourglassError if a file is unreadable."""
    total = hashlib.sha256()
    try:
        for name, path in walk(folder):
            status = path.lstat()
            total.update(f"{name}\0{status.st_mode:o}\0".encode(errors="surrogateescape"))
            if stat.S_ISLNK(status.st_mode):
                total.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                with path.open("rb") as file:
                    total.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise HourglassError(f"the root {folder} cannot be read: {error.filename}: {error.strerror}") from None
    return total.hexdigest()


def signature(folder: Path) -> str:
    """Return a value that changes when a file below the folder is written. It is cheaper than the digest."""
    total = hashlib.sha256()
    for name, path in walk(folder):
        status = path.lstat()
        state = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        total.update(f"{name}\0{state}\0".encode(errors="surrogateescape"))
    return total.hexdigest()
