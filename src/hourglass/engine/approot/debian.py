# SPDX-License-Identifier: Apache-2.0
"""A root made of the packages of a Debian release, fetched and unpacked without root.

The packages are those asked for, what they depend on (apt decides), and `BASE`. None of their scripts is run; what
those would do and programs need is done here: alternatives (`awk`, `nc`), users and groups, Python's compiled modules.
They are the packages of the last point release, without the updates after it: which these are depends on the day.
"""

import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hourglass.engine import process
from hourglass.engine.approot import accounts
from hourglass.engine.approot.folder import Folder
from hourglass.engine.kernel import apt
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.files import sha256

RELEASES = {"11": "bullseye", "12": "bookworm", "13": "trixie"}
"""Codenames by number."""

BASE = (
    "base-files", "base-passwd", "coreutils", "dash", "findutils", "grep", "iproute2", "iputils-ping", "libc-bin",
    "mawk", "netbase", "procps", "sed",
)  # fmt: skip
"""In every root: a shell, the usual small tools, users, the names of services and protocols."""

MERGED = {"bookworm": ("usr-is-merged",), "trixie": ("usr-is-merged",)}
"""What says of a release that programs and libraries are below usr/; else Perl would come, to move them there."""

LEFT_OUT = re.compile(r"\./usr/share/(doc|man|locale|info|lintian|bug|doc-base|zoneinfo)/.+")
"""What no program reads, or nobody misses: half of all files."""

FOLDERS = ("dev", "proc", "sys", "run", "tmp", "root", "var/tmp", "var/log", "var/lib", "var/cache")
STICKY = ("tmp", "var/tmp")

ALTERNATIVE = re.compile(r"--(?:install|slave)\s+(/\S+)\s+[\w.+-]+\s+(/\S+)", re.ASCII)

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Unpacked:
    """A package in a root."""

    name: str
    version: str
    sha256: str


def make(release: str, packages: Iterable[str], path: Path, cache: Path, report: Report) -> list[Unpacked]:
    """Makes the root at `path`; `cache`: apt's folder. Raises MissingError or HourglassError with apt's words."""
    if lacking := process.missing_tools(apt.TOOLS):
        raise MissingError("programs' roots cannot be made", f"apt-get install -y {' '.join(lacking)}")
    report(0.0, "asking the archive")
    codename = RELEASES[release]
    debs = fetch(codename, sorted({*BASE, *MERGED.get(codename, ()), *packages}), cache, report)
    folder = Folder(path)
    folder.begin()
    folder.merge()
    for name in FOLDERS:
        folder.make(name)
    unpacked = []
    for count, deb in enumerate(debs):
        report(0.5 + 0.4 * count / len(debs), f"unpacking {deb.name.partition('_')[0]}")
        unpacked.append(unpack(deb, folder))
    for name in STICKY:
        (path / name).chmod(0o1777)
    report(0.9, "setting up")
    scripts = [_script(deb) for deb in debs]
    accounts.write(path, scripts)
    _alternatives(scripts, folder)
    _compile_python(path)
    return unpacked


def fetch(codename: str, packages: list[str], cache: Path, report: Report) -> list[Path]:
    """The packages and what they depend on, as files, in the order of their names."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = apt.Archive(codename, cache, updates=False)
    asked = ["--yes", "--no-install-recommends", "-o", "Debug::NoLocking=1", *packages]
    planned = archive.apt("install", "--simulate", *asked)
    report(0.1, "fetching packages")
    fetched = archive.apt("install", "--download-only", *asked)
    if planned.returncode or fetched.returncode:
        said = (archive.update.stderr + planned.stderr + fetched.stderr).splitlines()
        if strange := re.search(r"^E: Unable to locate package (\S+)$", planned.stderr, re.MULTILINE):
            raise InputError("apps.packages", strange[1], f"Debian {codename} has no such package")
        words = list(dict.fromkeys(line for line in said if line.startswith(("E:", "Err"))))[-6:]
        what = f"the programs' root of Debian {codename} cannot be made of {', '.join(packages)}; apt says:"
        raise HourglassError("\n".join([what, *words]))
    listed = re.findall(r"^Inst (\S+) \((\S+) [^]]*\[(\w+)\]\)", planned.stdout, re.MULTILINE)
    names = [f"{name}_{version.replace(':', '%3a')}_{machine}.deb" for name, version, machine in listed]
    return [cache / "cache" / "archives" / name for name in sorted(names)]


def unpack(deb: Path, folder: Folder) -> Unpacked:
    """Unpacks a package but for what LEFT_OUT names."""
    with _opened(deb, "--fsys-tarfile") as archive:
        for member in archive:
            if not LEFT_OUT.fullmatch(member.name) or member.isdir():
                folder.add(archive, member)
    name, version, _ = deb.name.split("_")
    return Unpacked(name, version.replace("%3a", ":"), sha256(deb))


class _opened:
    """A part of a package as an archive that is read once."""

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


def _alternatives(scripts: Iterable[str], folder: Folder) -> None:
    """The links that packages' scripts would ask update-alternatives for; of several the first."""
    for link, target in (pair for script in scripts for pair in ALTERNATIVE.findall(script.replace("\\\n", " "))):
        place = folder.place(link)
        if not place.exists() and not place.is_symlink() and folder.place(target).exists():
            place.symlink_to(target)


def _script(deb: Path) -> str:
    """What a package would run once it is unpacked."""
    script = ""
    with _opened(deb, "--ctrl-tarfile") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.removeprefix("./") == "postinst" else None
            if content is not None:
                script = content.read().decode(errors="replace")
    return script


def _compile_python(path: Path) -> None:
    """Python's modules, compiled by the root's own Python, so that no program does it each time it starts."""
    loader = path / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    for program in sorted((path / "usr/bin").glob("python3.[0-9]*")):
        library = path / "usr/lib" / program.name
        if not re.fullmatch(r"python3\.\d+", program.name) or not library.is_dir():
            continue
        libraries = f"{path}/usr/lib/x86_64-linux-gnu:{path}/usr/lib"
        words = ["-q", "-m", "compileall", "-q", "-s", str(path), "-p", "/", "--invalidation-mode", "unchecked-hash"]
        done = subprocess.run(
            [loader, "--library-path", libraries, program, "-I", *words[1:], library],
            env={"PYTHONHOME": f"{path}/usr", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
            text=True, capture_output=True, check=False, umask=0o022,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # 1: a module of tests that is meant not to compile
            raise HourglassError(
                f"{program.name} of the root did not compile its modules: {done.stderr.strip()[-300:]}"
            )
