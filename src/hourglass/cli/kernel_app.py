# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel …`, the commands and their options; `kernel.py` has what each does."""

from typing import Annotated

import typer

from hourglass.cli.help import Command, Group
from hourglass.cli.options import Variants
from hourglass.contract.kernels import CHOICES

kernel_app = typer.Typer(
    cls=Group,
    help="Build, tune and list guest kernels; print the patch for real ones.",
    epilog="""\
hourglass kernel build 6.12
hourglass kernel build ~/src/linux --name mine""",
    rich_markup_mode=None,
    invoke_without_command=True,
)


@kernel_app.callback()
def kernel_root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@kernel_app.command(
    "build",
    cls=Command,
    epilog="""\
hourglass kernel build 6.12
hourglass kernel build ~/src/linux --name mine""",
)
def kernel_build(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|PATH", help=f"{CHOICES}, all, or the path of a kernel source tree.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the tree's kernel, for --kernel NAME.")
    ] = None,
) -> None:
    """Build a guest kernel, or all named ones."""
    from hourglass.cli.kernel import build_kernels

    build_kernels(source, name)


@kernel_app.command("tune", cls=Command, epilog="hourglass kernel tune 6.1")
def kernel_tune(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help=f"{CHOICES}, or names given to `kernel build`.")
    ] = None,
) -> None:
    """Build kernels with PGO: runs take less time and give the same records. Without names: those built so far."""
    from hourglass.cli.kernel import tune_kernels

    tune_kernels(names or [])


@kernel_app.command(
    "patch",
    cls=Command,
    epilog="""hourglass kernel patch 6.12 > tsq.patch
hourglass kernel patch ~/src/linux > tsq.patch""",
)
def kernel_patch(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|PATH", help=f"{CHOICES}, or the path of a kernel source tree.")
    ],
) -> None:
    """Print the patch that gives a real kernel the sysctls of `stack.tsq` and `stack.gso`, for git am or patch -p1."""
    from hourglass.cli.kernel import print_patch

    print_patch(source)


@kernel_app.command("list", cls=Command, epilog="hourglass kernel list")
def kernel_list(variants: Variants = False) -> None:
    """List the guest kernels built so far."""
    from hourglass.cli.kernel import list_kernels

    list_kernels(variants)
