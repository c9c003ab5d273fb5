# SPDX-License-Identifier: Apache-2.0
"""`python -m release.wheel` (`make wheel`): the wheels with everything inside, in dist/.

`hourglass` is what setuptools packs, and what `engine/prebuilt.py` takes: the default kernel, the guest's roots, the
agent; `hourglass-kernel-NAME` is another kernel. Nothing in them is linked with a C library of the machine's, so that
they suit every Linux on x86-64. The same commit, compilers and packages give the same bytes in any folder.
"""

import argparse
import base64
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import hourglass
from hourglass.contract.kernels import DEFAULT, KERNELS
from release import built
from release.command import called

ROOT = Path(__file__).parents[1]
TAG = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"
PURE = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"

Files = dict[str, tuple[bytes, int]]
"""What a wheel holds by path: bytes and mode."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m release.wheel", description="Makes the wheels.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where they go")
    parser.add_argument("--plain", action="store_true", help="with the kernels that are there, tuned or not")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="this kernel alone (repeat)")
    options = parser.parse_args()
    options.dist.mkdir(parents=True, exist_ok=True)
    for name in options.kernel or KERNELS:
        with tempfile.TemporaryDirectory() as scratch:
            made = wheel(ROOT, name, Path(scratch), options.dist, commit_time(ROOT), tuned=not options.plain)
        print(f"{made} {made.stat().st_size / 1e6:.1f} MB", flush=True)


def wheel(checkout: Path, name: str, scratch: Path, dist: Path, epoch: int, *, tuned: bool) -> Path:
    """Writes the wheel that brings a kernel."""
    built.make(scratch / "built", name, tuned=tuned)
    if name == DEFAULT:
        files = front(pure(checkout, scratch), scratch / "built")
        called([sys.executable, "-m", "hourglass.report.library", str(scratch / "vega.js")])
        files["hourglass/data/vega.js"] = ((scratch / "vega.js").read_bytes(), 0o644)
    else:
        files = kernel(name, scratch / "built")
    return pack(files, dist, epoch)


def pure(checkout: Path, scratch: Path) -> Path:
    """The wheel that setuptools makes of the files that git knows."""
    sources, made = scratch / "sources", scratch / "pure"
    for line in called(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], checkout).split("\0"):
        if line and os.path.lexists(checkout / line):
            (sources / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / line, sources / line, follow_symlinks=False)
    made.mkdir()
    called([sys.executable, "-c", PURE, str(made)], sources)
    return next(made.glob("*.whl"))


def front(pure: Path, set_: Path) -> Files:
    """What setuptools packed, and a prebuilt set."""
    with zipfile.ZipFile(pure) as archive:
        files = {name: (archive.read(name), 0o644) for name in archive.namelist() if not name.endswith("/RECORD")}
    return files | taken(set_, "hourglass/data/built")


def kernel(name: str, set_: Path) -> Files:
    """A package around the prebuilt set of another kernel."""
    package, version = f"hourglass_kernel_{name.replace('.', '_')}", hourglass.__version__
    about = f'# SPDX-License-Identifier: Apache-2.0\n"""Linux {name} for Hourglass {version}, built."""\n'
    metadata = f"""\
Metadata-Version: 2.1
Name: hourglass-kernel-{name}
Version: {version}
Summary: Linux {name} for Hourglass, built
License: GPL-2.0-only
Requires-Python: >=3.11
Requires-Dist: hourglass=={version}
"""
    info = f"{package}-{version}.dist-info"
    files = {f"{package}/__init__.py": (about.encode(), 0o644), f"{info}/METADATA": (metadata.encode(), 0o644)}
    return files | taken(set_, f"{package}/built")


def taken(folder: Path, place: str) -> Files:
    """A folder's files. Programs stay programs."""
    return {
        f"{place}/{path.relative_to(folder)}": (path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        for path in folder.rglob("*")
        if path.is_file()
    }


def pack(files: Files, dist: Path, epoch: int) -> Path:
    """Writes a wheel whose bytes follow from its files: in order, of one time, packed by zlib."""
    (info,) = {name.split("/")[0] for name in files if name.endswith(".dist-info/METADATA")}
    tags = [f"Tag: py3-none-{platform}\n" for platform in TAG.split("-")[2].split(".")]
    about = "".join(["Wheel-Version: 1.0\n", "Generator: hourglass release\n", "Root-Is-Purelib: false\n", *tags])
    files = files | {f"{info}/WHEEL": (about.encode(), 0o644)}
    lines = [f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in sorted(files.items())]
    record = f"{info}/RECORD"
    files |= {record: ("".join([*lines, f"{record},,\n"]).encode(), 0o644)}
    made = dist / f"{info.removesuffix('.dist-info')}-{TAG}.whl"
    for old in dist.glob(f"{info.split('-')[0]}-*.whl"):
        old.unlink()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files, key=lambda name: (name.startswith(info), name)):
            content, mode = files[name]
            member = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            member.compress_type, member.create_system, member.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                (0o100000 | mode) << 16,
            )
            archive.writestr(member, content, zipfile.ZIP_DEFLATED, 9)
    return made


def digest(content: bytes) -> str:
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def commit_time(checkout: Path) -> int:
    """When the last commit was made that was not of the changelog alone, the only date in a release; or
    SOURCE_DATE_EPOCH."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    return int(called(["git", "log", "-1", "--format=%ct", "--", ".", ":!CHANGELOG.md"], checkout))


if __name__ == "__main__":
    main()
