# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel …`, the commands and their options; `kernel.py` has what each does."""

from pathlib import Path
from typing import Annotated

import typer

from hourglass.cli.help import Command, Group
from hourglass.cli.options import TREES, Bounds, Jobs, Json, Junit, Seed, Settings, Variants, whole
from hourglass.contract.kernels import CHOICES, DEFAULT

kernel_app = typer.Typer(
    cls=Group,
    help="Build, tune and list guest kernels; print the patch for real ones; begin a congestion control.",
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
        str, typer.Argument(metavar="VERSION|TREE", help=f"{CHOICES}, all, or DIR, DIR@REVISION, NAME+FILE.patch.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the tree's kernel, for --kernel NAME.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Of the release that Debian's suite has now, if the hooks fit.")
    ] = False,
) -> None:
    """Build a guest kernel, or all named ones."""
    from hourglass.cli.kernel import build_kernels

    build_kernels(source, name, update)


@kernel_app.command(
    "ab",
    cls=Command,
    epilog="""\
hourglass kernel ab 6.1 6.12
hourglass kernel ab ~/linux@HEAD ~/linux L100M rtt-fair --set stack.cc=bbr
hourglass kernel ab 6.12 6.12+my.patch --junit moved.xml
hourglass kernel ab before/my_cc.c my_cc.c --kernel 6.12""",
)
def kernel_ab(
    first: Annotated[
        str, typer.Argument(metavar="A", help=f"{TREES} Or a congestion control or qdisc: a C file, a folder.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENARIO...]", help="Default: five built-in ones.")
    ] = None,
    settings: Settings = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", parser=whole("--seeds"), help="Runs of each scenario and kernel.")
    ] = 5,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Of files: the kernel that has them; default: {DEFAULT}.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Of files: the scenario's key for them; default: stack.cc, stack.qdisc."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the runs; default: ab.")] = None,
    jobs: Jobs = None,
    junit: Junit = None,
    json: Json = False,
) -> None:
    """Compare two kernels, or versions of a file: what moved, by how much, and where it was first felt.

    Builds both, runs the scenarios with several seeds. Exits with 1 when a figure moved.
    """
    from hourglass.cli.kernel_ab import compare_kernels

    raise typer.Exit(
        compare_kernels(first, second, scenarios or [], settings or [], seeds, kernel, at, out, jobs, junit, json)
    )


@kernel_app.command(
    "bisect",
    cls=Command,
    epilog="""\
hourglass kernel bisect ~/linux v6.1 v6.12 --bound 'ping.icmp.p50 < 9ms'
hourglass kernel bisect ~/linux v6.1 v6.12 net lib --bound 'tcp_rtt.p99 < 9ms'""",
)
def kernel_bisect(
    tree: Annotated[Path, typer.Argument(metavar="DIR", help="A git repository of Linux; it is not changed.")],
    good: Annotated[str, typer.Argument(metavar="GOOD", help="A revision that keeps the bounds.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="One that misses one.")],
    within: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Only commits that touch these; default: all.")
    ] = None,
    scenario: Annotated[str, typer.Option(metavar="SCENARIO", help="What is run.")] = "L100M",
    bounds: Bounds = None,
    settings: Settings = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Find the commit from which on a bound is missed.

    Revisions that do not build are skipped. For `git bisect run`: hourglass check SCENARIO --tree DIR.
    """
    from hourglass.cli.kernel_bisect import find_commit

    find_commit(tree, good, bad, within or [], scenario, bounds or [], settings or [], seed, json)


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
hourglass kernel patch ~/src/linux@v6.18 > tsq.patch""",
)
def kernel_patch(
    source: Annotated[
        str, typer.Argument(metavar="VERSION|TREE", help=f"{CHOICES}, or DIR, DIR@REVISION, DIR@REVISION+FILE.patch.")
    ],
) -> None:
    """Print the patch that gives a real kernel the sysctls of `stack.tsq` and `stack.gso`, for git am or patch -p1."""
    from hourglass.cli.kernel import print_patch

    print_patch(source)


@kernel_app.command(
    "new",
    cls=Command,
    epilog="""hourglass kernel new my_cc.c
hourglass kernel new my_cubic.c --from cubic --kernel 6.12
hourglass kernel new my_qdisc.c --from sojourn""",
)
def kernel_new(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Where it goes; what it is called, with .c.")],
    template: Annotated[
        str,
        typer.Option(
            "--from", metavar="NAME", help="aimd, sojourn (a qdisc), or one of the kernel's: cubic, fq_codel."
        ),
    ] = "aimd",
    kernel: Annotated[
        str | None, typer.Option(metavar="VERSION", help=f"Whose, if it is a kernel's: {CHOICES}; default: {DEFAULT}.")
    ] = None,
) -> None:
    """Write a congestion control or a qdisc to begin with, for `stack.cc` or `stack.qdisc`."""
    from hourglass.cli.kernel_new import new

    new(target, template, kernel)


@kernel_app.command(
    "selftests",
    cls=Command,
    epilog="""\
hourglass kernel selftests 6.1
hourglass kernel selftests 7.3 'net/mptcp/*' --seeds 20
hourglass kernel selftests ~/linux@HEAD 'tc-testing/qdiscs/*'""",
)
def kernel_selftests(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=TREES)],
    tests: Annotated[
        list[str] | None, typer.Argument(metavar="[TEST...]", help="Names, or patterns of names; default: all.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", parser=whole("--seeds"), help="Runs of each test.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="For runs and pages; default: selftests.")] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Run a kernel tree's own tests of the network in its guest: net, net/mptcp, net/packetdrill, tc-testing.

    Each in a guest of its own, in virtual time. Exits with 1 when one failed. What was run is not run again.
    """
    from hourglass.cli.kernel_selftests import run_selftests

    raise typer.Exit(run_selftests(kernel, tests or [], seeds, out, jobs, json))


@kernel_app.command("list", cls=Command, epilog="hourglass kernel list")
def kernel_list(variants: Variants = False) -> None:
    """List the guest kernels built so far."""
    from hourglass.cli.kernel import list_kernels

    list_kernels(variants)
