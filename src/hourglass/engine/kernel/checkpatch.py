# SPDX-License-Identifier: Apache-2.0
"""`python -m hourglass.engine.kernel.checkpatch`: the kernel's own style check over the C files of kernel/.

The script comes with the kernel's sources, which are fetched if they are not there.
"""

import subprocess
import sys

from hourglass.engine import paths
from hourglass.engine.kernel import source

IGNORED = {
    "SPDX_LICENSE_TAG": "without the script's own tree it cannot look licences up",
    "LINUX_VERSION_CODE": "one driver serves several kernels",
    "CONSTANT_COMPARISON": "it takes KERNEL_VERSION() for a constant on the wrong side",
}


def main() -> int:
    """The script's exit status."""
    folders = [paths.KERNEL / name for name in ("hooks", "drivers", "tests")]
    files = sorted(str(path) for folder in folders for path in folder.rglob("*.[ch]"))
    tree = source.packaged("6.1", lambda text: print(text, file=sys.stderr)).tree
    rules = ["--no-tree", "--strict", "--terse", "--quiet", "--no-summary", "--ignore", ",".join(IGNORED)]
    command = ["perl", str(tree / "scripts/checkpatch.pl"), *rules, "--file", *files]
    return subprocess.run(command, check=False).returncode if files else 0


if __name__ == "__main__":
    raise SystemExit(main())
