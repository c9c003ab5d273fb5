# SPDX-License-Identifier: Apache-2.0
"""Build a root from the packages of a Debian release, fetched and unpacked without root rights.

The packages are the requested ones, their dependencies (apt decides), Debian's essential ones, and `BASE`. They are
unpacked here, and configured in a guest (`package_scripts.py`). They are those of the last point release, without later
updates, which depend on the date."""

import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hourglass.builders.approot import package_scripts
from hourglass.builders.approot.folder import Folder
from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.files import sha256
from hourglass.host import process

RELEASES = {"11": "bullseye", "12": "bookworm", "13": "trixie"}
"""Codenames by number."""

BASE = ("?essential", "iproute2", "iputils-ping", "mawk", "netbase", "procps")
"""The packages of every root, as patterns of apt: those that package scripts rely on, and the usual small tools."""

MERGED = {"bookworm": ("usr-is-merged",), "trixie": ("usr-is-merged",)}
"""Packages that declare a merged /usr. Without them, Perl would be installed to merge it."""

LEFT_OUT = re.compile(r"\./usr/share/(doc|man|locale|info|lintian|bug|doc-base|zoneinfo)/.+")
"""Files that no program reads: half of all files."""

FOLDERS = ("dev", "etc", "proc", "sys", "run", "tmp", "root", "var/tmp", "var/log", "var/lib", "var/cache")
STICKY = ("tmp", "var/tmp")
LINKS = {"etc/mtab": "../proc/self/mounts", "var/run": "/run", "var/lock": "/run/lock"}

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Unpacked:
    """A package in a root."""

    name: str
    version: str
    sha256: str


def make(release: str, packages: Iterable[str], folder: Folder, cache: Path, report: Report) -> list[Unpacked]:
    """Unpack the packages into an empty folder; `cache`: apt's folder. Raises MissingError, or HourglassError with
    apt's messages."""
    if missing := process.missing_tools(apt.TOOLS):
        raise MissingError("programs' roots cannot be built", f"apt-get install -y {' '.join(missing)}")
    report(0.0, "querying the archive")
    codename = RELEASES[release]
    debs = fetch(codename, sorted({*BASE, *MERGED.get(codename, ()), *packages}), cache, report)
    folder.merge()
    for name in FOLDERS:
        folder.make(name)
    for name, target in LINKS.items():
        (folder.path / name).symlink_to(target)
    unpacked = []
    for count, deb in enumerate(debs):
        report(0.4 + 0.3 * count / len(debs), f"unpacking {deb.name.partition('_')[0]}")
        unpacked.append(unpack(deb, folder))
    for name in STICKY:
        (folder.path / name).chmod(0o1777)
    return unpacked


def fetch(codename: str, packages: list[str], cache: Path, report: Report) -> list[Path]:
    """Return the packages and their dependencies as files, sorted by name."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = apt.Archive(codename, cache, updates=False)
    arguments = ["--yes", "--no-install-recommends", "-o", "Debug::NoLocking=1", *packages]
    planned = archive.apt("install", "--simulate", *arguments)
    report(0.1, "fetching packages")
    fetched = archive.apt("install", "--download-only", *arguments)
    if planned.returncode or fetched.returncode:
        messages = (archive.update.stderr + planned.stderr + fetched.stderr).splitlines()
        if (unknown := apt.unknown_package(planned.stderr)) is not None:
            raise InputError("apps.packages", unknown, f"Debian {codename} lacks this package; check the name")
        errors = list(dict.fromkeys(line for line in messages if line.startswith(("E:", "Err"))))[-6:]
        problem = f"the programs' root of Debian {codename} cannot be built from {', '.join(packages)}; apt reports:"
        raise HourglassError("\n".join([problem, *errors]), code="download")
    listed = re.findall(r"^Inst (\S+) \((\S+) [^]]*\[(\w+)\]\)", planned.stdout, re.MULTILINE)
    names = [f"{name}_{version.replace(':', '%3a')}_{machine}.deb" for name, version, machine in listed]
    return [cache / "cache" / "archives" / name for name in sorted(names)]


def unpack(deb: Path, folder: Folder) -> Unpacked:
    """Unpack a package without the files of LEFT_OUT, and list it as unpacked."""
    names = []
    with _OpenPackage(deb, "--fsys-tarfile") as archive:
        for member in archive:
            names.append(member.name)
            if not LEFT_OUT.fullmatch(member.name) or member.isdir():
                folder.add(archive, member)
    with _OpenPackage(deb, "--ctrl-tarfile") as archive:
        package_scripts.register(archive, names, folder)
    name, version, _ = deb.name.split("_")
    return Unpacked(name, version.replace("%3a", ":"), sha256(deb))


class _OpenPackage:
    """A part of a package as an archive, for one sequential read."""

    def __init__(self, deb: Path, part: str) -> None:
        self.deb, self.part = deb, part

    def __enter__(self) -> tarfile.TarFile:
        self.child = subprocess.Popen(["dpkg-deb", self.part, self.deb], stdout=subprocess.PIPE)
        self.archive = tarfile.open(fileobj=self.child.stdout, mode="r|")
        return self.archive

    def __exit__(self, *_: object) -> None:
        self.archive.close()
        assert self.child.stdout is not None
        while self.child.stdout.read(1 << 16):
            pass
        self.child.stdout.close()
        if self.child.wait():
            raise HourglassError(f"{self.deb.name} cannot be unpacked (is the disk full?)")
