# SPDX-License-Identifier: Apache-2.0
"""Build a root like Alpine's: musl, busybox and a Python for musl, all from Debian's packages and sources.

The root has no glibc that a program could load. It has zlib, which wheels for musl require. Python has the modules that
pip and Hourglass need (zlib, bz2, ctypes), but no TLS.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError, MissingError
from release.command import output_of

TOOLS = {
    "musl-gcc": "musl-tools",
    "autoreconf": "autoconf automake",
    "libtoolize": "libtool libltdl-dev",
    "make": "make",
}
PYTHON = "3.13"
SOURCES = {"python": f"python{PYTHON}", "zlib": "zlib", "bzip2": "bzip2", "libffi": "libffi"}
"""Part → Debian's source package."""

PACKAGES = ["musl", "busybox-static"]
FOLDERS = [
    "bin", "dev", "etc", "home", "lib", "proc", "root", "run", "sbin", "tmp", "usr/bin", "usr/lib", "usr/sbin",
    "var/tmp",
]  # fmt: skip
LEFT_OUT = ["test", "idlelib", "tkinter", "turtledemo", "config-*", "ensurepip/_bundled/setuptools*"]

COMPILER = """#!/bin/sh
# gcc names its own multiarch folder, which is glibc's; the kernel's headers are nobody's.
case " $* " in *" --print-multiarch "*) echo x86_64-linux-musl; exit ;; esac
exec musl-gcc -idirafter {headers} "$@"
"""
BUILD = {
    "zlib": [
        "./configure --prefix={built}",
        "make -j{jobs}",
        "make install",
        "mv {built}/lib/libz.so* {root}/usr/lib",
    ],
    "bzip2": [
        'make -j{jobs} libbz2.a CC="$CC" CFLAGS="$CFLAGS"',
        "install -D -m 644 bzlib.h {built}/include/bzlib.h",
        "install -D -m 644 libbz2.a {built}/lib/libbz2.a",
    ],
    "libffi": [
        "autoreconf -fi",
        "./configure --disable-builddir --disable-shared --disable-docs --prefix={built} --libdir={built}/lib",
        "make -j{jobs}",
        "make install",
    ],
    "python": [
        "./configure --prefix=/usr --without-ensurepip --disable-test-modules CPPFLAGS=-I{built}/include "
        "LDFLAGS=-L{built}/lib PKG_CONFIG_LIBDIR={built}/lib/pkgconfig",
        "make -j{jobs}",
        "make install DESTDIR={root}",
    ],
}


def fill(root: Path, suite: str, say: Callable[[str], None]) -> None:
    """Build the root in an empty folder. Raises MissingError, or HourglassError with the last lines of a build."""
    if lacking := [package for tool, package in TOOLS.items() if not shutil.which(tool)]:
        raise MissingError("building Python for musl", f"apt-get install -y {' '.join(lacking)}")
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="hourglass-musl-", dir="/var/tmp") as scratch:
        work = Path(scratch)
        archive = apt.Archive(suite, work / "apt")
        for deb in archive.download(PACKAGES):
            output_of(["dpkg-deb", "-x", str(deb), str(work / "unpacked")], work)
        system(root, work / "unpacked")
        folders = sources(archive, work)
        for name in BUILD:
            say(f"building {folders[name].name} for musl")
            build(name, folders[name], work, root)
    library = root / f"usr/lib/python{PYTHON}"
    for pattern in LEFT_OUT:
        for path in library.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def system(root: Path, unpacked: Path) -> None:
    """Install musl in Alpine's layout, busybox with all its names, and the common files of /etc."""
    shutil.copy(unpacked / "usr/lib/x86_64-linux-musl/libc.so", root / "lib/ld-musl-x86_64.so.1")
    (root / "lib/libc.musl-x86_64.so.1").symlink_to("ld-musl-x86_64.so.1")
    busybox = next(path for path in unpacked.glob("**/bin/busybox") if path.is_file())
    shutil.copy(busybox, root / "bin/busybox")
    for path in output_of([str(root / "bin/busybox"), "--list-full"], root).split():
        link = root / (path if path.startswith(("bin/", "sbin/", "usr/")) else f"bin/{path}")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to("/bin/busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")


def sources(archive: "apt.Archive", work: Path) -> dict[str, Path]:
    """Return the unpacked upstream sources, which apt has verified."""
    listed = archive.folder / "parts" / "derived.sources"
    listed.write_text(listed.read_text().split("\n\n")[0].replace("Types: deb", "Types: deb-src") + "\n")
    archive.apt("update")
    done = archive.apt("source", "--download-only", *SOURCES.values())
    unpacked = {}
    for name, package in SOURCES.items():
        tars = [path for path in (archive.folder / "packages").glob(f"{package}_*.orig.tar.*") if path.suffix != ".asc"]
        if done.returncode or len(tars) != 1:
            raise HourglassError(f"cannot download the source of {package}; apt says:\n{done.stderr[-2000:]}")
        target = work / "sources" / name
        target.mkdir(parents=True)
        output_of(["tar", "-xf", str(tars[0]), "-C", str(target)], work)
        (unpacked[name],) = target.iterdir()
    return unpacked


def build(name: str, folder: Path, work: Path, root: Path) -> None:
    """Configure, compile and install a part with a compiler for musl."""
    headers, built, compiler = work / "headers", work / "built", work / "cc"
    if not headers.is_dir():
        headers.mkdir()
        include = Path("/usr/include")
        origins = {"linux": include, "asm-generic": include, "asm": include / "x86_64-linux-gnu"}
        for subfolder, origin in origins.items():
            (headers / subfolder).symlink_to(origin / subfolder)
        compiler.write_text(COMPILER.format(headers=headers))
        compiler.chmod(0o755)
    values = {"built": built, "root": root, "jobs": os.cpu_count() or 1}
    for line in BUILD[name]:
        output_of(["sh", "-c", line.format(**values)], folder, CC=str(compiler), CFLAGS="-O2 -g0 -fPIC")
