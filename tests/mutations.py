# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.mutations [NAME …]`: faults that the tests must catch (`tests/mutations.toml`).

Each fault is made in a scratch copy of the last commit, its tests are run there, and they must fail. First all tests
run without a fault and must pass. Exit status 1: a fault was missed, or its text no longer exists.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests/mutations.toml"


@dataclass(frozen=True)
class Mutation:
    """`before`: a text that the file has once, replaced by `after`. `tests`: node IDs of pytest, in `agent/` filters of
    cargo."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def problem(self, root: Path) -> str:
        """Return why the mutation cannot be made, or ""."""
        path = root / self.file
        count = path.read_text().count(self.before) if path.is_file() else 0
        return "" if count == 1 else f"{self.file} has {self.before!r} {count} times, not once"

    @contextmanager
    def applied(self, root: Path) -> Iterator[None]:
        """Change the file, and restore it at the end."""
        path = root / self.file
        text = path.read_text()
        path.write_text(text.replace(self.before, self.after))
        try:
            yield
        finally:
            path.write_text(text)

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return the folders and the commands that must fail."""
        if self.file.startswith("agent/"):
            return [("agent", ["cargo", "test", "--locked", "--quiet", name]) for name in self.tests]
        return [(".", [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *self.tests])]


def read() -> list[Mutation]:
    """Return the mutations of the list."""
    tables = tomllib.loads(LIST.read_text())["mutation"]
    return [Mutation(**table | {"tests": tuple(table["tests"])}) for table in tables]


def passes(root: Path, commands: Sequence[tuple[str, list[str]]]) -> bool:
    """Tell whether all commands pass in the copy."""
    environment = os.environ | {
        "PYTHONPATH": str(root / "src"),
        "CARGO_TARGET_DIR": str(ROOT / "agent/target/mutations"),
    }
    return all(
        subprocess.run(command, cwd=root / folder, env=environment, capture_output=True, check=False).returncode == 0
        for folder, command in commands
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a copy of the last commit."""
    with tempfile.TemporaryDirectory(prefix="hourglass-mutations-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", copy], cwd=ROOT, check=True)
        try:
            yield copy
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", copy], cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description="Makes faults that tests must catch."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only the mutations whose names contain this")
    names = parser.parse_args().names
    chosen = [mutation for mutation in read() if not names or any(name in mutation.name for name in names)]
    with scratch() as root:
        plain = {tuple(command): (folder, command) for mutation in chosen for folder, command in mutation.commands()}
        broken = [" ".join(command) for folder, command in plain.values() if not passes(root, [(folder, command)])]
        if broken:
            print("these fail without a fault:", *broken, sep="\n  ", file=sys.stderr)
            return 1
        missed = 0
        for mutation in chosen:
            started = time.monotonic()
            verdict = mutation.problem(root)
            if not verdict:
                with mutation.applied(root):
                    verdict = "MISSED" if passes(root, mutation.commands()) else "caught"
            missed += verdict != "caught"
            print(f"{mutation.name:28} {time.monotonic() - started:6.1f} s  {verdict}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
