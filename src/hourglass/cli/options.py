# SPDX-License-Identifier: Apache-2.0
"""Declare options that several commands share, and read their values."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.kernels import CHOICES
from hourglass.errors import InputError


def integer(option: str) -> Callable[[str], int]:
    """Return the parser of an option with an integer."""

    def read(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise InputError(option, text, "must be a whole number") from None

    return read


def writable(option: str) -> Callable[[Path | None], Path | None]:
    """Return the check of an option with a file: it must be writable before any run is made."""

    def check(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.is_dir():
            raise InputError(option, str(path), "is a folder; name a file")
        try:
            with tempfile.TemporaryFile(dir=next(parent for parent in path.absolute().parents if parent.exists())):
                return path
        except OSError as error:
            raise InputError(option, str(path), f"cannot be written: {error.strerror or error}") from None

    return check


def builtin(prefix: str) -> list[str]:
    """Return the built-in scenarios with a prefix, for a shell's completion."""
    from hourglass.resources import SCENARIOS

    return sorted(name for path in SCENARIOS.glob("*.toml") if (name := path.stem).startswith(prefix))


KeptRun = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Store the run in this directory; default: it is deleted.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on stdout.")]
Engine = Annotated[
    str,
    typer.Option(
        metavar="virtual|native|ssh",
        help="virtual: a guest kernel in virtual time. native: this machine's kernel. ssh: remote machines.",
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--bound", metavar="BOUND", help="A bound like 'ping.icmp.p99 < 20ms'; repeatable."),
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", metavar="N", parser=integer("-j"), help="Parallel runs; default: one per CPU."),
]
Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=writable("--junit"), help="Also write the verdicts as JUnit XML."),
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", "--seed", metavar="A-B", help="The seeds of each scenario, one or a range like 11-15."),
]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, for example tcp://HOST:8786.")
]
Force = Annotated[bool, typer.Option("--force", help="Rerun complete runs.")]
Page = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=writable("--page"), help="Also write the page to this HTML file."),
]
Kernel = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"{CHOICES}, or a name given to `hourglass kernel build`.")
]
NoPicture = Annotated[bool, typer.Option("--no-picture", help="Skip the picture.")]
Packages = Annotated[
    list[str] | None,
    typer.Option("--package", metavar="NAME", help="Debian package to add to the root; repeatable."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", parser=integer("--seed"), help="Seed of all randomness, a whole number.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario; repeatable."),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file or the name of a built-in scenario.", autocompletion=builtin
    ),
]
Variants = Annotated[bool, typer.Option("--all", help="Include variants of kernels for tests, such as 6.1+kunit.")]
TREES = "A kernel's name, a folder, DIR@REVISION, or a name with +FILE.patch."
RUNS = "Run directories, folders of sweeps (all their runs), or .flent.gz files"

User = Annotated[
    str | None,
    typer.Option(metavar="USER", help='User of the program; default: an ordinary user. tcpdump and nft need "root".'),
]


def _require_sandbox(required: bool) -> bool:
    if required:
        from hourglass.host.sandbox import REQUIRED

        os.environ[REQUIRED] = "1"
    return required


RequireSandbox = Annotated[
    bool,
    typer.Option(
        "--require-sandbox", callback=_require_sandbox, help="Refuse to run if the host cannot confine the guest."
    ),
]


@dataclass(frozen=True)
class ManyRuns:
    """The options of commands that make many runs."""

    settings: Settings = None
    seeds: Seeds = None
    kernel: Kernel = None
    engine: Engine = VIRTUAL
    jobs: Jobs = None
    dask: Dask = None
    force: Force = False
    json: Json = False
    junit: Junit = None
    require_sandbox: RequireSandbox = False

    @property
    def making(self) -> dict[str, Any]:
        """Return the arguments of the functions that make the runs."""
        return {
            "overrides": self.settings or [], "seeds": seed_list(self.seeds), "kernel": self.kernel,
            "engine": self.engine, "jobs": self.jobs, "dask": self.dask, "force": self.force,
        }  # fmt: skip


def seed_list(seeds: str | None) -> tuple[int, ...]:
    """Return the seeds of `--seeds`. Raises `InputError`."""
    from hourglass.studies.file import seed_range

    try:
        return seed_range(seeds) if seeds is not None else ()
    except ValueError:
        raise InputError("--seeds", seeds, "must be a seed or a range, like 11-15") from None
