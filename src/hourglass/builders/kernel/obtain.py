# SPDX-License-Identifier: Apache-2.0
"""Obtain the source of a listed kernel: from a folder of the user, this machine's package, or Debian.

Suites change: backports have one version at a time, and an old release is archived one day. A fetched source stays in
the cache (`source_tree.py`). A new source must match the hooks. If a release newer than the tested one does not match,
it is refused, and the cached source stays.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from hourglass.builders.kernel import apt, hooks
from hourglass.contract.kernels import NEWEST, SUITES, TESTED_RELEASES
from hourglass.errors import GoneError, HourglassError, MissingError
from hourglass.files import sha256
from hourglass.host import process

FETCHING = apt.TOOLS | {"xz": "xz-utils", "tar": "tar"}
"""Programs that download and unpack a kernel, and the packages that contain them."""

MIRROR = "HOURGLASS_SOURCES"
"""The environment variable with a folder of Debian's packages or kernel.org's archives of the sources."""

LEFT_OUT = [
    "drivers/[!bcfnptv]*/*.[chS]", "drivers/net/[edcp]*/*.[ch]", "drivers/net/wireless/*.[ch]",
    "Documentation/[!Kn]*", "tools/[!abilonstM]*", "tools/a[!r]*", "tools/arch/[!x]*", "tools/n[!e]*", "tools/t[!e]*",
    "tools/testing/[!s]*",
    "tools/testing/selftests/[!klnrtM]*", "tools/testing/selftests/kvm", "sound/*.[ch]", "fs/[!cdehknoprst]*/*.[ch]",
    *(f"arch/[!uxK]*{ending}" for ending in (".[chS]", ".dts", ".dtsi", "_defconfig", ".config")),
    *(f"drivers/{folder}/*.[ch]" for folder in ("clk", "crypto", "phy", "pinctrl", "platform", "video")),
]  # fmt: skip
"""Files that no guest kernel compiles: other processors, hardware, disk file systems. The Kconfig files and Makefiles
of all drivers stay, and the documentation that `kernel patch` changes. PCI stays because Linux 7 compiles its trace
points in every configuration. These are nine tenths of the bytes. The patterns are few because tar compares each with
80,000 names."""

Say = Callable[[str], None]


class SourceGone(GoneError):
    """The source of a listed kernel is no longer available, or a newer one does not match the hooks."""


def obtain(name: str, folder: Path, say: Say, cached_identity: str | None) -> str:
    """Unpack the source into `folder`/tree and return its identity. `cached_identity`: that of the cached source.

    Raises SourceGone, MissingError if tools are missing, or HourglassError with apt's messages.
    """
    if lacking := process.missing_tools(FETCHING):
        raise MissingError(f"cannot fetch Linux {name}", f"apt-get install -y {' '.join(lacking)}")
    (folder / "tree").mkdir(parents=True)
    identity = _of_files(name, folder / "tree", say) or _of_debian(name, folder, say)
    _check(name, folder / "tree", identity, cached_identity)
    return identity


def _of_files(name: str, tree: Path, say: Say) -> str | None:
    """Unpack the source from the user's folder, otherwise from this machine's package. Return None without either."""
    mirror = os.environ.get(MIRROR)
    if mirror and not Path(mirror).is_dir():
        raise MissingError(
            f"${MIRROR}, {mirror}, is not a folder", f"set {MIRROR} to one with linux-source-*.deb in it"
        )
    package = f"linux-source-{name}"
    patterns = (f"{package}_*.deb", f"{package}.tar.xz", f"linux-{name}.tar.xz", f"linux-{name}.*.tar.xz")
    archives = [path for pattern in patterns for path in sorted(Path(mirror).glob(pattern))[-1:]] if mirror else []
    installed = Path(f"/usr/src/{package}.tar.xz")
    if not archives and not installed.is_file():
        return None
    path = archives[0] if archives else installed
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
    except apt.DownloadError as problem:
        if problem.gone:
            reason = f"Debian {suite} no longer has Linux {name}: {problem.reason}"
            raise SourceGone(name, reason, _remedy(name)) from problem
        raise
    say(f"unpacking {deb.name}")
    return _of_package(deb, package, folder / "tree")


def _newest(archive: apt.Archive) -> str:
    """Return the package of a suite's newest source: the one that `linux-source` depends on."""
    (deb,) = archive.download(["linux-source"])
    query = subprocess.run(["dpkg-deb", "--field", deb, "Depends"], text=True, capture_output=True, check=True)
    match = re.search(r"linux-source-\d+\.\d+", query.stdout)
    if match is None:
        raise HourglassError(f"{deb.name} depends on no source package: {query.stdout.strip()}")
    return match[0]


def _of_package(deb: Path, package: str, tree: Path) -> str:
    member = f"./usr/src/{package}.tar.xz"
    unpack([["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-xO", member]], package, tree)
    return f"{package} {deb.name.split('_')[1]}"


def _check(name: str, tree: Path, identity: str, cached_identity: str | None) -> None:
    """Raise SourceGone if an untested release does not match the hooks. A tested one must."""
    try:
        hooks.overlay(tree)
    except hooks.HookError as problem:
        if hooks.release(tree) == TESTED_RELEASES.get(name):
            raise
        remedy = f"{cached_identity} stays in the cache; remove --update" if cached_identity else _remedy(name)
        raise SourceGone(name, f"{identity} does not match a hook: {problem}", remedy) from problem


def _remedy(name: str) -> str:
    last = f", {TESTED_RELEASES[name]} is the last tested one," if name in TESTED_RELEASES else ""
    files = f"linux-source-{name}_*.deb or linux-{name}.*.tar.xz"
    return f"put {files}{last} into a folder that {MIRROR} names, or: hourglass kernel build PATH --name NAME"


def unpack(producers: list[list[str]], top: str, target: Path) -> None:
    """Pipe the producers' output, a tar.xz, into a folder, without its `top` folder and without LEFT_OUT. Debian's
    archives have several blocks, so xz uses all cores."""
    excluded = [f"--exclude={top}/{pattern}" for pattern in LEFT_OUT]
    tar = ["tar", "-x", "--strip-components=1", "--no-same-owner", "-C", str(target), *excluded]
    running: list[subprocess.Popen[bytes]] = []
    for command in [*producers, ["xz", "-dcT0"], tar]:
        source = running[-1].stdout if running else subprocess.DEVNULL
        running.append(subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE))
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
    """Return the version of an installed Debian package, or an empty string."""
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(command, text=True, capture_output=True, check=False).stdout.strip()
