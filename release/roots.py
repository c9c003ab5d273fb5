# SPDX-License-Identifier: Apache-2.0
"""Bare roots: a Debian with Python and nothing else, made by debootstrap from the archive that this machine's apt uses.

A root is made once and kept in the cache; nothing writes into it afterwards (`enter` mounts it read-only).
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hourglass.engine.kernel import apt
from hourglass.errors import MissingError
from release import musl
from release.command import called
from release.places import Place

PACKAGES = ["python3", "python3-venv"]
MADE = "made"
USER = 1000
"""The user in a root, called "user"."""


def make(place: Place, say: Callable[[str], None]) -> None:
    """Makes the root unless it is there. Raises MissingError where this machine cannot."""
    if (place.root / MADE).is_file():
        return
    if os.geteuid() != 0:
        raise MissingError(f"making the root {place.name} takes root's rights", "sudo make release")
    fresh = place.root.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        say(f"{place.name}: {place.about}")
        if place.musl:
            musl.fill(fresh, place.suite, say)
        else:
            debootstrap(place.suite, fresh)
        people(fresh)
        if place.release:
            (fresh / "etc/os-release").unlink(missing_ok=True)
            (fresh / "etc/os-release").write_text(place.release)
        (fresh / MADE).write_text(f"{place.about}; {place.suite}\n")
        shutil.rmtree(place.root, ignore_errors=True)
        fresh.rename(place.root)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def debootstrap(suite: str, folder: Path) -> None:
    """Debian's smallest set and PACKAGES, from the archive that this machine's apt uses."""
    program = shutil.which("debootstrap")
    if program is None:
        raise MissingError("bare roots are made by debootstrap", "apt-get install -y debootstrap")
    stanzas = apt.deb822_stanzas(apt.derive(apt.machine_sources(), apt.machine_codename(), suite))
    if not stanzas:
        raise MissingError("this machine's apt knows no Debian archive", "add one to /etc/apt/sources.list.d")
    command = [program, "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    command += [f"--keyring={apt.KEYRING}"] if apt.KEYRING.exists() else []
    called([*command, suite, str(folder), stanzas[0]["uris"].split()[0]])
    shutil.rmtree(folder / "var/cache/apt/archives", ignore_errors=True)


def people(folder: Path) -> None:
    """A user of no rights with a home, and root."""
    for name, line in {
        "passwd": f"user:x:{USER}:{USER}::/home/user:/bin/sh\n",
        "group": f"user:x:{USER}:\n",
    }.items():
        with (folder / "etc" / name).open("a") as file:
            file.write(line)
    for name in ("home/user", "work", "wheels", "proc", "dev", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.chown(folder / "home/user", USER, USER)
