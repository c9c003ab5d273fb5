# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel source` and `remove`: copy a listed kernel's source; free the room of a kernel."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from hourglass import files
from hourglass.builders.kernel import registry, source_tree
from hourglass.cli import output, progress
from hourglass.cli.help import examples
from hourglass.contract.kernels import CHOICES, SUITES
from hourglass.errors import InputError, closest


@examples("""\
hourglass kernel source 6.12 linux""")
def copy_source(
    kernel: Annotated[str, typer.Argument(metavar="VERSION", help=f"{CHOICES}.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the source.")],
) -> None:
    """Copy the source of a kernel, so that you can change and build it."""
    if kernel not in SUITES:
        raise InputError("VERSION", kernel, f"{closest(kernel, SUITES)}A version is one of {CHOICES}")
    if target.exists():
        raise InputError("DIR", str(target), "exists; name a new folder")
    with progress.display() as display:
        tree = source_tree.packaged(kernel, lambda text: display.kernel(0.0, text)).tree
        display.kernel(0.5, f"copying to {target}")
        with files.output_errors(target, "the source"), files.replacing(target) as fresh:
            shutil.copytree(tree, fresh, symlinks=True)
    output.show(
        f"{target}: the source of Linux {kernel}; build your changes with: "
        f"hourglass kernel build {target} --name my-{kernel}",
        whole_lines=True,
    )


@examples("""\
hourglass kernel remove mine""")
def remove_kernels(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names from `hourglass list kernels`.")],
) -> None:
    """Remove kernels and their object files from the cache."""
    for name in names:
        freed = registry.remove(name)
        output.show(f"kernel {name}: removed, {freed / 1e6:.0f} MB", whole_lines=True)
