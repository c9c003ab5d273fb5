# SPDX-License-Identifier: Apache-2.0
"""Run `python -m release` (`make release`): build all artefacts of the commit in dist/, test them, write SHA256SUMS and
the CHANGELOG's section. It uploads, commits and tags nothing, but prints the remaining steps.

Exit status 1: the release has a defect; 2: the tree differs from the commit; 3: this machine cannot make all of it; the
rest is done. You can repeat it at any time.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hourglass import __version__
from hourglass.errors import HourglassError, MissingError
from hourglass.files import sha256
from release import changelog, check, container, image, sdist, wheel
from release.bare_roots import BARE_ROOTS
from release.command import output_of

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
SUMS = "SHA256SUMS"


@dataclass
class Release:
    """The completed steps. `undone` has the steps that this machine cannot make, `wrong` those that failed."""

    dist: Path
    epoch: int
    plain: bool = False
    done: list[tuple[str, float, str]] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def step(self, name: str, do: Callable[["Release"], str]) -> None:
        """Make a step, regardless of the earlier ones' results."""
        say(f"{name} …")
        start = time.monotonic()
        try:
            result = do(self)
        except MissingError as error:
            result = f"not done: {error}"
            self.undone.append(f"{name}: {error}")
        except HourglassError as error:
            result = f"WRONG: {error}"
            self.wrong.append(f"{name}: {error}")
        self.done.append((name, time.monotonic() - start, result))

    def artefacts(self) -> list[Path]:
        """Return the files of the release, wheels first."""
        return [path for pattern in ("*.whl", "*.tar.gz", "*-image.tar") for path in sorted(self.dist.glob(pattern))]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def unclean() -> list[str]:
    """Return the changes since the commit, except the CHANGELOG's section, which a release writes."""
    lines = output_of(["git", "status", "--porcelain"], ROOT).splitlines()
    return [line for line in lines if line[3:] != CHANGELOG.name]


def build(checkout: Path, dist: Path, epoch: int, plain: bool) -> None:
    """Build wheels and source distribution of a checkout."""
    wheels = [sys.executable, "-m", "release.wheel", "--dist", str(dist), *(["--plain"] if plain else [])]
    output_of(wheels, checkout, PYTHONPATH=str(checkout / "src"), SOURCE_DATE_EPOCH=str(epoch))
    sdist.build(checkout, dist, epoch)


def twice(release: Release) -> str:
    """Build in a clone in another folder as well. All files must have the same bytes."""
    shutil.rmtree(release.dist, ignore_errors=True)
    release.dist.mkdir(parents=True)
    build(ROOT, release.dist, release.epoch, release.plain)
    with tempfile.TemporaryDirectory(prefix="hourglass-again-", dir="/var/tmp") as scratch:
        clone, second_dist = Path(scratch) / "elsewhere", Path(scratch) / "dist"
        output_of(["git", "clone", "--quiet", str(ROOT), str(clone)])
        second_dist.mkdir()
        build(clone, second_dist, release.epoch, release.plain)
        return same(release.dist, second_dist)


def same(first: Path, second: Path) -> str:
    """Compare two folders of artefacts. Raises HourglassError."""
    digests = [{path.name: sha256(path) for path in sorted(folder.iterdir())} for folder in (first, second)]
    differing = sorted(name for name in {*digests[0], *digests[1]} if digests[0].get(name) != digests[1].get(name))
    if differing:
        raise HourglassError(f"two builds differ in {', '.join(differing)}")
    return f"{len(digests[0])} files, twice the same bytes"


def image_twice(release: Release) -> str:
    """Build the image twice."""
    archive = image.build(release.dist, say)
    digest = sha256(archive)
    if sha256(image.build(release.dist, say)) != digest:
        raise HourglassError(f"two builds of {archive.name} differ")
    return f"{archive.stat().st_size / 1e6:.0f} MB, twice the same bytes"


def contained(release: Release) -> str:
    """Run in the image."""
    images = sorted(release.dist.glob("*-image.tar"))
    if not images:
        raise MissingError("there is no image", "see above")
    result = container.run(images[0], say)
    if (expected := check.readme_digest()) and result.digest != expected:
        raise HourglassError(f"digest {result.digest}, the README's is {expected}")
    return f"{result.method}: {result.seconds:.1f} s, digest {result.digest}"


def sums(release: Release) -> str:
    """Write SHA256SUMS in the format of `sha256sum --check`."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in release.artefacts()]
    (release.dist / SUMS).write_text("".join(lines))
    return f"{len(lines)} files"


def section(release: Release) -> str:
    """Write the CHANGELOG's section, from the commit's CHANGELOG, so it can be repeated."""
    text = output_of(["git", "show", f"HEAD:{CHANGELOG.name}"], ROOT)
    version = __version__
    if changelog.ARTEFACTS in (old := changelog.section(text, version) or ""):
        stale = [path.name for path in release.artefacts() if sha256(path) not in old]
        if stale:
            raise HourglassError(f"{version} is released already, with other bytes of {', '.join(stale)}")
        return f"{version} is there, with these digests"
    if release.plain or release.wrong or release.undone:
        raise MissingError(f"no section {version} for a release that was not made and tried as a whole", "see above")
    day = datetime.fromtimestamp(release.epoch, UTC).date()
    CHANGELOG.write_text(changelog.released(text, version, day, release.artefacts()))
    return f"{version}; left to do: commit CHANGELOG.md, tag v{version}, upload dist/"


def bare_root_tests(release: Release) -> str:
    """Test in all bare roots."""
    if not check.check(release.dist, BARE_ROOTS, say):
        raise HourglassError("not in every root; see the table")
    return f"{len(BARE_ROOTS)} roots, {len(check.SHM_STATES)} times each"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description="Makes and tries a release.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the artefacts go")
    parser.add_argument("--plain", action="store_true", help="for a trial: with the existing kernels, tuned or not")
    options = parser.parse_args()
    if changed := unclean():
        say("\n".join(["not the tree of a commit; to fix: commit or stash", *changed[:10]]))
        return 2
    release = Release(options.dist.resolve(), wheel.commit_time(ROOT), options.plain)
    steps: list[tuple[str, Callable[[Release], str]]] = [
        ("wheels and sources", twice), ("bare roots", bare_root_tests), ("image", image_twice),
        ("image's run", contained), ("checksums", sums), ("changelog", section),
    ]  # fmt: skip
    for name, do in steps:
        release.step(name, do)
        if name == "wheels and sources" and (release.wrong or release.undone):
            break
    table = Table("step", "seconds", "", box=None)
    for name, seconds, result in release.done:
        table.add_row(name, f"{seconds:.0f}", result)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return 1 if release.wrong else 3 if release.undone else 0


if __name__ == "__main__":
    sys.exit(main())
