# SPDX-License-Identifier: Apache-2.0
"""Confine the tools that read a custom C file, or a kernel that contains one: compilers, strip, bpftool."""

import resource
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from hourglass.builders.kernel import ccache
from hourglass.host import process, sandbox

COMPILER_S, COMPILER_BYTES, FILE_BYTES = 60, 4 << 30, 1 << 30
"""The CPU time, the memory and the largest file of a process that compiles a custom module. A candidate of a search may
be a macro that grows without end."""

OUTPUT_MAX, MESSAGES_MAX = 64 << 20, 1 << 16
"""Bytes of a tool's output and messages. A kernel's types have 2 MiB."""


def compiler_rules(work: Path) -> sandbox.Rules:
    """Return the paths that the compiler of a custom C file may read: the tree, its cache, and the system's programs.
    No file of the user is among them, so no `#include` and no `.incbin` can copy one into a kernel."""
    system = (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/alternatives",
    )
    programs = {Path(name).resolve().parent for name in map(shutil.which, ("make", "gcc", "ccache", "perl")) if name}
    return [
        (work, sandbox.WRITE | sandbox.EXECUTE),
        *((folder, sandbox.WRITE) for folder in ccache.folders()),
        *((Path(name), sandbox.RUN) for name in (*system, *map(str, programs))),
        *((Path(name), sandbox.DEVICE) for name in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty")),
    ]


def limits(rules: sandbox.Rules) -> AbstractContextManager[sandbox.Confine]:
    """Prepare the limits of a process that compiles a custom module: paths, CPU time, memory and files; see
    `sandbox.confinement`."""
    bounds = [(resource.RLIMIT_CPU, COMPILER_S), (resource.RLIMIT_AS, COMPILER_BYTES)]
    return sandbox.confinement(rules, filtered=False, limits=[*bounds, (resource.RLIMIT_FSIZE, FILE_BYTES)])


def run(command: Sequence[str | Path], work: Path, readable: Sequence[Path] = ()) -> tuple[int, bytes, str]:
    """Return the exit status, the output and the messages of a tool, cut at their bounds. The tool writes to the folder
    `work`, and also reads the files `readable`."""
    rules = [*compiler_rules(work), *((path, sandbox.READ) for path in readable)]
    environment = process.clean_environment() | {"TMPDIR": str(work)}
    with tempfile.TemporaryFile() as file:
        with (
            limits(rules) as confine,
            process.group(command, work, environment, confine=confine, stderr=file.fileno()) as child,
        ):
            assert child.stdout is not None
            output = child.stdout.read(OUTPUT_MAX)
            child.stdout.close()  # ends a tool that has more
            status = child.wait()
        file.seek(0)
        return status, output, file.read(MESSAGES_MAX).decode(errors="replace")
