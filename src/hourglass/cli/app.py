# SPDX-License-Identifier: Apache-2.0
"""The commands and their options, declared in one place (`kernel …`: `kernel_app.py`); what each does is in the file of
its name.

`rich_help_panel` is the group under which `--help` lists a command, `epilog` its examples (`help.py`).
"""

from pathlib import Path
from typing import Annotated

import typer

from hourglass.cli.agree_command import EXAMPLES, agree
from hourglass.cli.help import Command, Group
from hourglass.cli.kernel_app import kernel_app
from hourglass.cli.options import (
    RUNS,
    Bounds,
    Engine,
    Jobs,
    Json,
    Junit,
    Kernel,
    NoPicture,
    Packages,
    Seed,
    Settings,
    Source,
    Variants,
)
from hourglass.cli.suite_command import EXAMPLES as SUITE_EXAMPLES
from hourglass.cli.suite_command import suite
from hourglass.contract.capabilities import VIRTUAL

ABOUT = "The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable."
MAKE, LOOK, UNDERSTAND, MANY, KERNELS = (
    "Make a run", "Look things up", "Understand runs", "Many runs", "Kernels",
)  # fmt: skip

app = typer.Typer(
    name="hourglass",
    cls=Group,
    help=ABOUT,
    epilog="""\
hourglass run L100M
hourglass run L100M --set stack.tsq=off --out runs/tsq-off
hourglass list scenarios""",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from hourglass.cli.version import show_version

        show_version()
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(
    "run",
    cls=Command,
    rich_help_panel=MAKE,
    epilog="""\
hourglass run L100M
hourglass run L100M --set stack.tsq=off --seed 2 --kernel 6.12
hourglass run my-office.toml --set 'stack.router.qdisc=cake bandwidth 49mbit'""",
)
def run(
    scenario: Source,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    engine: Engine = VIRTUAL,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run directory; default: runs/NAME-HASH.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another scenario's run in --out.")] = False,
    json: Json = False,
    no_picture: NoPicture = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every line that would be carried out, in order; touch nothing.")
    ] = False,
) -> None:
    """Run a scenario and print its throughput and latency."""
    from hourglass.cli.run import run_scenario

    raise typer.Exit(
        run_scenario(scenario, settings or [], seed, kernel, engine, out, json, not no_picture, force, dry_run)
    )


@app.command(
    "exec",
    cls=Command,
    rich_help_panel=MAKE,
    context_settings={"allow_interspersed_args": False},
    epilog="""\
hourglass exec L100M client -- ping -c 3 server
hourglass exec --seed 2 L100M client -- ping -c 100 -i 0.1 server
hourglass exec --package curl my-office.toml client -- curl -s http://server/""",
)
def execute(
    scenario: Source,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node in which the command runs.")],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.")],
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="ROOT", help="Where it is taken from: debian:12, a folder, an image; default: apps.root."),
    ] = None,
    packages: Packages = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the run in this directory; default: it is not kept.")
    ] = None,
) -> None:
    """Run a command in a node, in virtual time, and print what it prints.

    Options come before SCENARIO. The exit status is the command's. The scenario's programs run beside it, its test does
    not.
    """
    from hourglass.cli.execute import execute as run_command

    raise typer.Exit(run_command(scenario, node, command, settings or [], seed, kernel, root, packages or [], out))


@app.command(
    "shell",
    cls=Command,
    rich_help_panel=MAKE,
    epilog="""\
hourglass shell L100M
hourglass shell --package curl web.toml phone""",
)
def shell(
    scenario: Source,
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="The node in which it runs; default: the test's client.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="ROOT", help="What it sees as /: debian:12, a folder, an image; default: apps.root."),
    ] = None,
    packages: Packages = None,
) -> None:
    """A shell in a node, in real time, beside the scenario's programs and without its test.

    Virtual time goes on as fast as the wall clock, never faster: what happens depends on what you type and when, so no
    two sessions are the same bytes. Nothing is kept. The exit status is the shell's.
    """
    from hourglass.cli.shell import shell as open_shell

    raise typer.Exit(open_shell(scenario, node, settings or [], seed, kernel, root, packages or []))


@app.command(
    "list",
    cls=Command,
    rich_help_panel=LOOK,
    epilog="""\
hourglass list
hourglass list tests""",
)
def list_all(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="scenarios, testbeds, tests, kernels, ccs (congestion controls) or qdiscs; default: all.",
        ),
    ] = None,
    variants: Variants = False,
) -> None:
    """List scenarios, testbeds, tests, kernels, congestion controls and qdiscs."""
    from hourglass.cli.show import show_list

    show_list(kind, variants)


@app.command(
    "show",
    cls=Command,
    rich_help_panel=LOOK,
    epilog="""\
hourglass show tcp_nup
hourglass show L100M --set stack.tsq=off
hourglass show L100M --plan
hourglass show L100M --apply client""",
)
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A scenario or its file, a test, testbed, kernel, congestion control or qdisc."
        ),
    ],
    settings: Settings = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print a scenario's ip and tc lines, and what is sent when.")
    ] = False,
    apply: Annotated[
        str | None,
        typer.Option(
            metavar="NODE|all",
            help="Print sysctl and tc lines that configure a real machine like NODE; or a script for all of them.",
        ),
    ] = None,
    engine: Engine = VIRTUAL,
    json: Json = False,
) -> None:
    """Show a scenario, test, testbed, kernel, congestion control or qdisc.

    For a scenario: every value that a run would use, or with --plan the ip and tc lines it comes to.
    """
    from hourglass.cli.show import show_name

    show_name(name, settings or [], plan, apply, engine, json)


@app.command(
    "doctor",
    cls=Command,
    rich_help_panel=LOOK,
    epilog="hourglass doctor",
)
def doctor() -> None:
    """Check what this machine lacks, and say how to fix it."""
    from hourglass.cli.doctor import examine

    raise typer.Exit(examine())


@app.command(
    "check",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="""\
hourglass check runs/L100M-1234567890 --bound 'ping.icmp.p99 < 20ms'
hourglass check my-office.toml --seed 2 --junit verdicts.xml""",
)
def check(
    targets: Annotated[
        list[str], typer.Argument(metavar="RUN|SCENARIO...", help=f"{RUNS}; or scenarios, which are run.")
    ],
    bounds: Bounds = None,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    engine: Engine = VIRTUAL,
    junit: Junit = None,
    tree: Annotated[
        str | None,
        typer.Option(metavar="TREE", help="Build this kernel first; exit with 125 if it does not build (git bisect)."),
    ] = None,
    json: Json = False,
) -> None:
    """Judge runs by bounds of their figures; exit with 1 when one is missed.

    A scenario is run first, unless its run is there. Its own bounds, [check], come before those given.
    """
    from hourglass.cli.check import check_runs

    raise typer.Exit(check_runs(targets, bounds or [], settings or [], seed, kernel, engine, junit, json, tree))


@app.command(
    "compare",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="""\
hourglass compare runs/A runs/B
hourglass compare sweeps/queues --out queues.png""",
)
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help=f"{RUNS}; the first is the baseline.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw candlesticks: a .png, .svg or .pdf file.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare runs with a baseline.

    Prints figures side by side, with differences from the first run in %; * marks significant ones.
    """
    from hourglass.cli.compare import compare_runs

    compare_runs(runs, out, json)


app.command("agree", cls=Command, rich_help_panel=MANY, epilog=EXAMPLES)(agree)


@app.command(
    "diff",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="""\
hourglass diff runs/A runs/B
hourglass diff runs/A runs/B --json""",
)
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A run directory.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another.")],
    json: Json = False,
) -> None:
    """Find where two runs part: the first packet that fared differently, its layer, its socket.

    Exits with 0 when the records are the same bytes, with 1 when they differ.
    """
    from hourglass.cli.diff import diff_runs

    raise typer.Exit(diff_runs(first, second, json))


@app.command(
    "plot",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="""\
hourglass plot timeseries runs/A --out a.svg
hourglass plot box sweeps/queues""",
)
def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="One of the kinds below, or list.")],
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help=f"{RUNS}.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .png, .svg or .pdf file; default: KIND.png.")
    ] = None,
) -> None:
    """Draw runs: time series, scatter, CDF, boxes, fairness and more."""
    from hourglass.cli.plot import plot_runs

    plot_runs(kind, runs or [], out)


@app.command(
    "report",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="hourglass report runs/A runs/B --out report.html",
)
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help=f"{RUNS}; the first is the baseline.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file; default: report.html.")] = Path(
        "report.html"
    ),
) -> None:
    """Write an HTML report that works offline."""
    from hourglass.cli.report import report_runs

    report_runs(runs, out)


@app.command(
    "export",
    cls=Command,
    rich_help_panel=UNDERSTAND,
    epilog="""\
hourglass export runs/A
hourglass export runs/A --format csv --out tables
hourglass export sweeps/queues --format csv""",
)
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help=f"{RUNS}.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files; default: each run's directory.")
    ] = None,
    kind: Annotated[str, typer.Option("--format", metavar="flent|csv|parquet", help="What is written.")] = "flent",
) -> None:
    """Write runs as Flent data files (.flent.gz), or their figures and series as CSV or Parquet.

    Of a sweep, CSV and Parquet are its table: a row per run.
    """
    from hourglass.cli.export import export_runs

    export_runs(runs, out, kind)


@app.command(
    "sweep",
    cls=Command,
    rich_help_panel=MANY,
    epilog="""\
hourglass sweep queues.toml
hourglass sweep queues.toml -j 4 --keep summary --out sweeps/queues""",
)
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep file (TOML): a scenario and its axes.")],
    jobs: Jobs = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, for example tcp://HOST:8786.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the sweep; default: sweeps/NAME.")] = None,
    keep: Annotated[
        str, typer.Option(metavar="records|summary", help="What to keep of each run: all of it, or its figures.")
    ] = "records",
    engine: Engine = VIRTUAL,
    kernel: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel for all runs.")] = None,
    no_picture: NoPicture = False,
) -> None:
    """Run a grid of scenarios and collect one table.

    Cached runs are reused, so an interrupted sweep resumes.
    """
    from hourglass.cli.sweep import run_sweep

    raise typer.Exit(run_sweep(file, out, jobs, dask, keep, engine, kernel, not no_picture))


@app.command(
    "paper",
    cls=Command,
    rich_help_panel=MANY,
    epilog="""\
hourglass paper A-5a --quick
hourglass paper""",
)
def paper(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE...]", help="Figures, for example A-5a; default: all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed per setting, and only figures with claims.")] = False,
    kernel: Annotated[str | None, typer.Option(metavar="NAME", help="A kernel other than the paper's.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for runs and report; default: papers.")
    ] = None,
    pages: Annotated[Path | None, typer.Option(metavar="DIR", help="Copy the pages and their pictures to DIR.")] = None,
    jobs: Jobs = None,
) -> None:
    """Reproduce the papers' figures and check their claims."""
    from hourglass.cli.paper import run_papers

    run_papers(ids or [], quick, kernel, out, jobs, pages)


app.command("suite", cls=Command, rich_help_panel=MANY, epilog=SUITE_EXAMPLES)(suite)
app.add_typer(kernel_app, name="kernel", rich_help_panel=KERNELS)
