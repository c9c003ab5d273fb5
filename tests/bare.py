# SPDX-License-Identifier: Apache-2.0
"""A bare machine: a root of Debian's smallest set and the packages that the README requires. `make` installs the tools
of checks and tests in it. `python -m tests.bare COMMAND` runs a command in it.

    CACHE/places/bare/root     after the set-up; nothing writes into it afterwards
    CACHE/places/bare/made     the digest of its sources; if they change, the set-up is repeated from debootstrap

Packages come from the archive, the index and the registry that this machine uses.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hourglass import locks
from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError, MissingError, program
from hourglass.host import directories
from tests.repository import PATHS, ROOT, relative

CHECKOUT = "work"
SET_UP = f"cd /{CHECKOUT} && git init -q && make developer && .venv/bin/python -m tests.tools"
"""The commands of `make check` and `make test` before their first check."""
REPEATED = SET_UP.replace("make", "make -o agent")
"""The same with this machine's agent."""

DECIDE = (
    "Makefile", "pyproject.toml", "README.md", "tests/bare.py", "tests/tools.py", "agent/Cargo.lock",
    *(f"src/hourglass/engine/{name}.py" for name in ("doctor", "host_tools", "native")),
    *(f"src/hourglass/builders/{name}.py" for name in ("tool_packages", "agent", "bpf")),
    *(f"src/hourglass/builders/kernel/{name}.py" for name in ("recipe", "obtain", "apt")),
)  # fmt: skip
"""The files that decide what is installed."""

PASSED = ("PIP_", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_SOURCE_", "http", "HTTP", "no_proxy", "CI")
"""Prefixes of the environment's variables that the machine gets: they configure the access to registries."""

COPIED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/usr/local/share/ca-certificates")
"""Files of this machine that are needed for the same."""

APT_OPTIONS = "etc/apt/apt.conf.d/90machine"
"""The file with this machine's options for apt's downloads: a proxy, or a mirror with an old index."""

ENTER = """
mount --make-rprivate /
if [ "$2" = kept ]; then mount --bind "$1" "$1"; at=$1
else
    at=$3/merged; mount -t tmpfs tmpfs "$3"; mkdir "$3/upper" "$3/work" "$at"
    mount -t overlay -o "lowerdir=$1,upperdir=$3/upper,workdir=$3/work" overlay "$at"
fi
mount -t proc proc "$at/proc"; mount --rbind /sys "$at/sys"; mount --rbind /dev "$at/dev"
mount -t tmpfs tmpfs "$at/tmp"; mount -t tmpfs tmpfs "$at/run"
tar -C "$at/work" -xf "$4"
if [ "$6" ]; then agents=$at/root/.cache/hourglass/agents; mkdir -p "$agents"; mount -o ro,bind "$6" "$agents"; fi
cd "$at"; mkdir -p .before; pivot_root . .before; umount -l /.before; rmdir /.before 2>/dev/null || true
exec /bin/bash -euc "$5"
"""
"""Arguments: root, "kept" or "lost" (where writes go), a folder for these, an archive of the checkout, a command, a
folder of agents or nothing. The root is the whole tree of mounts, as in a machine: a process in a chroot makes no user
namespaces."""


def required() -> list[str]:
    """Return the packages that the README requires."""
    sentence = re.search(r"^\*\*From source\*\*, on Debian .*?:$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sentence is not None
    return re.findall(r"`([\w-]+)`", sentence[0])


def root() -> Path:
    """Return the root after the set-up, and make it if need be. Raises MissingError or HourglassError."""
    if os.geteuid() != 0:
        raise MissingError("a bare root is made by root only", "run it as root")
    folder = directories.cache() / "places" / "bare"
    key = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in DECIDE)).hexdigest()
    with locks.exclusive(folder.with_name("bare.lock")):
        stamp = folder / "made"
        if not stamp.is_file() or stamp.read_text() != key:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _fill(folder / "root")
            result = run(folder / "root", SET_UP, persistent=True)
            if result.returncode:
                raise HourglassError(f"the set-up failed:\n{result.stdout[-3000:]}")
            stamp.write_text(key)
    return folder / "root"


def _fill(folder: Path) -> None:
    """Make the smallest Debian of this machine's release, which finds packages as this machine does."""
    debootstrap = shutil.which("debootstrap")
    if debootstrap is None:
        raise MissingError("bare roots are made by debootstrap", "apt-get install -y debootstrap")
    name = apt.machine_codename()
    sources = apt.derive(apt.machine_sources(), name, name)
    if not sources:
        raise MissingError("this machine's apt knows no Debian archive", "add one to /etc/apt/sources.list.d")
    command = [debootstrap, "--variant=minbase", f"--include={','.join(required())}"]
    command += [f"--keyring={apt.KEYRING}"] if apt.KEYRING.exists() else []
    result = subprocess.run(
        [*command, name, folder, apt.deb822_stanzas(sources)[0]["uris"].split()[0]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode:
        raise HourglassError(f"debootstrap failed:\n{result.stdout[-2000:]}{result.stderr[-1000:]}")
    (folder / "etc/apt/sources.list").unlink(missing_ok=True)
    (folder / "etc/apt/sources.list.d/machine.sources").write_text(sources)
    options = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    lines = [line for line in options.splitlines() if line.startswith(("Acquire::Check-", "Acquire::http"))]
    (folder / APT_OPTIONS).write_text("".join(f"{line}\n" for line in lines))
    (folder / CHECKOUT).mkdir()
    for path in (Path(name) for name in COPIED):
        target = folder / path.relative_to("/")
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        elif path.is_file():
            shutil.copy(path, target)


def run(folder: Path, command: str, *, persistent: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command in the root, on a copy of this checkout. Its writes are lost, unless `persistent`. Else it also has
    this machine's agents: a build of one takes minutes."""
    environment = {name: text for name, text in os.environ.items() if name.startswith(PASSED)}
    environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "checkout.tar"
        listed = "\0".join(map(relative, PATHS))
        subprocess.run(["tar", "-cf", archive, "--null", "-T", "-"], cwd=ROOT, input=listed, text=True, check=True)
        writes = Path(scratch) / "writes"
        writes.mkdir()
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euc", ENTER, "bare"]
        return subprocess.run(
            [*unshare, folder, "kept" if persistent else "lost", writes, archive, command,
             "" if persistent else directories.cache() / "agents"],
            env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip


def main() -> None:
    result = run(root(), f"cd /{CHECKOUT} && {' '.join(sys.argv[1:])}")
    print(result.stdout, end="")
    raise SystemExit(result.returncode)


if __name__ == "__main__":
    program(main)
