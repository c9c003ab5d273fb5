# SPDX-License-Identifier: Apache-2.0
"""A kernel tree's selftests of the network, compiled for its guest, in a root with the tools that they call.

    selftests/KEY/root/        Debian's packages, the tests in /kselftest, packetdrill
    selftests/KEY/tests.json   the tests' names
    selftests/KEY/make.log     the output of make

Programs are linked statically, because the root has other libraries than this machine. A program that does not compile
here (it needs a library or clang) is omitted, and its test reports that. Programs with code from YNL are omitted.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hourglass import files
from hourglass.builders.kernel import source_tree, tree_spec
from hourglass.builders.kernel.builder import Report
from hourglass.builders.kernel.hooks import tree_version
from hourglass.builders.kernel.source_tree import SourceTree
from hourglass.contract.kernels import SUITES
from hourglass.contract.plan.apps import Root
from hourglass.engine import program_root
from hourglass.errors import HourglassError, MissingError
from hourglass.host import directories, hardware, process

RECIPE = 3
"""The version of this recipe: increment it when the same tree must be compiled again."""

MAX_ROOTS = 8
FOLDER = "tools/testing/selftests"
REQUIRED_FILE = f"{FOLDER}/net/mptcp/simult_flows.sh"
"""A file that is missing in sources from before Hourglass unpacked the selftests."""

TREE_FOLDERS = (
    FOLDER,
    "tools/include",
    "tools/scripts",
    "tools/build",
    "tools/arch",
    "tools/lib",
    "scripts",
    "include/uapi",
)
"""Folders of a tree that the Makefiles of the tests read."""

TEST_FOLDERS = ("net", "net/mptcp", "net/packetdrill")
"""Folders whose Makefile lists their tests."""

TDC = "tc-testing"
"""Tests of tc: files of cases, which `tdc.py` runs."""

TESTS_FOLDER = "kselftest"
"""The folder of the tests in the root."""

PACKAGES = (
    "bash", "bc", "bsdextrautils", "conntrack", "diffutils", "ethtool", "gawk", "hostname", "iperf3", "iptables",
    "iputils-arping", "jq", "mount", "ndisc6", "net-tools", "netcat-openbsd", "netsniff-ng", "nftables", "python3",
    "python3-scapy", "socat", "tcpdump", "traceroute", "udev", "util-linux", "xxd",
)  # fmt: skip
TOOLS = {"make": "make", "gcc": "gcc", "bison": "bison", "flex": "flex"}
MODPROBE = """\
#!/bin/sh
# The guest's kernel has no modules: its features are compiled in, except modules that only test the kernel.
case "$*" in *test_*) echo "modprobe: FATAL: Module not found: $*" >&2; exit 1;; esac
"""
NEWER = (6, 12)
"""From this kernel on, the root is Debian 13: the tests need options of newer tools."""


@dataclass(frozen=True)
class SelftestRoot:
    """`root`: the folder that programs see as `/`; `tests`: their names, folder and file."""

    root: Path
    tests: tuple[str, ...]


def build_selftests(spec: str, name: str, report: Report) -> SelftestRoot:
    """Return the selftests of a listed kernel or of a tree (`kernel/tree_spec.py`). Compile them if necessary.

    Raises InputError, MissingError, or HourglassError with the output of make."""
    if lacking := process.missing_tools(TOOLS):
        raise MissingError("the selftests cannot be compiled", f"apt-get install -y {' '.join(lacking)}")
    if spec in SUITES:
        return _cached_root(source_tree.packaged(spec, lambda text: report(0.0, text), REQUIRED_FILE), report)
    with tree_spec.open_tree(spec, name, report) as source:
        if not (source.tree / FOLDER / "net").is_dir():
            raise HourglassError(f"{source.tree} has no {FOLDER}/net")
        return _cached_root(source, report)


def _cached_root(source: SourceTree, report: Report) -> SelftestRoot:
    release = "13" if tree_version(source.tree) >= NEWER else "12"
    base = program_root.ready(Root(kind="debian", place=release, packages=list(PACKAGES)), report)
    drill = shutil.which("packetdrill")
    parts = [str(RECIPE), source.identity, base.digest, files.sha256(Path(drill)) if drill else ""]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = directories.cache() / "selftests" / key
    waiting = "waiting for another process that compiles selftests"

    def build(fresh: Path) -> None:
        fresh.mkdir()
        tests = _make(source.tree, base.folder, fresh, Path(drill) if drill else None, report)
        (fresh / "tests.json").write_text(json.dumps(tests))

    directories.entry(folder, MAX_ROOTS, build, lambda: report(0.0, waiting))
    return SelftestRoot(folder / "root", tuple(json.loads((folder / "tests.json").read_text())))


def _make(tree: Path, base: Path, fresh: Path, drill: Path | None, report: Report) -> list[str]:
    """Compile a copy of the tree, because the Makefiles write into it. Return the names of the tests."""
    work = fresh / "tree"
    for part in (name for name in TREE_FOLDERS if (tree / name).is_dir()):
        shutil.copytree(tree / part, work / part, symlinks=True)
    report(0.1, "installing the kernel's headers")
    with (fresh / "make.log").open("wb") as log:
        if _run(["make", "-s", "-C", str(tree), "ARCH=x86", f"O={fresh / 'headers'}", "headers"], log):
            raise HourglassError(
                f"{tree}: its headers cannot be installed; output of make:\n{_end(fresh / 'make.log')}"
            )
        for count, name in enumerate(TEST_FOLDERS):
            report(0.3 + 0.2 * count, f"compiling {name}")
            _compile(work / FOLDER / name, fresh / "headers/usr/include", log)
    tests = sorted(_tests(work / FOLDER))
    report(0.9, "making their root")
    shutil.copytree(base, fresh / "root", symlinks=True, copy_function=os.link)
    target = fresh / "root" / TESTS_FOLDER
    for name in ("net", TDC, "kselftest"):
        if (work / FOLDER / name).is_dir():
            shutil.copytree(work / FOLDER / name, target / name, symlinks=True)
    for script in (work / FOLDER).glob("*.sh"):
        shutil.copy(script, target)
    for name in ("modprobe", "modinfo"):
        program = fresh / "root/usr/sbin" / name
        program.unlink(missing_ok=True)
        program.write_text(MODPROBE)
        program.chmod(0o755)
    if drill is not None:
        shutil.copy(drill, fresh / "root/usr/bin/packetdrill")
    shutil.rmtree(work)
    shutil.rmtree(fresh / "headers")
    return tests


def _compile(folder: Path, headers: Path, log: IO[bytes]) -> None:
    """Compile each program that has one source file. The log has the errors."""
    stems = [path.stem for path in sorted(folder.glob("*.c")) if "." not in path.stem]
    if not stems:
        return
    variables = [
        f"OUTPUT={folder}",
        f"KHDR_INCLUDES=-isystem {headers}",
        "YNL_GEN_FILES=",
        "YNL_GEN_PROGS=",
        "ARCH=x86",
    ]
    jobs = f"-j{hardware.cpus()}"
    _run(["make", "-k", jobs, "-C", str(folder), *variables, *(f"{folder}/{stem}" for stem in stems)], log)


def _tests(folder: Path) -> Iterator[str]:
    for name in (part for part in TEST_FOLDERS if (folder / part / "Makefile").is_file()):
        path = str(folder / name)
        command = ["make", "-s", "-C", path, f"OUTPUT={path}", f"COLLECTION={name}", "emit_tests"]
        result = subprocess.run(command, text=True, capture_output=True, check=False)
        for line in result.stdout.splitlines():
            collection, _, test = line.partition(":")
            if collection == name and test:
                yield f"{name}/{test}"
    cases = folder / TDC / "tc-tests"
    for case_file in cases.rglob("*.json"):
        yield f"{TDC}/{case_file.relative_to(cases)}"


def _run(command: list[str], log: IO[bytes]) -> int:
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "CFLAGS", "LDLIBS")}
    environment["LDFLAGS"] = "-static"
    with process.group(command, Path(log.name).parent, environment) as child:
        assert child.stdout is not None
        shutil.copyfileobj(child.stdout, log)
        return child.wait()


def _end(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
