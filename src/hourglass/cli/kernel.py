# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass kernel build`, `tune`, `list` and `patch`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hourglass.builders.kernel import hooks, patch, registry
from hourglass.builders.kernel.builder import build
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.cli import output, progress
from hourglass.cli.help import examples
from hourglass.contract.kernels import CHOICES, DEFAULT, KERNELS, VARIANT
from hourglass.engine.virtual import train


@examples("""\
hourglass kernel build 6.12
hourglass kernel build ~/src/linux --name mine""")
def build_kernels(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|TREE", help=f"{CHOICES}, all, or DIR, DIR@REVISION, NAME+FILE.patch.")
    ],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the built tree, for --kernel NAME.")] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Build the newest release of Debian's suite, if the hooks match it.")
    ] = False,
) -> None:
    """Build a guest kernel, or all listed ones."""
    for spec in KERNELS if source == "all" else [source]:
        with progress.display() as display:
            built = build(spec, name, progress=display.kernel, update=update)
        show_use(built)


@examples("""\
hourglass kernel tune 6.1""")
def tune_kernels(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help=f"{CHOICES}, or names given to `kernel build`.")
    ] = None,
) -> None:
    """Build kernels with PGO: runs take less time and give the same records. Default: all built kernels."""
    for name in names or [kernel.name for kernel in registry.kernels() if kernel.name in KERNELS] or [DEFAULT]:
        with progress.display() as display:
            built = registry.ensure(name, progress=display.kernel, trainer=train)
        show_use(built)
        if not built.tuned:
            reason = "with PGO its packets would have other IP identifications (docs/explanation/model.md)"
            output.show(f"Linux {built.release} stays plain: {reason}", whole_lines=True)


def show_use(kernel: BuiltKernel) -> None:
    """Print a kernel's name and how to use it."""
    output.show(
        f"kernel {kernel.name}: Linux {kernel.release}, {state(kernel)}, key {kernel.key[:12]}; "
        f"use it with --kernel {kernel.name}",
        whole_lines=True,
    )


def state(kernel: BuiltKernel) -> str:
    """Return "tuned" or "plain"."""
    return "tuned" if kernel.tuned else "plain"


@examples("""\
hourglass kernel patch 6.12 > tsq.patch
hourglass kernel patch ~/src/linux@v6.18 > tsq.patch""")
def print_patch(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|TREE", help=f"{CHOICES}, or DIR, DIR@REVISION, DIR@REVISION+FILE.patch.")
    ],
) -> None:
    """Print the patch that gives a real kernel the sysctls of `stack.tsq` and `stack.gso`, for git am or patch -p1."""
    with progress.display() as display:
        text = patch.patch(source, lambda step: display.kernel(0.0, step))
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))


@examples("""\
hourglass kernel check-hooks ~/src/linux""")
def check_hooks(
    tree: Annotated[Path, typer.Argument(metavar="DIR", help="An unpacked kernel tree; it is not changed.")],
) -> int:
    """Check whether all hooks apply to a kernel tree, without compiling it.

    Prints a line for each edit that does not apply. Exits with 1 if there is one.
    """
    problems = hooks.check(tree)
    for problem in problems:
        output.show(problem, whole_lines=True)
    if not problems:
        output.show(f"all hooks apply to Linux {hooks.release(tree)}", whole_lines=True)
    return int(bool(problems))


def table(variants: bool) -> Table:
    """Return a table with name, release, timer frequency, key and state of each kernel, those for tests only with
    `variants`."""
    kernels = [kernel for kernel in registry.kernels() if variants or VARIANT not in kernel.name]
    result = output.bare()
    result.add_column("kernel", overflow="fold")
    for header in ("release", "HZ", "key", "built"):
        result.add_column(header, no_wrap=True)
    for kernel in kernels:
        result.add_row(kernel.name, kernel.release, str(kernel.hz), kernel.key[:12], state(kernel))
    for name in KERNELS:
        if name not in {kernel.name for kernel in kernels}:
            result.add_row(name, "-", "-", "-", "on first use")
    return result
