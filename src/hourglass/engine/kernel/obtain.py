# SPDX-License-Identifier: Apache-2.0
"""Where the source of a kernel of the list comes from: a folder of the user's, this machine's package, Debian.

Suites move on: backports have one version at a time, an old release is put away one day. What was fetched once stays in
the cache (`source.py`). What is fetched anew has to take the hooks; where a release newer than the last that was tried
does not, it is refused and what the cache has stays.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from hourglass.contract.kernels import NEWEST, SUITES, TRIED
from hourglass.engine import process
from hourglass.engine.kernel import apt, hooks
from hourglass.errors import GoneError, HourglassError, MissingError
from hourglass.files import sha256

FETCHING = apt.TOOLS | {"xz": "xz-utils", "tar": "tar"}
"""What downloading and unpacking a kernel takes, and the packages that these come in."""

MIRROR = "HOURGLASS_SOURCES"
"""The environment's name of a folder of the user's: Debian's packages or kernel.org's archives of the sources."""

LEFT_OUT = [
    "drivers/[!bcfnptv]*/*.[chS]", "drivers/net/[edcp]*/*.[ch]", "drivers/net/wireless/*.[ch]",
    "Documentation/[!Kn]*", "tools/[!bilonst]*", "tools/n[!e]*", "tools/t[!e]*", "tools/testing/[!s]*",
    "tools/testing/selftests/[!klnrtM]*", "tools/testing/selftests/kvm", "sound/*.[ch]", "fs/[!cdehknoprst]*/*.[ch]",
    *(f"arch/[!uxK]*{ending}" for ending in (".[chS]", ".dts", ".dtsi", "_defconfig", ".config")),
    *(f"drivers/{folder}/*.[ch]" for folder in ("clk", "crypto", "phy", "pinctrl", "platform", "video")),
]  # fmt: skip
"""What a guest kernel never compiles: other processors, hardware, file systems of disks; Kconfig files and Makefiles of
all drivers stay, and the documentation that `kernel patch` changes. PCI stays too: Linux 7 compiles its trace points
wherever there are any. Nine tenths of the bytes, by few patterns: tar compares each of them with 80,000 names."""

Say = Callable[[str], None]


class SourceGone(GoneError):
    """The source of a kernel of the list is not to be had any more, or a newer one does not take the hooks."""


def obtain(name: str, folder: Path, say: Say, kept: str | None) -> str:
    """Unpacks the source into `folder`/tree and gives its identity. `kept`: that of the one the cache has.

    Raises SourceGone; MissingError where tools for it are missing; HourglassError with apt's words.
    """
    if lacking := process.missing_tools(FETCHING):
        raise MissingError(f"cannot fetch Linux {name}", f"apt-get install -y {' '.join(lacking)}")
    (folder / "tree").mkdir(parents=True)
    identity = _of_files(name, folder / "tree", say) or _of_debian(name, folder, say)
    _check(name, folder / "tree", identity, kept)
    return identity


def _of_files(name: str, tree: Path, say: Say) -> str | None:
    """From the user's folder, else from the package that is installed here."""
    mirror = os.environ.get(MIRROR)
    if mirror and not Path(mirror).is_dir():
        raise MissingError(f"${MIRROR}, {mirror}, is no folder", f"set {MIRROR} to one with linux-source-*.deb in it")
    package = f"linux-source-{name}"
    patterns = (f"{package}_*.deb", f"{package}.tar.xz", f"linux-{name}.tar.xz", f"linux-{name}.*.tar.xz")
    found = [path for pattern in patterns for path in sorted(Path(mirror).glob(pattern))[-1:]] if mirror else []
    installed = Path(f"/usr/src/{package}.tar.xz")
    if not found and not installed.is_file():
        return None
    path = found[0] if found else installed
    say(f"unpacking {path}")
    if path.suffix == ".deb":
        return _of_package(path, package, tree)
    unpack([["cat", str(path)]], path.name.removesuffix(".tar.xz"), tree)
    version = package_version(package) if path == installed else ""
    return f"{package} {version or sha256(path)}"


def _of_debian(name: str, folder: Path, say: Say) -> str:
    suite = SUITES[name]
    say(f"downloading linux-source{'' if name == NEWEST else f'-{name}'} of Debian {suite}")
    archive = apt.Archive(suite, folder / "apt")
    try:
        package = _newest(archive) if name == NEWEST else f"linux-source-{name}"
        (deb,) = archive.download([package])
    except HourglassError as problem:
        if apt.GONE.search(str(problem)):
            what = f"Linux {name} is not in Debian {suite} any more: {apt.last_words(problem)}"
            raise SourceGone(name, what, _remedy(name)) from problem
        raise
    say(f"unpacking {deb.name}")
    return _of_package(deb, package, folder / "tree")


def _newest(archive: apt.Archive) -> str:
    """The package of the newest source that a suite has: the one that `linux-source` depends on."""
    (deb,) = archive.download(["linux-source"])
    asked = subprocess.run(["dpkg-deb", "--field", deb, "Depends"], text=True, capture_output=True, check=True)
    found = re.search(r"linux-source-\d+\.\d+", asked.stdout)
    if found is None:
        raise HourglassError(f"{deb.name} depends on no source: {asked.stdout.strip()}")
    return found[0]


def _of_package(deb: Path, package: str, tree: Path) -> str:
    member = f"./usr/src/{package}.tar.xz"
    unpack([["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-xO", member]], package, tree)
    return f"{package} {deb.name.split('_')[1]}"


def _check(name: str, tree: Path, identity: str, kept: str | None) -> None:
    """Raises SourceGone where a release that was not tried does not take the hooks. One that was has to."""
    try:
        hooks.overlay(tree)
    except hooks.HookError as problem:
        if hooks.release(tree) == TRIED.get(name):
            raise
        stays = f"{kept}, which the cache has, stays: leave --update out" if kept else _remedy(name)
        raise SourceGone(name, f"{identity} does not take a hook: {problem}", stays) from problem


def _remedy(name: str) -> str:
    last = f", {TRIED[name]} is the last that was tried," if name in TRIED else ""
    files = f"linux-source-{name}_*.deb or linux-{name}.*.tar.xz"
    return f"put {files}{last} into a folder that {MIRROR} names, or: hourglass kernel build PATH --name NAME"


def unpack(producers: list[list[str]], top: str, target: Path) -> None:
    """Pipes the producers' output, a tar.xz, into a folder, without its `top` folder and without LEFT_OUT. Debian's
    archives are of several blocks: xz takes all cores."""
    excluded = [f"--exclude={top}/{pattern}" for pattern in LEFT_OUT]
    tar = ["tar", "-x", "--strip-components=1", "--no-same-owner", "-C", str(target), *excluded]
    running: list[subprocess.Popen[bytes]] = []
    for command in [*producers, ["xz", "-dcT0"], tar]:
        before = running[-1].stdout if running else subprocess.DEVNULL
        running.append(subprocess.Popen(command, stdin=before, stdout=subprocess.PIPE))
        if running[1:]:
            stream = running[-2].stdout
            assert stream is not None
            stream.close()
    try:
        failed = [str(child.args) for child in reversed(running) if child.wait() != 0]
    finally:
        for child in running:
            child.kill()
    if failed:
        raise HourglassError(f"unpacking the kernel source failed: {failed[-1]} (is the disk full?)")


def package_version(package: str) -> str:
    """The version of an installed Debian package, or nothing."""
    asked = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(asked, text=True, capture_output=True, check=False).stdout.strip()
