# SPDX-License-Identifier: Apache-2.0
"""The tools of `make check` and `make test`, and the Debian packages that they come in.

`python -m tests.tools` installs all that are missing. If you are not root, it prints the command.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from hourglass.builders import agent, bpf
from hourglass.builders.kernel import recipe
from hourglass.engine import doctor, host_tools, native
from hourglass.errors import program
from hourglass.host import process

TOOLS = native.TOOLS | bpf.TOOLS | recipe.BPF_TOOLS | {
    "chromium": "chromium", "chromedriver": "chromium-driver",
    "file": "file", "git": "git", "gcc": "gcc", "hostname": "hostname", "ps": "procps", "sysctl": "procps",
    "patch": "patch", "nsenter": "util-linux", "setpriv": "util-linux",
    "ssh": "openssh-client", "ssh-keygen": "openssh-client", "sshd": "openssh-server", "sudo": "sudo",
    "reordercap": "wireshark-common", "tshark": "tshark",
    "debootstrap": "debootstrap", "sparse": "sparse",
}  # fmt: skip
"""The programs that checks and tests call, in addition to those that runs need (`hourglass.engine.doctor`)."""

FILES = recipe.BPF_HEADERS | {
    str(bpf.HEADER): bpf.HEADER_PACKAGE,
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": "fonts-dejavu-core",
    "/usr/share/perl/*/Term/ANSIColor.pm": "perl",
}
"""Packages that the tools read: headers for a build with BPF, a font for the browser, a Perl module for checkpatch."""

LINTERS = {"fmt": "rustfmt", "clippy": "clippy"}
"""Commands of cargo → the components of rustup that they need."""


def need(name: str) -> str:
    """Return where a tool is. Skips the test if it is missing."""
    program = shutil.which(name, path=f"{os.environ['PATH']}:{host_tools.SEARCHED}")
    if program is None:
        pytest.skip(f"no {name} here: {host_tools.command([TOOLS[name]])}")
    return program


@cache
def missing() -> list[str]:
    """Return the packages that runs, checks and tests lack."""
    files = [package for pattern, package in FILES.items() if not any(Path("/").glob(pattern.lstrip("/")))]
    return sorted({*doctor.missing_packages(), *process.missing_tools(TOOLS), *files, *linters()})


def linters() -> list[str]:
    """Return the packages of Rust's linters that are missing; they have to be of the compiler's age."""
    if not lacking() or by_rustup():
        return []
    web = agent.package() == "cargo-web"
    return ["rustfmt-web", "rust-web-clippy"] if web else ["rustfmt", "rust-clippy"]


def lacking() -> list[str]:
    """Return cargo's commands that do not work."""
    return [name for name in LINTERS if shutil.which("cargo") is None or not _works("cargo", name, "--version")]


def by_rustup() -> bool:
    """Tell whether the compiler is rustup's."""
    return shutil.which("rustup") is not None and agent.rust_problem() is None


def _works(*arguments: str) -> bool:
    return subprocess.run(arguments, cwd=agent.AGENT, capture_output=True, check=False).returncode == 0


def install() -> None:
    """Install missing tools, or print the command for root. Raises MissingError if not even runs are possible."""
    if os.geteuid() == 0 or doctor.missing_packages():
        host_tools.install(missing())
    elif missing():
        print(line(missing()), file=sys.stderr)
    if (commands := lacking()) and by_rustup():
        subprocess.run(["rustup", "component", "add", *(LINTERS[name] for name in commands)], check=False)


def line(packages: list[str]) -> str:
    """Return what helps those tests that are skipped."""
    return f"some tests need tools that are missing; to install them: {host_tools.command(packages)}"


if __name__ == "__main__":
    program(install)
