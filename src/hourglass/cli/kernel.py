# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel build` and `hourglass kernel list`."""

from rich.table import Table

from hourglass.cli import output, progress
from hourglass.contract.kernels import DEFAULT, KERNELS, VARIANT
from hourglass.engine.kernel import store
from hourglass.engine.kernel.build import build
from hourglass.engine.kernel.built import BuiltKernel


def build_kernels(source: str, name: str | None) -> None:
    """Builds a kernel, or "all" of the list, and says what each is called."""
    for one in KERNELS if source == "all" else [source]:
        build_kernel(one, name)


def build_kernel(source: str, name: str | None) -> None:
    """Builds a kernel and says what it is called."""
    with progress.shown() as shown:
        built = build(source, name, progress=shown.kernel)
    output.show(
        f"kernel {built.name}: Linux {built.release}, key {built.key[:12]}; use it with --kernel {built.name}",
        whole_lines=True,
    )
    if built.untuned:
        output.show(f"built without PGO, so runs take longer: {built.untuned}", whole_lines=True)


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
    """Name, release, timer frequency and key of each kernel."""
    result = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("kernel", "release", "HZ", "key"):
        result.add_column(header, no_wrap=True)
    for kernel in kernels:
        result.add_row(kernel.name, kernel.release, str(kernel.hz), kernel.key[:12])
    return result
