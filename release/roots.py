# SPDX-License-Identifier: Apache-2.0
"""Build bare roots: a Debian with only Python, from the archive that this machine's apt uses.

A root is built once and cached. Nothing writes into it later (`enter` mounts it read-only).
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hourglass.builders.kernel import apt
from hourglass.errors import MissingError
from release import musl
from release.bare_roots import BareRoot
from release.command import output_of

PACKAGES = ["python3", "python3-venv"]
STAMP = "made"
USER = 1000
"""The uid of the user "user" in a root."""


def make(bare_root: BareRoot, say: Callable[[str], None]) -> None:
    """Build the root if it is missing. Raises MissingError if this machine cannot."""
    if (bare_root.folder / STAMP).is_file():
        return
    if os.geteuid() != 0:
        raise MissingError(f"making the root {bare_root.name} takes root's rights", "sudo make release")
    fresh = bare_root.folder.with_name(f".{bare_root.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        say(f"{bare_root.name}: {bare_root.about}")
        if bare_root.musl:
            musl.fill(fresh, bare_root.suite, say)
        else:
            debootstrap(bare_root.suite, fresh)
        create_users(fresh)
        if bare_root.release:
            (fresh / "etc/os-release").unlink(missing_ok=True)
            (fresh / "etc/os-release").write_text(bare_root.release)
        (fresh / STAMP).write_text(f"{bare_root.about}; {bare_root.suite}\n")
        shutil.rmtree(bare_root.folder, ignore_errors=True)
        fresh.rename(bare_root.folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def debootstrap(suite: str, folder: Path) -> None:
    """Install Debian's smallest set and PACKAGES, from the archive that this machine's apt uses."""
    program = shutil.which("debootstrap")
    if program is None:
        raise MissingError("bare roots are made by debootstrap", "apt-get install -y debootstrap")
    stanzas = apt.deb822_stanzas(apt.derive(apt.machine_sources(), apt.machine_codename(), suite))
    if not stanzas:
        raise MissingError("this machine's apt knows no Debian archive", "add one to /etc/apt/sources.list.d")
    command = [program, "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    command += [f"--keyring={apt.KEYRING}"] if apt.KEYRING.exists() else []
    output_of([*command, suite, str(folder), stanzas[0]["uris"].split()[0]])
    shutil.rmtree(folder / "var/cache/apt/archives", ignore_errors=True)


def create_users(folder: Path) -> None:
    """Create root and an unprivileged user with a home."""
    for name, line in {
        "passwd": f"user:x:{USER}:{USER}::/home/user:/bin/sh\n",
        "group": f"user:x:{USER}:\n",
    }.items():
        with (folder / "etc" / name).open("a") as file:
            file.write(line)
    for name in ("home/user", "work", "wheels", "proc", "dev", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.chown(folder / "home/user", USER, USER)
