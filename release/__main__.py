# SPDX-License-Identifier: Apache-2.0
"""`python -m release` (`make release`): makes all artefacts of the commit in dist/, tries them, writes SHA256SUMS and
the CHANGELOG's section. Nothing is uploaded, committed or tagged: what is left to do is printed.

Exit status 1: something is wrong with the release; 2: the tree is not that of a commit; 3: this machine cannot do all
of it, which is said, and the rest was done. It can be called again at any time.
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
from release.command import called
from release.places import PLACES

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
SUMS = "SHA256SUMS"


@dataclass
class Release:
    """What was done so far. A step that this machine cannot do is kept in `undone`, one that failed in `wrong`."""

    dist: Path
    epoch: int
    plain: bool = False
    done: list[tuple[str, float, str]] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def step(self, name: str, do: Callable[["Release"], str]) -> None:
        """Does a step, whatever became of those before it."""
        say(f"{name} …")
        began = time.monotonic()
        try:
            what = do(self)
        except MissingError as error:
            what = f"not done: {error}"
            self.undone.append(f"{name}: {error}")
        except HourglassError as error:
            what = f"WRONG: {error}"
            self.wrong.append(f"{name}: {error}")
        self.done.append((name, time.monotonic() - began, what))

    def artefacts(self) -> list[Path]:
        """The files of the release, wheels first."""
        return [path for pattern in ("*.whl", "*.tar.gz", "*-image.tar") for path in sorted(self.dist.glob(pattern))]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def unclean() -> list[str]:
    """What differs from the commit; the CHANGELOG's section, which a release writes, aside."""
    lines = called(["git", "status", "--porcelain"], ROOT).splitlines()
    return [line for line in lines if line[3:] != CHANGELOG.name]


def build(checkout: Path, dist: Path, epoch: int, plain: bool) -> None:
    """Wheels and source distribution of a checkout."""
    wheels = [sys.executable, "-m", "release.wheel", "--dist", str(dist), *(["--plain"] if plain else [])]
    called(wheels, checkout, PYTHONPATH=str(checkout / "src"), SOURCE_DATE_EPOCH=str(epoch))
    sdist.build(checkout, dist, epoch)


def twice(release: Release) -> str:
    """Builds in a clone at another place too; every file must have the same bytes."""
    shutil.rmtree(release.dist, ignore_errors=True)
    release.dist.mkdir(parents=True)
    build(ROOT, release.dist, release.epoch, release.plain)
    with tempfile.TemporaryDirectory(prefix="hourglass-again-", dir="/var/tmp") as scratch:
        clone, again = Path(scratch) / "elsewhere", Path(scratch) / "dist"
        called(["git", "clone", "--quiet", str(ROOT), str(clone)])
        again.mkdir()
        build(clone, again, release.epoch, release.plain)
        return same(release.dist, again)


def same(one: Path, two: Path) -> str:
    """Compares two folders of artefacts. Raises HourglassError."""
    digests = [{path.name: sha256(path) for path in sorted(folder.iterdir())} for folder in (one, two)]
    differing = sorted(name for name in {*digests[0], *digests[1]} if digests[0].get(name) != digests[1].get(name))
    if differing:
        raise HourglassError(f"two builds differ in {', '.join(differing)}")
    return f"{len(digests[0])} files, twice the same bytes"


def image_twice(release: Release) -> str:
    """The image, made twice."""
    made = image.build(release.dist, say)
    first = sha256(made)
    if sha256(image.build(release.dist, say)) != first:
        raise HourglassError(f"two builds of {made.name} differ")
    return f"{made.stat().st_size / 1e6:.0f} MB, twice the same bytes"


def contained(release: Release) -> str:
    """A run in the image."""
    images = sorted(release.dist.glob("*-image.tar"))
    if not images:
        raise MissingError("there is no image", "see above")
    ran = container.run(images[0], say)
    if (wanted := check.readme_digest()) and ran.digest != wanted:
        raise HourglassError(f"digest {ran.digest}, the README's is {wanted}")
    return f"{ran.how}: {ran.seconds:.1f} s, digest {ran.digest}"


def sums(release: Release) -> str:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in release.artefacts()]
    (release.dist / SUMS).write_text("".join(lines))
    return f"{len(lines)} files"


def section(release: Release) -> str:
    """The CHANGELOG's section, from the commit's CHANGELOG: called again it is written again."""
    text = called(["git", "show", f"HEAD:{CHANGELOG.name}"], ROOT)
    version = __version__
    if (old := changelog.section(text, version)) is not None:
        stale = [path.name for path in release.artefacts() if sha256(path) not in old]
        if stale:
            raise HourglassError(f"{version} is released already, with other bytes of {', '.join(stale)}")
        return f"{version} is there, with these digests"
    if release.plain or release.wrong or release.undone:
        raise MissingError(f"no section {version} for a release that was not made and tried as a whole", "see above")
    day = datetime.fromtimestamp(release.epoch, UTC).date()
    CHANGELOG.write_text(changelog.released(text, version, day, release.artefacts()))
    return f"{version}; left to do: commit CHANGELOG.md, tag v{version}, upload dist/"


def places(release: Release) -> str:
    """All bare roots."""
    if not check.check(release.dist, PLACES, say):
        raise HourglassError("not in every place; see the table")
    return f"{len(PLACES)} places, {len(check.SHM)} times each"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description="Makes and tries a release.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the artefacts go")
    parser.add_argument(
        "--plain", action="store_true", help="for a trial: with the kernels that are there, tuned or not"
    )
    options = parser.parse_args()
    if changed := unclean():
        say("\n".join(["not the tree of a commit; to fix: commit or stash", *changed[:10]]))
        return 2
    release = Release(options.dist.resolve(), wheel.commit_time(ROOT), options.plain)
    steps: list[tuple[str, Callable[[Release], str]]] = [
        ("wheels and sources", twice), ("bare roots", places), ("image", image_twice), ("image's run", contained),
        ("checksums", sums), ("changelog", section),
    ]  # fmt: skip
    for name, do in steps:
        release.step(name, do)
        if name == "wheels and sources" and (release.wrong or release.undone):
            break
    table = Table("step", "seconds", "", box=None)
    for name, seconds, what in release.done:
        table.add_row(name, f"{seconds:.0f}", what)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return 1 if release.wrong else 3 if release.undone else 0


if __name__ == "__main__":
    sys.exit(main())
