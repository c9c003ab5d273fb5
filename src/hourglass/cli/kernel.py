# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel build`, `tune`, `list` and `patch`."""

import sys

from rich.table import Table

from hourglass.cli import output, progress
from hourglass.contract.kernels import DEFAULT, KERNELS, VARIANT
from hourglass.engine.kernel import patch, store
from hourglass.engine.kernel.build import build
from hourglass.engine.kernel.built import BuiltKernel


def build_kernels(source: str, name: str | None, update: bool = False) -> None:
    """Builds a kernel, or "all" of the list, and says what each is called."""
    for one in KERNELS if source == "all" else [source]:
        with progress.shown() as shown:
            built = build(one, name, progress=shown.kernel, update=update)
        told(built)


def tune_kernels(names: list[str]) -> None:
    """Tunes kernels; without names those of the list that were built, or else the default one."""
    for name in names or [kernel.name for kernel in store.kernels() if kernel.name in KERNELS] or [DEFAULT]:
        with progress.shown() as shown:
            built = store.ensure(name, progress=shown.kernel, tuned=True)
        told(built)
        if not built.tuned:
            why = "with PGO its packets would have other IP identifications (docs/model.md)"
            output.show(f"Linux {built.release} stays plain: {why}", whole_lines=True)


def told(kernel: BuiltKernel) -> None:
    """Says what a kernel is called."""
    output.show(
        f"kernel {kernel.name}: Linux {kernel.release}, {state(kernel)}, key {kernel.key[:12]}; "
        f"use it with --kernel {kernel.name}",
        whole_lines=True,
    )


def state(kernel: BuiltKernel) -> str:
    """How it was built."""
    return "tuned" if kernel.tuned else "plain"


def print_patch(source: str) -> None:
    """Prints the patch for a kernel, byte by byte as it has to be; progress goes to standard error."""
    with progress.shown() as shown:
        made = patch.patch(source, lambda text: shown.kernel(0.0, text))
    sys.stdout.buffer.write(made.encode("utf-8", "surrogateescape"))


def list_kernels(variants: bool) -> None:
    """The built kernels, those for tests only with `variants`; or how to get one."""
    kernels = [one for one in store.kernels() if variants or VARIANT not in one.name]
    if kernels:
        output.show(table(kernels))
    else:
        output.show(
            f"no kernel built yet; `hourglass run` builds the one it needs, or: hourglass kernel build {DEFAULT}",
            whole_lines=True,
        )


def table(kernels: list[BuiltKernel]) -> Table:
    """Name, release, timer frequency and key of each kernel, and whether it is tuned."""
    result = output.bare()
    result.add_column("kernel", overflow="fold")
    for header in ("release", "HZ", "key", "built"):
        result.add_column(header, no_wrap=True)
    for kernel in kernels:
        result.add_row(kernel.name, kernel.release, str(kernel.hz), kernel.key[:12], state(kernel))
    return result
