# SPDX-License-Identifier: Apache-2.0
"""Write what the licences of a prebuilt set require: their texts, and the list of its sources.

Kernel: Hourglass's sources are kernel/ in the wheel, the others are Debian's linux-source, which is the complete tree.
Root: Debian's source packages. Statically linked: the C library of the building machine, and the Rust crates in the
agent's Cargo.lock.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hourglass.builders import agent, tool_packages
from hourglass.builders.kernel import apt, source_tree
from hourglass.builders.sources import SourcePackage
from hourglass.contract.kernels import DEFAULT, KERNELS, tools
from hourglass.errors import MissingError
from hourglass.resources import AGENT
from release.command import output_of

LINKED = {"libc6-dev": "glibc", "libgcc-s1": "gcc"}
"""Packages whose code is linked into kernel and agent, with names for their licences."""

NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def write(folder: Path, kernel: str) -> None:
    """Write the licences of everything in a set."""
    folder.mkdir()
    source = source_tree.cached(kernel)
    assert source is not None, "its kernel was built"
    linux = [
        source.tree / "COPYING",
        source.tree / "LICENSES/preferred/GPL-2.0",
        source.tree / "LICENSES/exceptions/Linux-syscall-note",
    ]
    (folder / "linux").write_text(joined([(f"Linux: {path.name}", path) for path in linux]))
    linked = [(f"{name} (statically linked)", copyright_of(package)) for package, name in LINKED.items()]
    (folder / "linked").write_text(joined(linked))
    if kernel == DEFAULT or tools(kernel) != tools(DEFAULT):
        tool_set = tool_packages.find(tools(kernel))
        packaged = [
            (package.name, tool_set.folder / f"usr/share/doc/{package.name}/copyright") for package in tool_set.packages
        ]
        (folder / "debian").write_text(joined(packaged))
        (folder / "crates").write_text(joined(crates()))


def joined(texts: Iterable[tuple[str, Path]]) -> str:
    """Join the texts. Each is printed once, below the names of its owners."""
    owners: dict[str, list[str]] = {}
    for owner, path in texts:
        owners.setdefault(path.read_text("utf-8", "replace").strip(), []).append(owner)
    line = "=" * 100
    return "".join(f"{line}\n{', '.join(names)}\n{line}\n{text}\n\n" for text, names in owners.items())


def copyright_of(package: str) -> Path:
    """Return the copyright file of a package of this machine."""
    path = Path("/usr/share/doc") / package / "copyright"
    if not path.is_file():
        raise MissingError(f"the licence of {package} is not in {path}", f"apt-get install -y --reinstall {package}")
    return path


def crates() -> list[tuple[str, Path]]:
    """Return the licence files of the crates in the agent, which cargo downloaded for its build."""
    command = [
        "cargo",
        "tree",
        "--locked",
        "--edges=normal",
        f"--target={agent.TARGET}",
        "--prefix=none",
        "--format={p}",
    ]
    listed = sorted(
        {" ".join(line.split()[:2]) for line in output_of(command, AGENT).splitlines() if " (/" not in line}
    )
    metadata = json.loads(output_of(["cargo", "metadata", "--locked", "--format-version=1"], AGENT))
    folders = {
        f"{package['name']} v{package['version']}": Path(package["manifest_path"]).parent
        for package in metadata["packages"]
    }
    return [
        (crate, path)
        for crate in listed
        for name in NAMES
        for path in sorted(folders[crate].glob(name))
        if path.is_file()
    ]


def write_sources(target: Path, kernel: str) -> None:
    """Write the list of the set's sources, with their digests from Debian's archive."""
    source = source_tree.cached(kernel)
    assert source is not None, "its kernel was built"
    package, version = source.identity.split()
    packages = [SourcePackage(KERNELS[kernel], package, version, source=False)]
    packages += [SourcePackage(apt.machine_codename(), *built_from("libc6-dev"), source=True)]
    if kernel == DEFAULT or tools(kernel) != tools(DEFAULT):
        release = tools(kernel)
        packages += [
            SourcePackage(release, package.source, package.source_version, source=True)
            for package in tool_packages.find(release).packages
        ]
    listed = [
        package.described() for package in sorted({*packages}, key=lambda package: (package.release, package.package))
    ]
    target.write_text(json.dumps(listed, indent=1) + "\n")


def built_from(package: str) -> tuple[str, str]:
    """Return source package and version of an installed package."""
    command = ["dpkg-query", "--show", "--showformat=${source:Package} ${source:Version}", package]
    name, version = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()
    return name, version
