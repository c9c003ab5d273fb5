# SPDX-License-Identifier: Apache-2.0
"""The examples of programs again and again: `make repeat`, or `python -m tests.repeat [EXAMPLE …]`. Minutes.

Each example of `scenarios/apps/` is run five times, by a command of its own: twice as it is, twice beside two processes
that never rest, and once by another user (as root only; else by us) in another directory, with another cache, into
which all that the run needs was copied: kernel, agent, and the programs' root. The digests of the records and all that
programs printed must be the same bytes.

The table has a row per example; exit status 1: something differs, and the folder with the runs is kept.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import engines, paths
from hourglass.resources import SCENARIOS

EXAMPLES = SCENARIOS / "apps"
SPIN = "while True: pass"
SPINNERS = 2
STRANGER = 65534
PARTS = ("agents", "kernels", "roots")
"""Folders of the cache that a run looks at which finds everything made; of `approots` it is given its own."""


@contextmanager
def beside() -> Iterator[None]:
    """Two processes that never rest."""
    with ExitStack() as stack:
        spinners = [stack.enter_context(subprocess.Popen([sys.executable, "-c", SPIN])) for _ in range(SPINNERS)]
        try:
            yield
        finally:
            for one in spinners:
                one.kill()


def play(file: Path, kernel: str, out: Path, cache: Path, user: Sequence[str] = ()) -> dict[str, str]:
    """A run by a process of its own: the digests of its records, and of each output of its programs."""
    code = "from hourglass.cli import main; main()"
    words = [*user, sys.executable, "-c", code, "run", str(file), "--kernel", kernel, "--out", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOURGLASS_CACHE": str(cache)}
    if user:
        environment |= {"HOME": str(out.parent), "TMPDIR": str(out.parent)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=out.parent)
    if not out.is_dir():
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"}
    info = json.loads((out / "run.json").read_text())
    printed = sorted(path for path in (out / "apps").iterdir() if path.suffix in (".stdout", ".stderr"))
    return {"records": info["digest"]} | {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in printed}


def copied(file: Path, kernel: str, cache: Path) -> None:
    """A cache with what the example needs, in files of its own."""
    for name in PARTS:
        shutil.copytree(paths.cache() / name, cache / name, symlinks=True, ignore=shutil.ignore_patterns("target"))
    prepared = runner.prepare(scenario.load(file, kernel=kernel), engines.DEFAULT, runner.Silent())
    wanted = set(prepared.engine.identity(bool(prepared.plan.radios), prepared.plan.roots).split()[2:])
    for made in (paths.cache() / "approots").glob("*/made.json"):
        if json.loads(made.read_bytes())["digest"][:16] in wanted:
            shutil.copytree(made.parent, cache / "approots" / made.parent.name, symlinks=True)


def stranger(folder: Path) -> list[str]:
    """Begins a command that is another user's, to whom the folder is given; who may read what only we may."""
    if os.getuid():
        return []
    subprocess.run(["chown", "-R", f"{STRANGER}:{STRANGER}", folder], check=True)
    may = "+dac_read_search"
    ids = [f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    return ["setpriv", *ids, f"--inh-caps={may}", f"--ambient-caps={may}"]


def runs(name: str, kernel: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The five runs of an example."""
    file, cache = EXAMPLES / f"{name}.toml", paths.cache()
    folder.mkdir()
    for count in (1, 2):
        yield f"alone {count}", play(file, kernel, folder / f"alone-{count}", cache)
    for count in (1, 2):
        with beside():
            yield f"beside {count}", play(file, kernel, folder / f"beside-{count}", cache)
    other = folder / "another place"
    copied(file, kernel, other / "cache")
    yield "elsewhere", play(file, kernel, other / "run", other / "cache", stranger(other))


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.repeat", description="The same bytes, five times.")
    words.add_argument("examples", nargs="*", help="these alone; default: all")
    words.add_argument("--kernel", choices=KERNELS, default=DEFAULT)
    asked = words.parse_args()
    place, failed = Path(tempfile.mkdtemp(prefix="hourglass-repeat-")), 0
    place.chmod(0o755)
    for name in asked.examples or sorted(path.stem for path in EXAMPLES.glob("*.toml")):
        found = list(runs(name, asked.kernel, place / name))
        first = found[0][1]
        other = [how for how, told in found if told != first or "error" in told]
        said = "the same" if not other else f"DIFFERS: {', '.join(other)}"
        failed += bool(other)
        print(
            f"{name:12} {first.get('records', first.get('error', ''))[:12]:12} {len(first) - 1:2} outputs  {said}",
            flush=True,
        )
        if not other:
            shutil.rmtree(place / name)
    if failed:
        print(f"{failed} differ; their runs are in {place}")
    else:
        place.rmdir()
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
