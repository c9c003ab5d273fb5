# SPDX-License-Identifier: Apache-2.0
"""Build the wheels with all contents in dist/: `python -m release.wheel` (`make wheel`).

`hourglass-net` has setuptools' wheel and the set that `builders/prebuilt.py` reads: the default kernel, the guest's
roots, the agent. `hourglass-net-kernel-NAME` is another kernel. Nothing in them depends on a C library of the machine,
so they run on every Linux on x86-64. The same commit, compilers and packages give the same bytes in any folder.
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
from hourglass.schema import schema_texts
from release import built
from release.command import output_of

ROOT = Path(__file__).parents[1]
TAG = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"
PURE = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"

Files = dict[str, tuple[bytes, int]]
"""Content of a wheel by path: bytes and mode."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m release.wheel", description="Makes the wheels.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where they go")
    parser.add_argument("--plain", action="store_true", help="with the existing kernels, tuned or not")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="this kernel alone (repeat)")
    options = parser.parse_args()
    options.dist.mkdir(parents=True, exist_ok=True)
    for name in options.kernel or KERNELS:
        with tempfile.TemporaryDirectory() as scratch:
            path = wheel(ROOT, name, Path(scratch), options.dist, commit_time(ROOT), tuned=not options.plain)
        print(f"{path} {path.stat().st_size / 1e6:.1f} MB", flush=True)


def wheel(checkout: Path, name: str, scratch: Path, dist: Path, epoch: int, *, tuned: bool) -> Path:
    """Write the wheel with a kernel."""
    built.make(scratch / "built", name, tuned=tuned)
    built_set = scratch / "built"
    files = front(pure(checkout, scratch), built_set) if name == DEFAULT else kernel(name, built_set)
    return pack(files, dist, epoch)


def pure(checkout: Path, scratch: Path) -> Path:
    """Return setuptools' wheel of the files that git tracks."""
    sources, target = scratch / "sources", scratch / "pure"
    for line in output_of(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], checkout).split(
        "\0"
    ):
        if line and os.path.lexists(checkout / line):
            (sources / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / line, sources / line, follow_symlinks=False)
    target.mkdir()
    output_of([sys.executable, "-c", PURE, str(target)], sources)
    return next(target.glob("*.whl"))


def front(pure: Path, set_: Path) -> Files:
    """Return the files of setuptools' wheel, the JSON Schemas and a prebuilt set."""
    with zipfile.ZipFile(pure) as archive:
        files = {name: (archive.read(name), 0o644) for name in archive.namelist() if not name.endswith("/RECORD")}
    files |= {f"hourglass/schema/{name}": (text.encode(), 0o644) for name, text in schema_texts().items()}
    return files | folder_files(set_, "hourglass/data/built")


def kernel(name: str, set_: Path) -> Files:
    """Return a package around the prebuilt set of another kernel."""
    package, version = f"hourglass_kernel_{name.replace('.', '_')}", hourglass.__version__
    docstring = f'# SPDX-License-Identifier: Apache-2.0\n"""Linux {name} for Hourglass {version}, built."""\n'
    metadata = f"""\
Metadata-Version: 2.1
Name: hourglass-net-kernel-{name}
Version: {version}
Summary: Linux {name} for Hourglass, built
License: GPL-2.0-only
Requires-Python: >=3.11
Requires-Dist: hourglass-net=={version}
"""
    info = f"{package.replace('_', '_net_', 1)}-{version}.dist-info"
    files = {f"{package}/__init__.py": (docstring.encode(), 0o644), f"{info}/METADATA": (metadata.encode(), 0o644)}
    return files | folder_files(set_, f"{package}/built")


def folder_files(folder: Path, prefix: str) -> Files:
    """Return a folder's files. Programs stay executable."""
    return {
        f"{prefix}/{path.relative_to(folder)}": (path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        for path in folder.rglob("*")
        if path.is_file()
    }


def pack(files: Files, dist: Path, epoch: int) -> Path:
    """Write a wheel whose bytes depend only on its files: sorted, with one time, compressed by zlib."""
    (info,) = {name.split("/")[0] for name in files if name.endswith(".dist-info/METADATA")}
    tags = [f"Tag: py3-none-{platform}\n" for platform in TAG.split("-")[2].split(".")]
    tags_file = "".join(["Wheel-Version: 1.0\n", "Generator: hourglass release\n", "Root-Is-Purelib: false\n", *tags])
    files = files | {f"{info}/WHEEL": (tags_file.encode(), 0o644)}
    lines = [f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in sorted(files.items())]
    record = f"{info}/RECORD"
    files |= {record: ("".join([*lines, f"{record},,\n"]).encode(), 0o644)}
    target = dist / f"{info.removesuffix('.dist-info')}-{TAG}.whl"
    for old in dist.glob(f"{info.split('-')[0]}-*.whl"):
        old.unlink()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files, key=lambda name: (name.startswith(info), name)):
            content, mode = files[name]
            member = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            member.compress_type, member.create_system, member.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                (0o100000 | mode) << 16,
            )
            archive.writestr(member, content, zipfile.ZIP_DEFLATED, 9)
    return target


def digest(content: bytes) -> str:
    """Return the digest in RECORD's format."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def commit_time(checkout: Path) -> int:
    """Return the time of the last commit apart from the changelog alone, the only date in a release; or
    SOURCE_DATE_EPOCH."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    return int(output_of(["git", "log", "-1", "--format=%ct", "--", ".", ":!CHANGELOG.md"], checkout))


if __name__ == "__main__":
    main()
