# SPDX-License-Identifier: Apache-2.0
"""What the licences of a prebuilt set ask for: their texts, and where the sources are that it was made of.

Kernel: our part of the sources is kernel/ in the wheel, the rest Debian's linux-source, which is the whole tree. Root:
Debian's source packages. Statically linked: the C library of the machine that built, and Rust crates, which the agent's
Cargo.lock names.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hourglass.contract.kernels import DEFAULT, KERNELS, tools
from hourglass.engine import agent, tree
from hourglass.engine.kernel import apt, source
from hourglass.engine.sources import Wanted
from hourglass.errors import MissingError
from hourglass.resources import AGENT
from release.command import called

LINKED = {"libc6-dev": "glibc", "libgcc-s1": "gcc"}
"""What kernel and agent are linked with: the package whose copyright file says its licence."""

NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def write(folder: Path, kernel: str) -> None:
    """Writes the licences of all that is in a set."""
    folder.mkdir()
    kept = source.kept(kernel)
    assert kept is not None, "its kernel was built"
    linux = [
        kept.tree / "COPYING",
        kept.tree / "LICENSES/preferred/GPL-2.0",
        kept.tree / "LICENSES/exceptions/Linux-syscall-note",
    ]
    (folder / "linux").write_text(joined([(f"Linux: {path.name}", path) for path in linux]))
    linked = [(f"{name} (statically linked)", copyright_of(package)) for package, name in LINKED.items()]
    (folder / "linked").write_text(joined(linked))
    if kernel == DEFAULT or tools(kernel) != tools(DEFAULT):
        found = tree.find(tools(kernel))
        packaged = [(one.name, found.folder / f"usr/share/doc/{one.name}/copyright") for one in found.packages]
        (folder / "debian").write_text(joined(packaged))
        (folder / "crates").write_text(joined(crates()))


def joined(texts: Iterable[tuple[str, Path]]) -> str:
    """Each different text once, below the names of all that have it."""
    owners: dict[str, list[str]] = {}
    for owner, path in texts:
        owners.setdefault(path.read_text("utf-8", "replace").strip(), []).append(owner)
    line = "=" * 100
    return "".join(f"{line}\n{', '.join(names)}\n{line}\n{text}\n\n" for text, names in owners.items())


def copyright_of(package: str) -> Path:
    """The copyright file of a package of this machine."""
    path = Path("/usr/share/doc") / package / "copyright"
    if not path.is_file():
        raise MissingError(f"the licence of {package} is not in {path}", f"apt-get install -y --reinstall {package}")
    return path


def crates() -> list[tuple[str, Path]]:
    """The licence files of the crates that the agent is linked with, which cargo fetched to build it."""
    asked = ["cargo", "tree", "--locked", "--edges=normal", f"--target={agent.TARGET}", "--prefix=none", "--format={p}"]
    listed = sorted({" ".join(line.split()[:2]) for line in called(asked, AGENT).splitlines() if " (/" not in line})
    metadata = json.loads(called(["cargo", "metadata", "--locked", "--format-version=1"], AGENT))
    places = {f"{one['name']} v{one['version']}": Path(one["manifest_path"]).parent for one in metadata["packages"]}
    return [
        (crate, path)
        for crate in listed
        for name in NAMES
        for path in sorted(places[crate].glob(name))
        if path.is_file()
    ]


def write_sources(place: Path, kernel: str) -> None:
    """Writes which sources the set is made of, with their digests as Debian's archive gives them."""
    kept = source.kept(kernel)
    assert kept is not None, "its kernel was built"
    package, version = kept.identity.split()
    wanted = [Wanted(KERNELS[kernel], package, version, source=False)]
    wanted += [Wanted(apt.machine_codename(), *built_from("libc6-dev"), source=True)]
    if kernel == DEFAULT or tools(kernel) != tools(DEFAULT):
        release = tools(kernel)
        wanted += [Wanted(release, one.source, one.source_version, source=True) for one in tree.find(release).packages]
    listed = [one.described() for one in sorted({*wanted}, key=lambda one: (one.release, one.package))]
    place.write_text(json.dumps(listed, indent=1) + "\n")


def built_from(package: str) -> tuple[str, str]:
    """Source package and version of an installed package."""
    asked = ["dpkg-query", "--show", "--showformat=${source:Package} ${source:Version}", package]
    name, version = subprocess.run(asked, text=True, capture_output=True, check=True).stdout.split()
    return name, version
