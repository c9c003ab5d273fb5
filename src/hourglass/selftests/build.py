# SPDX-License-Identifier: Apache-2.0
"""A kernel tree's selftests of the network, compiled for its guest, in a root with the tools that they call.

    selftests/KEY/root/        Debian's packages, the tests in /kselftest, packetdrill
    selftests/KEY/tests.json   the tests' names
    selftests/KEY/make.log     what make said

Programs are linked statically: the root's libraries are not this machine's. What does not compile here (it asks for a
library, for clang) is left out; its test says so. Programs that YNL generates code for are not made.
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

from hourglass import files, locks
from hourglass.contract.kernels import SUITES
from hourglass.contract.plan_apps import Root
from hourglass.engine import approot, paths, process
from hourglass.engine.kernel import source, trees
from hourglass.engine.kernel.build import Report
from hourglass.engine.kernel.hooks import tree_version
from hourglass.engine.kernel.source import Source
from hourglass.errors import HourglassError, MissingError

RECIPE = 1
"""Raised whenever something else is made of the same tree."""

KEPT = 8
FOLDER = "tools/testing/selftests"
HAVING = f"{FOLDER}/net/mptcp/simult_flows.sh"
"""What a source lacks that was unpacked before there were selftests in it."""

TAKEN = (FOLDER, "tools/include", "tools/scripts", "tools/build", "tools/arch", "tools/lib", "scripts", "include/uapi")
"""What the tests' Makefiles read of a tree."""

MADE = ("net", "net/mptcp", "net/packetdrill")
"""Folders whose Makefile says what their tests are."""

TDC = "tc-testing"
"""Tests of tc: files of cases, which `tdc.py` runs."""

PLACE = "kselftest"
"""Where the tests are in the root."""

PACKAGES = (
    "bash", "bc", "bsdextrautils", "conntrack", "diffutils", "ethtool", "gawk", "hostname", "iperf3", "iptables",
    "iputils-arping", "jq", "mount", "net-tools", "netcat-openbsd", "nftables", "python3",
    "python3-scapy", "socat", "tcpdump", "util-linux", "xxd",
)  # fmt: skip
TOOLS = {"make": "make", "gcc": "gcc", "bison": "bison", "flex": "flex"}
NEWER = (6, 12)
"""From this kernel on the root is Debian 13's: tests call options of their time's tools."""


@dataclass(frozen=True)
class Built:
    """`root`: the folder that programs see as `/`; `tests`: their names, folder and file."""

    root: Path
    tests: tuple[str, ...]


def built(words: str, name: str, report: Report) -> Built:
    """The selftests of a kernel of the list, or of a tree (`engine/kernel/trees.py`), compiled if they are not there.

    Raises InputError, MissingError, or HourglassError with what make said."""
    if lacking := process.missing_tools(TOOLS):
        raise MissingError("the selftests cannot be compiled", f"apt-get install -y {' '.join(lacking)}")
    if words in SUITES:
        return _kept(source.packaged(words, lambda text: report(0.0, text), HAVING), report)
    with trees.given(words, name, report) as found:
        if not (found.tree / FOLDER / "net").is_dir():
            raise HourglassError(f"{found.tree} has no {FOLDER}/net")
        return _kept(found, report)


def _kept(origin: Source, report: Report) -> Built:
    release = "13" if tree_version(origin.tree) >= NEWER else "12"
    base = approot.ready(Root(kind="debian", place=release, packages=list(PACKAGES)), report)
    drill = shutil.which("packetdrill")
    parts = [str(RECIPE), origin.identity, base.digest, files.sha256(Path(drill)) if drill else ""]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    place = paths.cache() / "selftests" / key
    waiting = "waiting for another process that compiles selftests"
    with locks.held(place.with_name(f"{key}.lock"), lambda: report(0.0, waiting)):
        if not (place / "tests.json").is_file():
            with files.replacing(place) as fresh:
                fresh.mkdir(parents=True)
                tests = _make(origin.tree, base.folder, fresh, Path(drill) if drill else None, report)
                (fresh / "tests.json").write_text(json.dumps(tests))
            paths.keep_newest((one.parent for one in place.parent.glob("*/tests.json")), KEPT)
    place.touch()
    return Built(place / "root", tuple(json.loads((place / "tests.json").read_text())))


def _make(tree: Path, base: Path, fresh: Path, drill: Path | None, report: Report) -> list[str]:
    """Compiles in a copy, as the Makefiles write beside the sources, and gives the tests' names."""
    work = fresh / "tree"
    for part in (one for one in TAKEN if (tree / one).is_dir()):
        shutil.copytree(tree / part, work / part, symlinks=True)
    report(0.1, "installing the kernel's headers")
    with (fresh / "make.log").open("wb") as log:
        if _run(["make", "-s", "-C", str(tree), "ARCH=x86", f"O={fresh / 'headers'}", "headers"], log):
            raise HourglassError(f"{tree}: its headers cannot be installed; make said:\n{_end(fresh / 'make.log')}")
        for count, name in enumerate(MADE):
            report(0.3 + 0.2 * count, f"compiling {name}")
            _compile(work / FOLDER / name, fresh / "headers/usr/include", log)
    tests = sorted(_tests(work / FOLDER))
    report(0.9, "making their root")
    shutil.copytree(base, fresh / "root", symlinks=True, copy_function=os.link)
    target = fresh / "root" / PLACE
    for name in ("net", TDC, "kselftest"):
        if (work / FOLDER / name).is_dir():
            shutil.copytree(work / FOLDER / name, target / name, symlinks=True)
    for script in (work / FOLDER).glob("*.sh"):
        shutil.copy(script, target)
    if drill is not None:
        shutil.copy(drill, fresh / "root/usr/bin/packetdrill")
    shutil.rmtree(work)
    shutil.rmtree(fresh / "headers")
    return tests


def _compile(folder: Path, headers: Path, log: IO[bytes]) -> None:
    """Every program of one source; what does not compile is in the log."""
    stems = [path.stem for path in sorted(folder.glob("*.c")) if "." not in path.stem]
    if not stems:
        return
    given = [f"OUTPUT={folder}", f"KHDR_INCLUDES=-isystem {headers}", "YNL_GEN_FILES=", "YNL_GEN_PROGS=", "ARCH=x86"]
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    _run(["make", "-k", jobs, "-C", str(folder), *given, *(f"{folder}/{stem}" for stem in stems)], log)


def _tests(folder: Path) -> Iterator[str]:
    for name in (one for one in MADE if (folder / one / "Makefile").is_file()):
        own = str(folder / name)
        command = ["make", "-s", "-C", own, f"OUTPUT={own}", f"COLLECTION={name}", "emit_tests"]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        for line in done.stdout.splitlines():
            collection, _, test = line.partition(":")
            if collection == name and test:
                yield f"{name}/{test}"
    cases = folder / TDC / "tc-tests"
    for path in cases.rglob("*.json"):
        yield f"{TDC}/{path.relative_to(cases)}"


def _run(command: list[str], log: IO[bytes]) -> int:
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "CFLAGS", "LDLIBS")}
    environment["LDFLAGS"] = "-static"
    return subprocess.run(command, env=environment, stdout=log, stderr=log, check=False).returncode


def _end(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
