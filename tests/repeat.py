# SPDX-License-Identifier: Apache-2.0
"""Repeat the examples of programs: `make repeat`, or `python -m tests.repeat [EXAMPLE …]`. It takes minutes.

Each example of `scenarios/apps/` is run five times, each time by a new process:

* twice without other load
* twice next to two processes that spin
* once in another directory with another cache, by another user if this is root; the kernel, the agent and the programs'
  root are copied there

The digests of the records and the output of all programs must be the same bytes.

The table has a row per example. Exit status 1: an example differs, and the folder with the runs remains.
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
from dataclasses import dataclass
from pathlib import Path

from hourglass import runner, scenario
from hourglass.cli.exit_status import MISSED
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import engines
from hourglass.errors import program
from hourglass.host import directories
from hourglass.resources import SCENARIOS

EXAMPLES = SCENARIOS / "apps"
SPIN = "while True: pass"
STRANGER = 65534
PARTS = ("agents", "kernels", "roots")
"""Folders of the cache that a run reads if everything is built. Of `approots` only the needed ones are copied."""


@contextmanager
def busy_cpus(spinners: int) -> Iterator[None]:
    """Run processes that spin."""
    with ExitStack() as stack:
        children = [stack.enter_context(subprocess.Popen([sys.executable, "-c", SPIN])) for _ in range(spinners)]
        try:
            yield
        finally:
            for child in children:
                child.kill()


@dataclass(frozen=True)
class Outcome:
    """A run of an example: the digests of its records and of each output of its programs, or an error. `test_s`:
    virtual time; `cpu_s`: CPU time of the programs on this machine."""

    digests: dict[str, str]
    error: str = ""
    test_s: float = 0.0
    cpu_s: float = 0.0


def play(file: Path, kernel: str, out: Path, cache: Path, user: Sequence[str] = ()) -> Outcome:
    """Run an example in a new process. A missed expectation is an error."""
    code = "from hourglass.cli import main; main()"
    command = [*user, sys.executable, "-c", code, "run", str(file), "--kernel", kernel, "--out", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOURGLASS_CACHE": str(cache)}
    if user:
        environment |= {"HOME": str(out.parent), "TMPDIR": str(out.parent)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=out.parent)
    if result.returncode == MISSED and out.is_dir():
        missed = [check["figure"] for check in json.loads(result.stdout)["checks"] if not check["ok"]]
        return Outcome({}, f"missed: {', '.join(missed)}")
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        return Outcome({}, lines[-1] if lines else f"status {result.returncode}")
    info = json.loads((out / "run.json").read_text())
    printed = sorted(path for path in (out / "apps").iterdir() if path.suffix in (".stdout", ".stderr"))
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in printed}
    return Outcome({"records": info["digest"]} | digests, "", info["virtual_s"], sum(info["apps_cpu_s"].values()))


def faults(outcomes: Sequence[tuple[str, Outcome]]) -> list[str]:
    """Return the named runs with an error, or with other bytes than the first."""
    first = outcomes[0][1]
    return [f"{mode} {outcome.error}".rstrip() for mode, outcome in outcomes
            if outcome.error or outcome.digests != first.digests]  # fmt: skip


def copied(file: Path, kernel: str, cache: Path) -> None:
    """Fill a cache with copies of the files that the example needs."""
    for name in PARTS:
        shutil.copytree(
            directories.cache() / name, cache / name, symlinks=True, ignore=shutil.ignore_patterns("target")
        )
    prepared = runner.prepare(scenario.load(file, kernel=kernel), engines.DEFAULT, runner.SilentRunProgress())
    digests = set(prepared.engine.identity(bool(prepared.plan.radios), prepared.plan.roots).split()[2:])
    for manifest in (directories.cache() / "approots").glob("*/made.json"):
        if json.loads(manifest.read_bytes())["digest"][:16] in digests:
            shutil.copytree(manifest.parent, cache / "approots" / manifest.parent.name, symlinks=True)


def stranger(folder: Path) -> list[str]:
    """Return the start of a command for another user, who becomes the folder's owner and may read our files."""
    if os.getuid():
        return []
    subprocess.run(["chown", "-R", f"{STRANGER}:{STRANGER}", folder], check=True)
    may = "+dac_read_search"
    ids = [f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    return ["setpriv", *ids, f"--inh-caps={may}", f"--ambient-caps={may}"]


def runs(name: str, kernel: str, folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Yield the five runs of an example, with their names."""
    file, cache = EXAMPLES / f"{name}.toml", directories.cache()
    folder.mkdir()
    for count in (1, 2):
        yield f"alone {count}", play(file, kernel, folder / f"alone-{count}", cache)
    for count in (1, 2):
        with busy_cpus(2):
            yield f"loaded {count}", play(file, kernel, folder / f"loaded-{count}", cache)
    other = folder / "another place"
    copied(file, kernel, other / "cache")
    yield "elsewhere", play(file, kernel, other / "run", other / "cache", stranger(other))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeat", description="The same bytes, five times.")
    parser.add_argument("examples", nargs="*", help="these alone; default: all")
    parser.add_argument("--kernel", choices=KERNELS, default=DEFAULT)
    arguments = parser.parse_args()
    folder, failed = Path(tempfile.mkdtemp(prefix="hourglass-repeat-")), 0
    folder.chmod(0o755)
    for name in arguments.examples or sorted(path.stem for path in EXAMPLES.glob("*.toml")):
        outcomes = list(runs(name, arguments.kernel, folder / name))
        first, differing = outcomes[0][1], faults(outcomes)
        verdict = "the same" if not differing else f"DIFFERS: {', '.join(differing)}"
        failed += bool(differing)
        outputs = len(first.digests.keys() - {"records"})
        print(f"{name:12} {first.digests.get('records', '')[:12]:12} {outputs:2} outputs  {verdict}", flush=True)
        if not differing:
            shutil.rmtree(folder / name)
    if failed:
        print(f"{failed} differ; their runs are in {folder}")
    else:
        folder.rmdir()
    return int(bool(failed))


if __name__ == "__main__":
    program(main)
