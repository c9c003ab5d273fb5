# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, and how their values are read."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from hourglass.contract.kernels import CHOICES
from hourglass.errors import InputError


def whole(option: str) -> Callable[[str], int]:
    """What reads an option's whole number."""

    def read(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise InputError(option, text, "a whole number") from None

    return read


def writable(option: str) -> Callable[[Path | None], Path | None]:
    """What refuses a file that cannot be written, before anything is run for it."""

    def check(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.is_dir():
            raise InputError(option, str(path), "is a folder; give the name of a file")
        try:
            with tempfile.TemporaryFile(dir=next(one for one in path.absolute().parents if one.exists())):
                return path
        except OSError as error:
            raise InputError(option, str(path), f"cannot be written: {error.strerror or error}") from None

    return check


def builtin(begun: str) -> list[str]:
    """For a shell's completion: the built-in scenarios that begin so."""
    from hourglass.resources import SCENARIOS

    return sorted(name for path in SCENARIOS.glob("*.toml") if (name := path.stem).startswith(begun))


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on stdout.")]
Engine = Annotated[
    str,
    typer.Option(metavar="virtual|native|ssh", help="A guest kernel in virtual time, or this machine's own kernel."),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--bound", metavar="BOUND", help="As 'ping.icmp.p99 < 20ms'; as often as needed."),
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", metavar="N", parser=whole("-j"), help="Parallel runs; default: one per CPU."),
]
Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=writable("--junit"), help="Also write the verdicts as JUnit XML."),
]
Kernel = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"{CHOICES}, or a name given to `hourglass kernel build`.")
]
NoPicture = Annotated[bool, typer.Option("--no-picture", help="Skip the picture.")]
Packages = Annotated[
    list[str] | None,
    typer.Option("--package", metavar="NAME", help="A Debian package that the root has, too; as often as needed."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", parser=whole("--seed"), help="Seed of all randomness, a whole number.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario; as often as needed."),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file or the name of a built-in scenario.", autocompletion=builtin
    ),
]
Variants = Annotated[bool, typer.Option("--all", help="Kernels' variants for tests, such as 6.1+kunit, too.")]
TREES = "A kernel's name, a folder, DIR@REVISION, or one of the list with +FILE.patch."
RUNS = "Run directories, folders of sweeps (all their runs), or .flent.gz files"
