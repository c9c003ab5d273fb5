# SPDX-License-Identifier: Apache-2.0
"""Compile net/ipv4 of patched kernels: `python -m hourglass.builders.kernel.patch_check [NAME|PATH]...`.

The targets are x86-64 and, for 32-bit longs, i386; warnings are errors. The kernel's own make builds a minimal
configuration. objtool is disabled: the sources lack tools/, and it only inspects compiled code.
"""

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hourglass import locks
from hourglass.builders.kernel import builder, ccache, config, hooks, patch, worktree
from hourglass.contract.kernels import KERNELS, VARIANT
from hourglass.errors import HourglassError, program
from hourglass.host import directories, hardware, process

ARCHITECTURES = {"x86_64": "y", "i386": "n"}
"""ARCH of make → CONFIG_64BIT."""

OPTIONS = (
    "MULTIUSER", "NET", "INET", "IPV6", "NAMESPACES", "NET_NS", "SYSCTL", "PROC_FS", "PROC_SYSCTL",
    "IP_ADVANCED_ROUTER", "INET_DIAG", "TCP_CONG_ADVANCED", "TCP_CONG_BBR", "KUNIT", "TCP_TSQ_KUNIT_TEST",
)  # fmt: skip

NO_OBJTOOL = ("CONFIG_OBJTOOL=", "CONFIG_STACK_VALIDATION=", "CONFIG_UNWINDER_ORC=")

CHANGED = tuple(
    f"net/{name}.o"
    for name in ("core/net_namespace", "ipv4/sysctl_net_ipv4", "ipv4/tcp_ipv4", "ipv4/tcp_output", "ipv4/tcp_tsq_test")
)
"""The objects of the files that the patch changes."""

ALL = (*CHANGED, "net/ipv4/")


def compile_patched(name: str, architecture: str, targets: Sequence[str], say: patch.Say) -> None:
    """Compile targets of a patched kernel of the list, or of a tree of the user.

    Raises HourglassError with the compiler's messages.
    """
    folder = directories.cache() / "work" / f"{Path(name).name}{VARIANT}patched"
    busy = f"waiting for another process that compiles a patched Linux {name}"
    lock = locks.exclusive(folder.with_name(f"{folder.name}.lock"), lambda: say(busy))
    with patch.pristine(name, say) as pristine, lock, emptied(folder):
        tree, built = folder / "tree", folder / "built"
        worktree.link_tree(pristine, tree)
        hooks.lay(patch.changed(tree), tree)
        built.mkdir()
        options = {f"CONFIG_{option}": "y" for option in OPTIONS} | {"CONFIG_64BIT": ARCHITECTURES[architecture]}
        (built / "options").write_text(config.render(options))
        make = ["make", "-s", f"-j{hardware.cpus()}", f"ARCH={architecture}", f"O={built}"]
        run([*make, "allnoconfig", f"KCONFIG_ALLCONFIG={built}/options"], tree)
        unmet = config.unmet(options, config.parse((built / ".config").read_text()))
        if ignored := [option for option in unmet if builder.declared(tree, option)]:
            raise HourglassError(f"Linux {name} for {architecture} ignores these options: {', '.join(ignored)}")
        say(f"compiling {' '.join(targets)} of Linux {name} for {architecture}")
        run([*make, "KCFLAGS=-Werror", *NO_OBJTOOL, *targets], tree)


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """Provide an empty folder and delete it afterwards. Its path is always the same, so ccache recognises its files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(command: Sequence[str], tree: Path) -> None:
    """Run make. Raises HourglassError with make's messages if it fails."""
    done = process.output_of(command, ccache.environment(), tree)
    if done.returncode:
        raise HourglassError("\n".join([" ".join(command), *done.stderr.splitlines()[-20:]]))


def main() -> None:
    """Compile net/ipv4 of the named kernels, by default of all in the list."""
    for name in sys.argv[1:] or KERNELS:
        for architecture in ARCHITECTURES:
            compile_patched(name, architecture, ALL, lambda text: print(text, flush=True))


if __name__ == "__main__":
    program(main)
