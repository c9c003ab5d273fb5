# SPDX-License-Identifier: Apache-2.0
"""Builds guest kernels and keeps them in the cache, by content key and by name.

kernels/KEY/          linux, config, build.log, kernel.json: complete, or not there at all
kernels/names/NAME    which key a name stands for now, and how it was made
work/NAME/            the working tree, see worktree.py
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hourglass import locks, resources
from hourglass.contract.kernels import CHOICES, SUITES, VARIANT
from hourglass.contract.modules import Module
from hourglass.engine import paths, process
from hourglass.engine.kernel import ccache, config, hooks, source, trees, tune, worktree
from hourglass.engine.kernel import modules as own
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.recipe import Recipe, check_prerequisites
from hourglass.engine.kernel.source import Source
from hourglass.errors import HourglassError, InputError
from hourglass.files import replacing, write

USUAL_STEPS = 1300
"""How many lines make prints for a whole kernel, until one was built here."""

KEPT = 40
"""How many kernels the cache keeps: each is some megabytes, and each change of a driver makes one."""

MAKE = [
    "make", "ARCH=um", "KBUILD_BUILD_TIMESTAMP=2024-01-01", "KBUILD_BUILD_USER=hourglass",
    "KBUILD_BUILD_HOST=hourglass", "KBUILD_BUILD_VERSION=1", "SOURCE_DATE_EPOCH=1704067200", "LOCALVERSION=",
]  # fmt: skip
_STEP = re.compile(rb"^  [A-Z][A-Z0-9_.-]* ")
_TELLING = re.compile(r"error:|can't open|Error |undefined reference|No space left|multiple definition|No rule to make")


class BuildError(HourglassError):
    """The compiler or the configuration refuses the source: what failed, the log, the lines that matter."""


class SourceError(BuildError):
    """The compiler refuses a module of the user's own: its words."""

    status = 2


Report = Callable[[float, str], None]
"""Progress of a build: the share that is done, from 0 to 1 and estimated, and what goes on."""


def build(
    version_or_path: str | Path,
    name: str | None = None,
    progress: Report | None = None,
    jobs: int | None = None,
    variant: str | None = None,
    without: Sequence[str] = (),
    tuned: bool = False,
    modules: Sequence[Module] = (),
    update: bool = False,
) -> BuiltKernel:
    """Builds a kernel of the list, or a tree under a name of the user's, unless the cache has its key already.

    `variant` adds kernel/config/VARIANT.config; `without` leaves hooks out; `modules` are compiled in. A `tuned`
    kernel takes the place of the plain one, whose key it has: it computes the same. `update`: of the release
    that the suite has now. Raises InputError, MissingError, or HourglassError with the log and what the compiler said.
    """
    report = progress or (lambda _, __: None)
    check_prerequisites()
    with find_source(version_or_path, name, report, update) as origin:
        version = hooks.tree_version(origin.tree)
        recipe = Recipe(origin.name, origin.identity, version, variant, tuple(sorted(without)), tuple(modules))
        work = paths.cache() / "work" / slot(recipe, origin)
        busy = f"waiting for another process that builds Linux {recipe.label}"
        with locks.held(work.with_name(f"{work.name}.lock"), lambda: report(0.0, busy)):
            kernel = load(recipe.key(), recipe.label)
            if kernel is None or (tuned and recipe.tunable) > kernel.tuned:
                key = make_ready(work, recipe, origin, report)
                kernel = compile_all(Job(work, key, recipe, jobs or len(os.sched_getaffinity(0)), report), tuned)
        remember(recipe, origin, kernel.key)
    return kernel


def slot(recipe: Recipe, origin: Source) -> str:
    """The working tree's name: one for all modules, which take turns in it."""
    plain = replace(recipe, name=origin.slot or origin.name, modules=())
    return plain.label + (f"{VARIANT}modules" if recipe.modules else "")


def make_ready(work: Path, recipe: Recipe, origin: Source, report: Report) -> str:
    """A working tree with source, hooks and configuration; gives the key of what it makes."""
    key, files, wanted = read_ingredients(recipe, origin)
    base = work.with_name(origin.slot or origin.name)
    if work != base and not worktree.built(work) and worktree.built(base):
        report(0.0, f"copying the objects of {origin.name}")
        worktree.clone(base, work)
    report(0.0, "preparing the source tree")
    worktree.prepare(work, origin, files)
    known = recipe.identity if origin.packaged else worktree.kconfig(work)
    configure(work, recipe, wanted, known, strict=origin.packaged)
    return key


def read_ingredients(recipe: Recipe, origin: Source) -> tuple[str, hooks.Overlay, config.Options]:
    """The key, and what it stands for, read again if somebody edits kernel/ meanwhile."""
    own.refuse_known(origin.tree, recipe.modules)
    while True:
        key = recipe.key()
        files = own.laid(hooks.overlay(origin.tree, without=recipe.without), recipe.modules)
        wanted = config.merge(config.fragments(resources.KERNEL / "config", recipe.version, recipe.variant))
        if key == recipe.key():
            return key, files, wanted


@contextmanager
def find_source(
    version_or_path: str | Path, name: str | None, report: Report, update: bool = False
) -> Iterator[Source]:
    """The source that the user means: a packaged version, or a tree (`trees.py`) and the name for it."""
    words = str(version_or_path)
    if words in SUITES and name in {None, words}:
        yield source.packaged(words, lambda text: report(0.0, text), update=update)
        return
    if update:
        raise InputError("kernel build --update", words, f"for a kernel of the list: {CHOICES}")
    if name is None:
        trees.parts(words)
        raise InputError("kernel build --name", None, "a tree of your own needs a name")
    with trees.given(words, name, report) as found:
        yield found


@dataclass(frozen=True)
class Job:
    """A kernel to be compiled: the configured tree, the key of what it makes, and how many processes make starts."""

    work: Path
    key: str
    recipe: Recipe
    jobs: int
    report: Report

    def make(self, words: list[str], what: str, work: Path, usual: int | None) -> int:
        """Runs make in a tree and gives its steps; `usual`: how many those are, if known."""
        steps, start = 0, time.monotonic()

        def step() -> None:
            nonlocal steps
            steps += 1
            self.report(*estimate(what, steps, usual, time.monotonic() - start))

        self.report(0.0, what)
        log, title = log_of(self.work), f"building Linux {self.recipe.label}"
        run_make(work, title, [f"-j{self.jobs}", "linux", *words], step, log)
        return steps


def compile_all(job: Job, tuned: bool) -> BuiltKernel:
    """From a configured tree to a kernel in the cache: first the plain one, and of it the tuned one, if wanted."""
    again = worktree.begin(job.work)
    usual = paths.cache() / "kernels" / "steps"
    known = int(usual.read_text()) if usual.is_file() else USUAL_STEPS
    try:
        steps = job.make([], "compiling", job.work, None if again else known)
    except BuildError as error:
        if again:  # make has left no half of a file: what was there goes on from here
            worktree.finish(job.work)
        if said := own.blamed(log_of(job.work), job.recipe.modules):
            names = " and ".join(one.name for one in job.recipe.modules)
            head = f"{names}: does not compile with Linux {job.recipe.name}"
            raise SourceError("\n".join([head, *said, f"build log: {log_of(job.work)}"])) from error
        raise
    worktree.finish(job.work)
    if not again:
        usual.parent.mkdir(parents=True, exist_ok=True)
        usual.write_text(str(steps))
    plain = facts(job.work, job.key, job.recipe.label)
    if not (tuned and job.recipe.tunable):
        return keep(job.work, plain)
    with worktree.copied(job.work) as copy:
        count = len(tune.objects())
        made = replace(plain, linux=copy / "linux", config=copy / ".config")
        tune.tune(copy, made, lambda words, what: job.make(words, what, copy, count))
        return keep(job.work, replace(made, tuned=True))


def run_make(
    work: Path, what: str, words: list[str], step: Callable[[], None] = lambda: None, log: Path | None = None
) -> None:
    """Runs make, whose log is beside the tree; `step` hears of each file.

    Raises HourglassError that says `what` failed, with the lines that matter.
    """
    log, command = log or log_of(work), [*MAKE, *words]
    with log.open("ab") as file, process.group(command, work, ccache.environment(), grace_s=5.0) as child:
        assert child.stdout is not None
        for line in child.stdout:
            file.write(line)
            if _STEP.match(line):
                step()
        status = child.wait()
    if status != 0:
        raise failure(f"{what} failed", log)


def estimate(what: str, steps: int, total: int | None, elapsed_s: float) -> tuple[float, str]:
    """The share done and a text with the time taken and to go, from make's steps so far and those of a whole build."""
    taken = f"{what}, {elapsed_s:.0f} s"
    if total is None:
        return 0.0, f"{taken}, {steps} files"
    share = min(steps / total, 0.99)
    return share, f"{taken}, about {elapsed_s / share - elapsed_s:.0f} s left" if steps >= 50 else taken


def configure(work: Path, recipe: Recipe, wanted: config.Options, known: str, strict: bool) -> None:
    """Writes .config and checks that nothing wanted got lost. Skipped when nothing that decides it changed: `known`
    stands for the options that the tree has.

    An option that a tree of the user's does not know at all is tolerated unless `strict`.
    """
    log, fragment, stamp = log_of(work), work / ".hourglass-fragment", work / ".hourglass-configured"
    log.write_text(f"# {recipe}\n")
    kconfigs = sorted((work / name).read_bytes() for name in overlaid(work) if "Kconfig" in Path(name).name)
    state = f"{known}\n{config.render(wanted)}" + b"\n".join(kconfigs).decode(errors="replace")
    if stamp.is_file() and stamp.read_text() == state:
        return
    stamp.unlink(missing_ok=True)
    fragment.write_text(config.render(wanted))
    for target in (["allnoconfig", f"KCONFIG_ALLCONFIG={fragment.name}"], ["olddefconfig"]):
        run_make(work, f"configuring Linux {recipe.label}", target)
    gone = config.lost(wanted, config.parse((work / ".config").read_text()))
    gone = [option for option in gone if strict or declared(work, option)]
    if gone:
        raise BuildError(f"Linux {recipe.label} does not take these options of kernel/config: {', '.join(gone)}")
    stamp.write_text(state)


def overlaid(work: Path) -> list[str]:
    """The files of the working tree that hooks and drivers changed or added."""
    return (work / hooks.MANIFEST).read_text().splitlines()


def declared(work: Path, option: str) -> bool:
    """Whether any Kconfig file of the tree declares an option ("CONFIG_X=y")."""
    name = option.split("=")[0].removeprefix("CONFIG_")
    pattern = rf"^\s*(menu)?config\s+{name}\s*$"
    return subprocess.run(["grep", "-rqE", "--include=Kconfig*", pattern, "."], cwd=work, check=False).returncode == 0


def failure(what: str, log: Path) -> BuildError:
    """The error of a failed make: the log's path and its telling lines."""
    lines = log.read_text(errors="replace").splitlines()
    telling = [line for line in lines if _TELLING.search(line)][:8] or lines[-8:]
    return BuildError("\n".join([what, f"build log: {log}", *(f"  | {line}" for line in telling)]))


def facts(work: Path, key: str, label: str) -> BuiltKernel:
    """The kernel that a working tree holds, a plain one."""
    release = (work / "include/config/kernel.release").read_text().strip()
    hz = int(config.parse((work / ".config").read_text())["CONFIG_HZ"])
    return BuiltKernel(label, release, key, work / "linux", work / ".config", hz, tuned=False)


def keep(work: Path, kernel: BuiltKernel) -> BuiltKernel:
    """Copies what a build made into the cache; the entry appears complete, by a rename. Of a tuned kernel whose plain
    one is there, and perhaps at work, the program alone changes."""
    kernels = paths.cache() / "kernels"
    place = kernels / kernel.key
    described = json.dumps({"release": kernel.release, "hz": kernel.hz, "tuned": kernel.tuned}).encode()
    if place.is_dir():
        with replacing(place / "linux") as fresh:
            shutil.copy2(kernel.linux, fresh)
        write(place / "kernel.json", described)
    else:
        with replacing(place) as fresh:
            fresh.mkdir(parents=True)
            shutil.copy2(kernel.linux, fresh / "linux")
            shutil.copy2(kernel.config, fresh / "config")
            shutil.copy2(log_of(work), fresh / "build.log")
            (fresh / "kernel.json").write_bytes(described)
    paths.keep_newest(kernels.glob("?" * len(kernel.key)), KEPT)
    kept = load(kernel.key, kernel.name)
    assert kept is not None, "it was just put there"
    return kept


def log_of(work: Path) -> Path:
    """The build log of a working tree: beside it, so that it outlives a tree made anew."""
    return work.with_name(f"{work.name}.log")


def load(key: str, label: str) -> BuiltKernel | None:
    """The cache's kernel of that key."""
    folder = paths.cache() / "kernels" / key
    described = folder / "kernel.json"
    if not described.is_file():
        return None
    read = json.loads(described.read_text())
    folder.touch()
    return BuiltKernel(
        label, read["release"], key, folder / "linux", folder / "config", read["hz"], tuned=read.get("tuned", False)
    )


def remember(recipe: Recipe, origin: Source, key: str) -> None:
    """Lets a name stand for a key, atomically."""
    names = paths.cache() / "kernels" / "names"
    names.mkdir(parents=True, exist_ok=True)
    record = {
        "key": key, "name": recipe.name, "identity": recipe.identity, "version": recipe.version,
        "variant": recipe.variant, "without": recipe.without,
        "tree": None if origin.packaged else origin.asked or str(origin.tree),
    }  # fmt: skip
    fresh = names / f".{recipe.label}.{os.getpid()}"
    fresh.write_text(json.dumps(record))
    fresh.replace(names / recipe.label)
