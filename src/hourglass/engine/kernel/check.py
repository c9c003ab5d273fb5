# SPDX-License-Identifier: Apache-2.0
"""`python -m hourglass.engine.kernel.check`: the kernel's own checks of the C files of kernel/: checkpatch and sparse.

checkpatch comes with the kernel's sources; sparse runs in the working tree of a build. Both are made if not there.
Without sparse itself the check is left out, with a word; where CI is set, it fails.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from hourglass import resources
from hourglass.engine import paths
from hourglass.engine.kernel import build, source

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
"""What of ours is compiled, as targets of the kernel's make."""


def checkpatch() -> bool:
    """Whether every C file has the kernel's style."""
    folders = [resources.KERNEL / name for name in ("hooks", "drivers", "tests", "templates")]
    files = sorted(str(path) for folder in folders for path in folder.rglob("*.[ch]"))
    tree = source.packaged(VERSION, lambda text: print(text, file=sys.stderr)).tree
    rules = ["--no-tree", "--strict", "--terse", "--quiet", "--no-summary", "--ignore", ",".join(IGNORED)]
    command = ["perl", str(tree / "scripts/checkpatch.pl"), f"--root={tree}", *rules, "--file", *files]
    with tempfile.TemporaryDirectory() as place:  # it leaves a file where it runs: the kernel's words in mixed case
        return subprocess.run(command, cwd=place, check=False).returncode == 0


def sparse() -> bool:
    """Whether sparse has nothing to say."""
    if shutil.which("sparse") is None:
        print("no sparse: not checked")
        return "CI" not in os.environ
    build.build(VERSION)
    tree = paths.cache() / "work" / VERSION
    command = [*build.MAKE, "C=2", *OURS]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stderr)
    return done.returncode == 0 and not any(word in done.stderr for word in ("hourglass", "tsq"))


if __name__ == "__main__":
    raise SystemExit(not (checkpatch() and sparse()))
