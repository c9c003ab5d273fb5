# SPDX-License-Identifier: Apache-2.0
"""The commands, each with its group in `--help` and the function that declares it and carries it out. A function is
imported when its command is called."""

from typing import Annotated

import typer

from hourglass.cli.help import HELP_NAMES, Commands, LazyGroup

MAKE, LOOK, UNDERSTAND, MANY, KERNELS = (
    "Make a run", "Look something up", "Understand runs", "Many runs", "Kernels",
)  # fmt: skip
HIDDEN = ""
"""The group of commands of earlier releases."""

COMMANDS: Commands = {
    "run": (MAKE, "run:run"),
    "exec": (MAKE, "execute:execute"),
    "box": (MAKE, "box_command:box_command"),
    "list": (LOOK, "show:show_list"),
    "show": (LOOK, "show:show_name"),
    "doctor": (LOOK, "doctor:examine"),
    "check": (UNDERSTAND, "check:check"),
    "compare": (UNDERSTAND, "compare:compare_command"),
    "diff": (UNDERSTAND, "diff:diff"),
    "explain": (UNDERSTAND, "explain:explain"),
    "plot": (UNDERSTAND, "plot:plot"),
    "report": (UNDERSTAND, "report:report"),
    "export": (UNDERSTAND, "export:export"),
    "study": (MANY, "study:study"),
    "score": (MANY, "score_command:score"),
    "search": (MANY, "search_command:search"),
    "tune": (MANY, "tune_command:tune"),
    "mcp": (MANY, "mcp_server:mcp"),
    "shell": (HIDDEN, "earlier:shell"),
    "sweep": (HIDDEN, "earlier:sweep"),
    "suite": (HIDDEN, "earlier:suite"),
    "agree": (HIDDEN, "earlier:agree"),
    "paper": (HIDDEN, "earlier:paper"),
}
KERNEL: Commands = {
    "build": ("Commands", "kernel:build_kernels"),
    "bisect": ("Commands", "kernel_bisect:find_commit"),
    "tune": ("Commands", "kernel:tune_kernels"),
    "patch": ("Commands", "kernel:print_patch"),
    "check-hooks": ("Commands", "kernel:check_hooks"),
    "new": ("Commands", "kernel_new:kernel_new"),
    "selftests": ("Commands", "kernel_selftests:run_selftests"),
    "source": ("Commands", "kernel_cache:copy_source"),
    "remove": ("Commands", "kernel_cache:remove_kernels"),
    "ab": (HIDDEN, "earlier:kernel_ab"),
    "list": (HIDDEN, "earlier:kernel_list"),
}


LINK: Commands = {"from": ("Commands", "link_command:link_from")}


class RootGroup(LazyGroup):
    """The commands of `hourglass`."""

    table = COMMANDS


class KernelGroup(LazyGroup):
    """The commands of `hourglass kernel`."""

    table = KERNEL


class LinkGroup(LazyGroup):
    """The commands of `hourglass link`."""

    table = LINK


app = typer.Typer(
    name="hourglass",
    cls=RootGroup,
    help="The real Linux network stack in virtual time: throughput and latency under load, exact and repeatable.",
    epilog="""\
hourglass run L100M
hourglass run L100M --set stack.tsq=off --out runs/tsq-off
hourglass list scenarios""",
    context_settings=HELP_NAMES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
)
kernel_app = typer.Typer(
    cls=KernelGroup,
    help="Build, tune and test guest kernels; print the patch for real ones; write a congestion control.",
    epilog="""\
hourglass kernel build 6.12
hourglass kernel build ~/src/linux --name mine""",
    context_settings=HELP_NAMES,
    rich_markup_mode=None,
    invoke_without_command=True,
)
link_app = typer.Typer(
    cls=LinkGroup,
    help="Estimate a link from measurements of real traffic.",
    epilog="""\
hourglass link from upload.pcap --scenario my-link.toml""",
    context_settings=HELP_NAMES,
    rich_markup_mode=None,
    invoke_without_command=True,
)
app.add_typer(kernel_app, name="kernel", rich_help_panel=KERNELS)
app.add_typer(link_app, name="link", rich_help_panel=UNDERSTAND)


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


@link_app.callback()
@kernel_app.callback()
def group_root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
