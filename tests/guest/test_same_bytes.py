# SPDX-License-Identifier: Apache-2.0
"""Same scenario, seed, kernel and root: same bytes, on any CPU and in any environment.

The CPU's level is masked for the C library; `make other-cpus` emulates complete CPUs. The environment is that of the
command `hourglass run`.
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
from hourglass.builders import cpio, root
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import virtual
from hourglass.errors import HourglassError
from hourglass.host import directories

from .conftest import Simulate, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=1", "test.delay=0.2")
CASES = ("L100M", "R100M", "wifi-ath9k")
LEVELS = {"v3": "-AVX512F,-AVX512VL", "v2": "-AVX512F,-AVX512VL,-AVX2", "v1": "-AVX512F,-AVX512VL,-AVX2,-SSE4_2"}
"""Levels of the psABI, with the features that are hidden so that the C library detects this level."""

OTHER_KERNELS = [("wifi-ath9k", kernel) for kernel in KERNELS if kernel != DEFAULT]
"""The libraries that depend on the level are the same on every kernel. On the other kernels, only the case with most
tools runs."""

Mask = Callable[[str], None]


@pytest.fixture
def mask(monkeypatch: pytest.MonkeyPatch) -> Mask:
    """Yield `mask(level)`. After a call, programs of guests see a CPU of that level."""
    plain = virtual.command

    def masked(level: str) -> None:
        def command(*arguments: Any) -> list[str]:
            line = plain(*arguments)
            end = line.index("--")
            return [*line[:end], f"GLIBC_TUNABLES=glibc.cpu.hwcaps={LEVELS[level]}", *line[end:]]

        monkeypatch.setattr(virtual, "command", command)

    return masked


@pytest.mark.parametrize(("case", "kernel"), [*((case, DEFAULT) for case in CASES), *OTHER_KERNELS])
def test_records_do_not_depend_on_the_cpus_level(
    simulate: Simulate, mask: Mask, tmp_path: Path, kernel: str, case: str
) -> None:
    unmasked = simulate(case, *SHORT, kernel=kernel)
    for level in LEVELS:
        mask(level)
        run = runner.run(scenario.load(case, SHORT, kernel=kernel), tmp_path / level)
        assert records(run).read_bytes() == records(unmasked).read_bytes(), level


def test_a_masked_level_uses_its_library(mask: Mask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a loader cache, a library for one level is found at that level, and not under a lower level's mask. This
    shows that the test above can fail."""
    members, loaded = root.members, scenario.load("L100M", SHORT)

    def moved(*arguments: Any) -> dict[str, cpio.CpioMember]:
        files = members(*arguments)
        del files["etc/ld.so.cache"]
        library = next(name for name in files if "/libmnl.so" in name)
        folder, name = library.rsplit("/", 1)
        return files | {f"{folder}/glibc-hwcaps/x86-64-v2/{name}": files.pop(library)}

    with monkeypatch.context() as patch:
        patch.setattr(root, "members", moved)
        patch.setattr(root, "cached", lambda _kind, _files, work: work())
        root._archive.cache_clear()
        try:
            runner.run(loaded, tmp_path / "own")
            mask("v1")
            with pytest.raises(HourglassError, match=r"libmnl\.so"):
                runner.run(loaded, tmp_path / "v1")
        finally:
            root._archive.cache_clear()


@pytest.fixture(scope="module")
def scarce_memory() -> Iterator[None]:
    """Let another process hold half of the free memory, at most 2 GiB: to fill more would take longer than all the
    runs."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    hoard = f"held = bytearray(b'x') * {min(available // 2, 2 << 30)}; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hoard], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def digest(case: str, kernel: str, out: Path, environment: dict[str, str] | None = None, **settings: Any) -> str:
    """Return the digest that a run in a new process prints."""
    arguments = [
        "run",
        case,
        "--kernel",
        kernel,
        "--out",
        str(out),
        "--json",
        *(f"--set={setting}" for setting in SHORT),
    ]
    result = subprocess.run(
        [sys.executable, "-c", "from hourglass.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        stdout=subprocess.PIPE,
        check=True,
        **settings,
    )
    return str(json.loads(result.stdout)["digest"])


@pytest.mark.parametrize("case", ["L100M", "wifi-ath9k"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_records_do_not_depend_on_the_environment(
    simulate: Simulate, scarce_memory: None, tmp_path: Path, kernel: str, case: str
) -> None:
    """Environment, locale, home, hash seed, umask, current folder, number of CPUs and memory differ."""
    (home := tmp_path / "a home, with spaces").mkdir()
    environment = {
        "HOME": str(home),
        "HOURGLASS_CACHE": str(directories.cache()),
        "PYTHONHASHSEED": "7",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
        "PATH": "/bin:/usr/bin",
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        **{f"FILLER_{number}": "x" * 1000 for number in range(50)},
    }
    cpu = {sorted(os.sched_getaffinity(0))[0]}
    other_digest = digest(
        case, kernel, home / "run", environment, umask=0o077, cwd=home, preexec_fn=lambda: os.sched_setaffinity(0, cpu)
    )
    assert other_digest == simulate(case, *SHORT, kernel=kernel).info.digest
