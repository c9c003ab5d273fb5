# SPDX-License-Identifier: Apache-2.0
"""The commands of earlier releases: each prints the command that replaces it, and runs it. The next release removes
this module."""

import runpy
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hourglass.cli.help import examples
from hourglass.cli.options import Jobs, Json, Junit, Kernel, Settings, integer
from hourglass.contract.capabilities import VIRTUAL
from hourglass.errors import InputError

PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
"""Click's settings of a command that passes its words on."""


def call(words: Sequence[object]) -> int:
    """Print a command and run it. Return its exit status."""
    from hourglass.cli.commands import app

    command = [str(word) for word in words]
    notice(command)
    return int(app(command, prog_name="hourglass", standalone_mode=False) or 0)


def notice(words: Sequence[str]) -> None:
    """Print the command that replaces an earlier one."""
    print(f"hourglass: now: hourglass {shlex.join(words)}", file=sys.stderr)


def options(**values: object) -> list[object]:
    """Return options as words: those that are set."""
    words: list[object] = []
    for name, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            if item not in (None, False):
                words += [f"--{name}", *([] if item is True else [item])]
    return words


def _renamed(*words: str) -> Callable[[typer.Context], int]:
    """Return a command that passes its words on to another."""

    @examples("", **PASSED_ON)
    def renamed(context: typer.Context) -> int:
        return call([*words, *context.args])

    return renamed


sweep = _renamed("study")
suite = _renamed("study")
shell = _renamed("exec", "-it")
kernel_list = _renamed("list", "kernels")


@examples("", **PASSED_ON)
def paper(context: typer.Context) -> None:
    """Earlier name of `python -m papers`, which a checkout has."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "papers/__main__.py").is_file():
        raise InputError("COMMAND", "paper", "is `python -m papers` now, in a checkout of Hourglass")
    print(f"hourglass: now: {shlex.join(['python', '-m', 'papers', *context.args])}", file=sys.stderr)
    sys.path.insert(0, str(checkout))
    sys.argv = ["papers", *context.args]
    runpy.run_module("papers", run_name="__main__")


def agree(
    cases: Annotated[str, typer.Argument(metavar="CASES|SCENARIO", help="A file of cases, or one scenario.")],
    settings: Settings = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="Engine of the real runs.")] = "native",
    kernel: Kernel = None,
    within: Annotated[list[str] | None, typer.Option(metavar="FIGURE=%", help="Tolerance of a figure.")] = None,
    least: Annotated[int, typer.Option(metavar="N", help="Minimum number of runs of a case.")] = 6,
    most: Annotated[int, typer.Option(metavar="N", help="Maximum number of runs of a case.")] = 15,
    wire: Annotated[bool, typer.Option("--wire", help="Use modelled NICs in the guest.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the runs.")] = Path("runs/agree"),
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    json: Json = False,
) -> int:
    """Earlier name of `hourglass compare --vary engine=virtual,native`, or of `hourglass study` for a file of cases."""
    from hourglass.cli.study import is_study

    words = options(set=settings, kernel=kernel, seeds=f"1-{most}", out=out, page=page, json=json)
    is_file = is_study(cases)
    if least != 6 or (is_file and (within or wire or engine != "native")):
        raise InputError("CASES", cases, "--within, --wire, --engine and --least are keys of a study: see --rewrite")
    if is_file:
        return call(["study", cases, *words])
    varied = ["--vary", f"engine={VIRTUAL},{engine}", *options(tolerance=within, wire=wire)]
    return call(["compare", cases, *varied, *words])


def kernel_ab(
    first: Annotated[str, typer.Argument(metavar="A", help="A kernel, or a file or folder of C code.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another kernel, file or folder.")],
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO...]", help="The scenarios.")] = None,
    settings: Settings = None,
    seeds: Annotated[int, typer.Option(metavar="N", parser=integer("--seeds"), help="Number of seeds.")] = 5,
    kernel: Kernel = None,
    at: Annotated[str | None, typer.Option(metavar="KEY", help="The key of the files in the scenario.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the runs.")] = None,
    jobs: Jobs = None,
    junit: Junit = None,
    json: Json = False,
) -> int:
    """Earlier name of `hourglass compare --vary kernel=A,B`, or of a key with two files."""
    from hourglass.scenario import module

    kind = module.kind(first)
    key = at or (f"stack.{kind}" if kind else "kernel")
    words = options(set=settings, seeds=f"1-{seeds}", kernel=kernel, out=out, jobs=jobs, junit=junit, json=json)
    return call(["compare", *(scenarios or []), "--vary", f"{key}={first},{second}", *words])
