# SPDX-License-Identifier: Apache-2.0
"""The commands and their options, declared in one place; what each does is in the file of its name."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="hourglass",
    help="The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
kernel_app = typer.Typer(help="Build and list guest kernels.", rich_markup_mode=None, invoke_without_command=True)
app.add_typer(kernel_app, name="kernel")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable."""
    if version:
        from importlib.metadata import version as installed

        print(f"hourglass {installed('hourglass')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("run")
def run(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or the name of a built-in one.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as stack.tsq=off.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    kernel: Annotated[str | None, typer.Option(help="Kernel: 5.10, 6.1, 6.12 or a built name.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; default runs/NAME-HASH.")] = None,
    json: Json = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
) -> None:
    """Run a scenario and show its throughput and latency."""
    from hourglass.cli.run import run_scenario

    run_scenario(scenario, settings or [], seed, kernel, out, json, not no_picture)


@app.command("list")
def list_all() -> None:
    """List scenarios, tests, qdiscs and what else has a name."""
    from hourglass.cli.show import show_list

    show_list()


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A scenario, test, congestion control, qdisc or kernel.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the ip and tc lines a scenario comes to.")] = False,
    json: Json = False,
) -> None:
    """Show what a name stands for.

    For a scenario: every value that a run would use, or with --plan the ip and tc lines it comes to.
    """
    from hourglass.cli.show import show_name

    show_name(name, settings or [], plan, json)


@app.command("compare")
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="Run directories; the first is the base.")],
    out: Annotated[Path | None, typer.Option(help="Draw the runs as candlesticks into this .png or .svg.")] = None,
    json: Json = False,
) -> None:
    """Hold runs against the first of them.

    Prints the figures side by side, with the differences in %; * marks those that are significant.
    """
    from hourglass.cli.compare import compare_runs

    compare_runs(runs, out, json)


@app.command("export")
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the files; default: each run's directory.")] = None,
) -> None:
    """Write runs as Flent data files (.flent.gz)."""
    from hourglass.cli.export import export_runs

    export_runs(runs, out)


@kernel_app.callback()
def kernel_root(context: typer.Context) -> None:
    """Build and list guest kernels."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@kernel_app.command("build")
def kernel_build(
    source: Annotated[str, typer.Argument(metavar="VERSION|PATH", help="5.10, 6.1, 6.12 or a kernel source tree.")],
    name: Annotated[str | None, typer.Option(help="Name for a tree's kernel, to use as --kernel NAME.")] = None,
) -> None:
    """Build a guest kernel."""
    from hourglass.cli.kernel import build_kernel

    build_kernel(source, name)


@kernel_app.command("list")
def kernel_list() -> None:
    """List the guest kernels that are built."""
    from hourglass.cli.kernel import list_kernels

    list_kernels()


@app.command("doctor")
def doctor() -> None:
    """Check what this machine lacks and how to mend it."""
    from hourglass.cli.doctor import examine

    raise typer.Exit(examine())
