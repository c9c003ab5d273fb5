# SPDX-License-Identifier: Apache-2.0
"""Same scenario, seed, kernel and root: same bytes, on any CPU and under any circumstances.

The CPU's level is masked as the C library sees it (`make other-cpus` emulates whole CPUs); the circumstances are those
of the command `hourglass run`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import cpio, paths, root, virtual
from hourglass.errors import HourglassError

from .conftest import Simulate, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=1", "test.delay=0.2")
CASES = ("L100M", "R100M", "wifi-ath9k")
LEVELS = {"v3": "-AVX512F,-AVX512VL", "v2": "-AVX512F,-AVX512VL,-AVX2", "v1": "-AVX512F,-AVX512VL,-AVX2,-SSE4_2"}
"""Levels of the psABI, and what the C library must not see of the CPU to take it for one of that level."""

BESIDES = [("wifi-ath9k", kernel) for kernel in KERNELS if kernel != DEFAULT]
"""The libraries that levels choose between are the same below every kernel: of the others the case with most tools."""

Mask = Callable[[str], None]


@pytest.fixture
def mask(monkeypatch: pytest.MonkeyPatch) -> Mask:
    """`mask(level)`: programs of guests see a CPU of that level from now on."""
    plain = virtual.command

    def masked(level: str) -> None:
        def command(*arguments: Any) -> list[str]:
            line = plain(*arguments)
            end = line.index("--")
            return [*line[:end], f"GLIBC_TUNABLES=glibc.cpu.hwcaps={LEVELS[level]}", *line[end:]]

        monkeypatch.setattr(virtual, "command", command)

    return masked


@pytest.mark.parametrize(("case", "kernel"), [*((case, DEFAULT) for case in CASES), *BESIDES])
def test_the_cpus_level_does_not_show(simulate: Simulate, mask: Mask, tmp_path: Path, kernel: str, case: str) -> None:
    own = simulate(case, *SHORT, kernel=kernel)
    for level in LEVELS:
        mask(level)
        run = runner.run(scenario.load(case, SHORT, kernel=kernel), tmp_path / level)
        assert records(run).read_bytes() == records(own).read_bytes(), level


def test_masks_are_seen(mask: Mask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library that is there for a level alone is found where there is no loader cache, but not under a lower level's
    mask. (Else the test above could not fail.)"""
    members, wanted = root.members, scenario.load("L100M", SHORT)

    def moved(*arguments: Any) -> dict[str, cpio.Member]:
        files = members(*arguments)
        del files["etc/ld.so.cache"]
        library = next(name for name in files if "/libmnl.so" in name)
        folder, name = library.rsplit("/", 1)
        return files | {f"{folder}/glibc-hwcaps/x86-64-v2/{name}": files.pop(library)}

    with monkeypatch.context() as patch:
        patch.setattr(root, "members", moved)
        patch.setattr(root, "known", lambda _what, _files, work: work())
        root._archive.cache_clear()
        try:
            runner.run(wanted, tmp_path / "own")
            mask("v1")
            with pytest.raises(HourglassError, match=r"libmnl\.so"):
                runner.run(wanted, tmp_path / "v1")
        finally:
            root._archive.cache_clear()


@pytest.fixture(scope="module")
def scarce_memory() -> Iterator[None]:
    """Another process has half of the memory that was free, 2 GiB at most: more takes longer than all the runs."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    hoard = f"held = bytearray(b'x') * {min(available // 2, 2 << 30)}; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hoard], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def digest(case: str, kernel: str, out: Path, environment: dict[str, str] | None = None, **settings: Any) -> str:
    """The digest that a run of its own process says."""
    words = ["run", case, "--kernel", kernel, "--out", str(out), "--json", *(f"--set={word}" for word in SHORT)]
    done = subprocess.run(
        [sys.executable, "-c", "from hourglass.cli import main; main()", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        stdout=subprocess.PIPE,
        check=True,
        **settings,
    )
    return str(json.loads(done.stdout)["digest"])


@pytest.mark.parametrize("case", ["L100M", "wifi-ath9k"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_circumstances_do_not_show(
    simulate: Simulate, scarce_memory: None, tmp_path: Path, kernel: str, case: str
) -> None:
    """Environment, locale, home, hash seed, umask, current folder, number of CPUs, memory: all others than before."""
    (home := tmp_path / "a home, with spaces").mkdir()
    environment = {
        "HOME": str(home),
        "HOURGLASS_CACHE": str(paths.cache()),
        "PYTHONHASHSEED": "7",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
        "PATH": "/bin:/usr/bin",
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        **{f"FILLER_{number}": "x" * 1000 for number in range(50)},
    }
    cpu = {sorted(os.sched_getaffinity(0))[0]}
    told = digest(
        case, kernel, home / "run", environment, umask=0o077, cwd=home, preexec_fn=lambda: os.sched_setaffinity(0, cpu)
    )
    assert told == simulate(case, *SHORT, kernel=kernel).info.digest
