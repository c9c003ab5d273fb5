# SPDX-License-Identifier: Apache-2.0
"""Fetch the sources of a released wheel's binaries: `python -m hourglass.builders.sources FOLDER`.

`built/sources.json` lists Debian's packages with the SHA-256 of each file. This machine's apt fetches them from its
Debian archive, and they are verified. Hourglass's own sources are in the wheel: data/kernel and data/agent, whose
Cargo.lock pins the crates."""

import json
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hourglass.builders import prebuilt
from hourglass.builders.kernel import apt
from hourglass.contract.kernels import KERNELS
from hourglass.errors import HourglassError, MissingError, installing
from hourglass.files import sha256

FILE = "sources.json"
OLDER = "An archive has only the latest versions. Debian's snapshot archive has all, by these names and versions."
_URI = re.compile(r"^'[^']*' (\S+) \d+ SHA256:([0-9a-f]{64})", re.MULTILINE)


@dataclass(frozen=True)
class SourcePackage:
    """A package of a Debian release: a source package, or a binary package that contains sources."""

    release: str
    package: str
    version: str
    source: bool

    def apt_arguments(self) -> list[str]:
        """Return the arguments for apt-get."""
        return [*(["source", "--download-only"] if self.source else ["download"]), f"{self.package}={self.version}"]

    def described(self) -> dict[str, Any]:
        """Return the package and the digests of its files, by name. Raises HourglassError if the archive lacks it."""
        result = archive(self.release).apt(*self.apt_arguments(), "--print-uris")
        files = dict(_URI.findall(result.stdout))
        if not files:
            raise self.gone(result.stderr)
        return asdict(self) | {"files": files}

    def gone(self, messages: str) -> HourglassError:
        """Return the error about a package that the archive lacks."""
        errors = [line for line in messages.splitlines() if line.startswith("E:")]
        problem = f"{self.package} {self.version} of Debian {self.release} is not in this machine's archive"
        return HourglassError("\n".join([problem, *(f"  | {line}" for line in errors)]))


@cache
def archive(release: str) -> apt.Archive:
    """Return the packages and sources of a release. apt's state is deleted when this process ends."""
    return apt.Archive(release, Path(_state().name) / release, sources=True)


@cache
def _state() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hourglass-sources-")


def fetch(folder: Path) -> None:
    """Download the sources of all installed sets, and verify them. Raises HourglassError after all downloads, with the
    failed ones."""
    sets = [item for item in (prebuilt.of_front(), *map(prebuilt.of_kernel, KERNELS)) if item is not None]
    if not sets:
        raise MissingError("this installation contains no prebuilt files", installing("hourglass_net-*.whl"))
    folder.mkdir(parents=True, exist_ok=True)
    problems = []
    for described in (item for prebuilt_set in sets for item in json.loads((prebuilt_set.folder / FILE).read_text())):
        digests = described.pop("files")
        package = SourcePackage(**described)
        try:
            fetch_one(package, digests, folder)
            print(f"{package.package} {package.version}: {', '.join(digests)}", flush=True)
        except HourglassError as error:
            problems.append(str(error))
    if problems:
        raise HourglassError("\n".join([*problems, OLDER]))


def fetch_one(package: SourcePackage, digests: dict[str, str], folder: Path) -> None:
    """Download and verify the files of a package. Raises HourglassError."""
    result = archive(package.release).apt(*package.apt_arguments(), target=folder)
    for name, digest in digests.items():
        if not (folder / name).is_file():
            raise package.gone(result.stderr)
        if sha256(folder / name) != digest:
            raise HourglassError(f"{folder / name} is not the file that the wheel was built from")


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]))
    except HourglassError as error:
        raise SystemExit(f"{error}") from None
