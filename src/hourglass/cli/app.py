# SPDX-License-Identifier: Apache-2.0
"""The commands and their options, declared in one place; what each does is in the file of its name."""

from pathlib import Path
from typing import Annotated

import typer

from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.kernels import CHOICES

app = typer.Typer(
    name="hourglass",
    help="The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
kernel_app = typer.Typer(help="Build and list guest kernels.", rich_markup_mode=None, invoke_without_command=True)
app.add_typer(kernel_app, name="kernel")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on stdout.")]

Engine = Annotated[str, typer.Option(help="virtual: a guest kernel in virtual time; native: this machine's kernel.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable."""
    if version:
        from hourglass.resources import version as installed

        print(f"hourglass {installed()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("run")
def run(
    scenario: Annotated[str, typer.Argument(help="A scenario file or the name of a built-in scenario.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, for example stack.tsq=off.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness.")] = None,
    kernel: Annotated[str | None, typer.Option(help=f"Kernel: {CHOICES}, or a name given to `kernel build`.")] = None,
    engine: Engine = VIRTUAL,
    out: Annotated[Path | None, typer.Option(help="Run directory; default: runs/NAME-HASH.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another scenario's run in --out.")] = False,
    json: Json = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Skip the picture.")] = False,
) -> None:
    """Run a scenario and print its throughput and latency."""
    from hourglass.cli.run import run_scenario

    raise typer.Exit(run_scenario(scenario, settings or [], seed, kernel, engine, out, json, not no_picture, force))


@app.command("list")
def list_all() -> None:
    """List scenarios, tests, congestion controls, qdiscs and kernels."""
    from hourglass.cli.show import show_list

    show_list()


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A scenario, test, congestion control, qdisc or kernel.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the ip and tc lines of the scenario.")] = False,
    apply: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Print sysctl and tc lines that configure a real machine like NODE."),
    ] = None,
    engine: Engine = VIRTUAL,
    json: Json = False,
) -> None:
    """Show a scenario, test, congestion control, qdisc or kernel.

    For a scenario: every value that a run would use, or with --plan the ip and tc lines it comes to.
    """
    from hourglass.cli.show import show_name

    show_name(name, settings or [], plan, apply, engine, json)


@app.command("compare")
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN RUN...", help="Run directories or .flent.gz files; the first is the baseline."),
    ],
    out: Annotated[Path | None, typer.Option(help="Also draw candlesticks: a .png, .svg or .pdf file.")] = None,
    json: Json = False,
) -> None:
    """Compare runs with a baseline.

    Prints figures side by side, with differences from the first run in %; * marks significant ones.
    """
    from hourglass.cli.compare import compare_runs

    compare_runs(runs, out, json)


@app.command("plot")
def plot(
    kind: Annotated[str, typer.Argument(help="The kind of picture; `hourglass plot list` lists them.")],
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help="Run directories.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file: .png, .svg or .pdf; default: KIND.png.")] = None,
) -> None:
    """Draw runs: time series, scatter, CDF, boxes, fairness and more."""
    from hourglass.cli.plot import plot_runs

    plot_runs(kind, runs or [], out)


@app.command("report")
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run directories or .flent.gz files; the first is the baseline."),
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
) -> None:
    """Write an HTML report that works offline."""
    from hourglass.cli.report import report_runs

    report_runs(runs, out)


@app.command("sweep")
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep file (TOML): a scenario and its axes.")],
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Parallel runs; default: one per CPU.")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, for example tcp://HOST:8786.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the sweep; default: sweeps/NAME.")] = None,
    keep: Annotated[str, typer.Option(help="What to keep of each run: records or summary.")] = "records",
    engine: Engine = VIRTUAL,
    kernel: Annotated[str | None, typer.Option(help="Kernel for all runs.")] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Skip the picture.")] = False,
) -> None:
    """Run a grid of scenarios and collect one table.

    Cached runs are reused, so an interrupted sweep resumes.
    """
    from hourglass.cli.sweep import run_sweep

    raise typer.Exit(run_sweep(file, out, jobs, dask, keep, engine, kernel, not no_picture))


@app.command("paper")
def paper(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="Figures, for example A-5a; default: all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed per setting, and only figures with claims.")] = False,
    kernel: Annotated[str | None, typer.Option(help="A kernel other than the paper's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for runs and report; default: papers.")] = None,
    pages: Annotated[Path | None, typer.Option(metavar="DIR", help="Copy the pages and their pictures to DIR.")] = None,
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Parallel runs; default: one per CPU.")] = None,
) -> None:
    """Reproduce the papers' figures and check their claims."""
    from hourglass.cli.paper import run_papers

    run_papers(ids or [], quick, kernel, out, jobs, pages)


@app.command("export")
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the files; default: each run's directory.")] = None,
    kind: Annotated[str, typer.Option("--format", help="Format: flent, csv or parquet.")] = "flent",
) -> None:
    """Write runs as Flent data files (.flent.gz), or their figures and series as CSV or Parquet."""
    from hourglass.cli.export import export_runs

    export_runs(runs, out, kind)


@kernel_app.callback()
def kernel_root(context: typer.Context) -> None:
    """Build and list guest kernels."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@kernel_app.command("build")
def kernel_build(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|PATH", help=f"{CHOICES}, all, or the path of a kernel source tree.")
    ],
    name: Annotated[str | None, typer.Option(help="Name of the tree's kernel, for --kernel NAME.")] = None,
) -> None:
    """Build a guest kernel, or all named ones."""
    from hourglass.cli.kernel import build_kernels

    build_kernels(source, name)


@kernel_app.command("list")
def kernel_list() -> None:
    """List the guest kernels built so far."""
    from hourglass.cli.kernel import list_kernels

    list_kernels()


@app.command("doctor")
def doctor() -> None:
    """Check what this machine lacks, and say how to fix it."""
    from hourglass.cli.doctor import examine

    raise typer.Exit(examine())
