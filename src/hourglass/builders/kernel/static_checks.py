# SPDX-License-Identifier: Apache-2.0
"""Check the C files of kernel/ with checkpatch and sparse: `python -m hourglass.builders.kernel.static_checks`.

checkpatch comes with the kernel's sources; sparse runs in the working tree of a build. Both are created if missing.
Without sparse, its check is skipped with a message; if `CI` is set, it fails.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from hourglass import resources
from hourglass.builders.kernel import builder, source_tree
from hourglass.errors import program
from hourglass.host import directories, process

VERSION = "6.1"

IGNORED = {
    "SPDX_LICENSE_TAG": "without the script's own tree it cannot look licences up",
    "LINUX_VERSION_CODE": "one driver serves several kernels",
    "MACRO_ARG_REUSE": "hourglass_column.h takes names of fields, which have no effects",
    "CONSTANT_COMPARISON": "it takes KERNEL_VERSION() for a constant on the wrong side",
}

OURS = [
    "drivers/net/hourglass/",
    "net/ipv4/tcp_output.o",
    "fs/hostfs/hourglass_root.o",
    "arch/um/kernel/hourglass_program_account.o",
    "arch/um/kernel/hourglass_program_cpu.o",
    "arch/um/kernel/hourglass_program_time.o",
]
"""Hourglass's objects, as targets of the kernel's make."""


def checkpatch() -> bool:
    """Return whether every C file has the kernel's style."""
    folders = [resources.KERNEL / name for name in ("hooks", "drivers", "tests", "templates")]
    files = sorted(str(path) for folder in folders for path in folder.rglob("*.[ch]"))
    tree = source_tree.packaged(VERSION, lambda text: print(text, file=sys.stderr)).tree
    rules = ["--no-tree", "--strict", "--terse", "--quiet", "--no-summary", "--ignore", ",".join(IGNORED)]
    command = ["perl", str(tree / "scripts/checkpatch.pl"), f"--root={tree}", *rules, "--file", *files]
    with tempfile.TemporaryDirectory() as folder:  # checkpatch writes a list of words to its working directory
        return subprocess.run(command, cwd=folder, check=False).returncode == 0


def sparse() -> bool:
    """Return whether sparse finds no problem."""
    if shutil.which("sparse") is None:
        print("no sparse: not checked")
        return "CI" not in os.environ
    builder.build(VERSION)
    tree = directories.cache() / "work" / VERSION
    command = [*builder.MAKE, "C=2", *OURS]
    done = process.output_of(command, os.environ, tree)
    sys.stdout.write(done.stderr)
    return done.returncode == 0 and not any(word in done.stderr for word in ("hourglass", "tsq"))


if __name__ == "__main__":
    program(lambda: not (checkpatch() and sparse()))
