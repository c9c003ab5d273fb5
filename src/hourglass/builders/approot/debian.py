# SPDX-License-Identifier: Apache-2.0
"""Build a root from the packages of a Debian release, fetched and unpacked without root rights.

The packages are the requested ones, their dependencies (apt decides), and `BASE`. No script of a package runs. The
effects that programs need are created here: alternatives (`awk`, `nc`), users and groups, Python's compiled modules.
The packages are those of the last point release, without later updates, which depend on the date."""

import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hourglass.builders.approot import accounts
from hourglass.builders.approot.folder import Folder
from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.files import sha256
from hourglass.host import process

RELEASES = {"11": "bullseye", "12": "bookworm", "13": "trixie"}
"""Codenames by number."""

BASE = (
    "base-files", "base-passwd", "coreutils", "dash", "findutils", "grep", "iproute2", "iputils-ping", "libc-bin",
    "mawk", "netbase", "procps", "sed",
)  # fmt: skip
"""The packages of every root: a shell, the usual small tools, users, the names of services and protocols."""

MERGED = {"bookworm": ("usr-is-merged",), "trixie": ("usr-is-merged",)}
"""Packages that declare a merged /usr. Without them, Perl would be installed to merge it."""

LEFT_OUT = re.compile(r"\./usr/share/(doc|man|locale|info|lintian|bug|doc-base|zoneinfo)/.+")
"""Files that no program reads: half of all files."""

FOLDERS = ("dev", "proc", "sys", "run", "tmp", "root", "var/tmp", "var/log", "var/lib", "var/cache")
STICKY = ("tmp", "var/tmp")
LINKS = {"var/run": "/run", "var/lock": "/run/lock"}

SCRIPTS = ("preinst", "postinst")
"""The scripts of a package whose effects a root has."""

ALTERNATIVE = re.compile(r"--(?:install|slave)\s+(/\S+)\s+[\w.+-]+\s+(/\S+)", re.ASCII)

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Unpacked:
    """A package in a root."""

    name: str
    version: str
    sha256: str


def make(release: str, packages: Iterable[str], path: Path, cache: Path, report: Report) -> list[Unpacked]:
    """Build the root at `path`; `cache`: apt's folder. Raises MissingError, or HourglassError with apt's messages."""
    if missing := process.missing_tools(apt.TOOLS):
        raise MissingError("programs' roots cannot be built", f"apt-get install -y {' '.join(missing)}")
    report(0.0, "querying the archive")
    codename = RELEASES[release]
    debs = fetch(codename, sorted({*BASE, *MERGED.get(codename, ()), *packages}), cache, report)
    folder = Folder(path)
    folder.begin()
    folder.merge()
    for name in FOLDERS:
        folder.make(name)
    for name, target in LINKS.items():
        (path / name).symlink_to(target)
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
    """Unpack a package without the files of LEFT_OUT."""
    with _OpenPackage(deb, "--fsys-tarfile") as archive:
        for member in archive:
            if not LEFT_OUT.fullmatch(member.name) or member.isdir():
                folder.add(archive, member)
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


def _alternatives(scripts: Iterable[str], folder: Folder) -> None:
    """Create the links that package scripts would register with update-alternatives; the first one of a name counts."""
    for link, target in (pair for script in scripts for pair in ALTERNATIVE.findall(script.replace("\\\n", " "))):
        path = folder.resolve(link)
        if not path.exists() and not path.is_symlink() and folder.resolve(target).exists():
            path.symlink_to(target)


def _script(deb: Path) -> str:
    """Return a package's scripts `preinst` and `postinst`."""
    scripts = {}
    with _OpenPackage(deb, "--ctrl-tarfile") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            content = archive.extractfile(member) if name in SCRIPTS else None
            if content is not None:
                scripts[name] = content.read().decode(errors="replace")
    return "\n".join(scripts[name] for name in SCRIPTS if name in scripts)


def _compile_python(path: Path) -> None:
    """Compile Python's modules with the root's Python, so that no program compiles them at each start."""
    loader = path / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    for program in sorted((path / "usr/bin").glob("python3.[0-9]*")):
        library = path / "usr/lib" / program.name
        if not re.fullmatch(r"python3\.\d+", program.name) or not library.is_dir():
            continue
        libraries = f"{path}/usr/lib/x86_64-linux-gnu:{path}/usr/lib"
        options = ["-q", "-m", "compileall", "-q", "-s", str(path), "-p", "/", "--invalidation-mode", "unchecked-hash"]
        done = subprocess.run(
            [loader, "--library-path", libraries, program, "-I", *options[1:], library],
            env={"PYTHONHOME": f"{path}/usr", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
            text=True, capture_output=True, check=False, umask=0o022,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # 1: test modules that do not compile on purpose
            raise HourglassError(
                f"{program.name} of the root did not compile its modules: {done.stderr.strip()[-300:]}"
            )
