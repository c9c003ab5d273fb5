# SPDX-License-Identifier: Apache-2.0
"""`python -m hourglass.engine.kernel.patched [NAME|PATH]...`: compiles net/ipv4 of patched kernels for real machines.

For x86-64 and, with longs of 32 bits, for i386; warnings are errors. By the kernels' own make, with a configuration
that has no more than it takes. The sources lack tools/: objtool, which only looks at what was compiled, is left out.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hourglass import locks
from hourglass.contract.kernels import KERNELS, VARIANT
from hourglass.engine import paths
from hourglass.engine.kernel import build, ccache, config, hooks, patch, worktree
from hourglass.errors import HourglassError, program

ARCHITECTURES = {"x86_64": "y", "i386": "n"}
"""ARCH of make → CONFIG_64BIT."""

CHOSEN = (
    "MULTIUSER", "NET", "INET", "IPV6", "NAMESPACES", "NET_NS", "SYSCTL", "PROC_FS", "PROC_SYSCTL",
    "IP_ADVANCED_ROUTER", "INET_DIAG", "TCP_CONG_ADVANCED", "TCP_CONG_BBR", "KUNIT", "TCP_TSQ_KUNIT_TEST",
)  # fmt: skip

NO_OBJTOOL = ("CONFIG_OBJTOOL=", "CONFIG_STACK_VALIDATION=", "CONFIG_UNWINDER_ORC=")

CHANGED = tuple(
    f"net/{name}.o"
    for name in ("core/net_namespace", "ipv4/sysctl_net_ipv4", "ipv4/tcp_ipv4", "ipv4/tcp_output", "ipv4/tcp_tsq_test")
)
"""What the patch itself changes."""

ALL = (*CHANGED, "net/ipv4/")


def compile_patched(name: str, architecture: str, targets: Sequence[str], say: patch.Say) -> None:
    """Compiles targets of a patched kernel of the list, or of a tree of the user's.

    Raises HourglassError with the compiler's words.
    """
    folder = paths.cache() / "work" / f"{Path(name).name}{VARIANT}patched"
    busy = f"waiting for another process that compiles a patched Linux {name}"
    lock = locks.held(folder.with_name(f"{folder.name}.lock"), lambda: say(busy))
    with patch.pristine(name, say) as pristine, lock, emptied(folder):
        tree, built = folder / "tree", folder / "built"
        worktree.link_tree(pristine, tree)
        hooks.lay(patch.changed(tree), tree)
        built.mkdir()
        wanted = {f"CONFIG_{option}": "y" for option in CHOSEN} | {"CONFIG_64BIT": ARCHITECTURES[architecture]}
        (built / "wanted").write_text(config.render(wanted))
        make = ["make", "-s", f"-j{len(os.sched_getaffinity(0))}", f"ARCH={architecture}", f"O={built}"]
        run([*make, "allnoconfig", f"KCONFIG_ALLCONFIG={built}/wanted"], tree)
        lost = config.lost(wanted, config.parse((built / ".config").read_text()))
        if lost := [option for option in lost if build.declared(tree, option)]:
            raise HourglassError(f"Linux {name} for {architecture} does not take: {', '.join(lost)}")
        say(f"compiling {' '.join(targets)} of Linux {name} for {architecture}")
        run([*make, "KCFLAGS=-Werror", *NO_OBJTOOL, *targets], tree)


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """The folder is there, empty, and gone afterwards. Always the same, so that ccache knows its files again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(command: Sequence[str], tree: Path) -> None:
    """Runs make; raises HourglassError with what it says when it fails."""
    done = subprocess.run(command, cwd=tree, env=ccache.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise HourglassError("\n".join([" ".join(command), *done.stderr.splitlines()[-20:]]))


def main() -> None:
    """Compiles all of net/ipv4 of the kernels that are named, or of all of the list."""
    for name in sys.argv[1:] or KERNELS:
        for architecture in ARCHITECTURES:
            compile_patched(name, architecture, ALL, lambda text: print(text, flush=True))


if __name__ == "__main__":
    program(main)
