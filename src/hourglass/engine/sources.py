# SPDX-License-Identifier: Apache-2.0
"""The sources of what a released wheel brings built: `python -m hourglass.engine.sources FOLDER` fetches them.

`built/sources.json` lists Debian's packages with the SHA-256 of each file. They are fetched by this machine's apt from
the Debian archive that it uses, and verified. Our own part is in the wheel: data/kernel and data/agent, whose
Cargo.lock names and pins the crates.
"""

import json
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hourglass.contract.kernels import KERNELS
from hourglass.engine import prebuilt
from hourglass.engine.kernel import apt
from hourglass.errors import HourglassError, MissingError, installing
from hourglass.files import sha256

FILE = "sources.json"
OLDER = (
    "An archive has the latest versions only; the snapshots of Debian's archive have all, by these names and versions."
)
_URI = re.compile(r"^'[^']*' (\S+) \d+ SHA256:([0-9a-f]{64})", re.MULTILINE)


@dataclass(frozen=True)
class Wanted:
    """A package of a Debian release: a source package, or a binary one that holds sources."""

    release: str
    package: str
    version: str
    source: bool

    def words(self) -> list[str]:
        """What apt-get is asked for."""
        return [*(["source", "--download-only"] if self.source else ["download"]), f"{self.package}={self.version}"]

    def described(self) -> dict[str, Any]:
        """The package and the digests of its files, by name. Raises HourglassError where the archive has it not."""
        said = archive(self.release).apt(*self.words(), "--print-uris")
        files = dict(_URI.findall(said.stdout))
        if not files:
            raise self.gone(said.stderr)
        return asdict(self) | {"files": files}

    def gone(self, said: str) -> HourglassError:
        """The error of a package that the archive has not."""
        words = [line for line in said.splitlines() if line.startswith("E:")]
        what = f"{self.package} {self.version} of Debian {self.release} is not in this machine's archive"
        return HourglassError("\n".join([what, *(f"  | {line}" for line in words)]))


@cache
def archive(release: str) -> apt.Archive:
    """The packages and sources of a release; apt's state goes with this process."""
    return apt.Archive(release, Path(_state().name) / release, sources=True)


@cache
def _state() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hourglass-sources-")


def fetch(folder: Path) -> None:
    """Downloads the sources of all sets that are installed, and verifies them. Raises HourglassError that names those
    that could not be had, after all others."""
    sets = [one for one in (prebuilt.of_front(), *map(prebuilt.of_kernel, KERNELS)) if one is not None]
    if not sets:
        raise MissingError("this installation brings nothing built", installing("hourglass-*.whl"))
    folder.mkdir(parents=True, exist_ok=True)
    problems = []
    for described in (one for brought in sets for one in json.loads((brought.folder / FILE).read_text())):
        digests = described.pop("files")
        wanted = Wanted(**described)
        try:
            fetch_one(wanted, digests, folder)
            print(f"{wanted.package} {wanted.version}: {', '.join(digests)}", flush=True)
        except HourglassError as error:
            problems.append(str(error))
    if problems:
        raise HourglassError("\n".join([*problems, OLDER]))


def fetch_one(wanted: Wanted, digests: dict[str, str], folder: Path) -> None:
    """Downloads and verifies the files of a package. Raises HourglassError."""
    said = archive(wanted.release).apt(*wanted.words(), place=folder)
    for name, digest in digests.items():
        if not (folder / name).is_file():
            raise wanted.gone(said.stderr)
        if sha256(folder / name) != digest:
            raise HourglassError(f"{folder / name} is not the file that the wheel was made of")


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]))
    except HourglassError as error:
        raise SystemExit(f"{error}") from None
