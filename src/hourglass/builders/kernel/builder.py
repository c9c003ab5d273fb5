# SPDX-License-Identifier: Apache-2.0
"""Build guest kernels and store them in the cache, by key and by name.

kernels/KEY/          linux, config, build.log, kernel.json, perhaps tuned, a second program: complete, or absent
kernels/names/NAME    the key of a name's last build, and its inputs
work/NAME/            the working tree, see worktree.py
"""

import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hourglass import locks, resources
from hourglass.builders.kernel import (
    ccache,
    config,
    confined_tools,
    custom_modules,
    hooks,
    relink,
    source_tree,
    tree_spec,
    tune,
    worktree,
)
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.recipe import BPF_VARIANT, Recipe, check_prerequisites
from hourglass.builders.kernel.source_tree import SourceTree
from hourglass.builders.kernel.tune import Trainer
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.kernels import CHOICES, SUITES, VARIANT
from hourglass.errors import HourglassError, InputError
from hourglass.files import BoundedLog, replacing, write
from hourglass.host import directories, hardware, process, sandbox

TYPES_TOOL = "tools/Makefile"
"""The file of a source for the tool that reads the kernel's types."""

LINE_MAX = 1 << 16
"""Bytes of a line of make's output that are read at a time. A C file can print a longer one."""

USUAL_STEPS = 1720
"""make's lines for a complete kernel, until its first build on this machine."""

CACHED_MAX = 40
"""Kernels in the cache. Each takes some megabytes, and each change of a driver adds one."""

MAKE = [
    "make", "ARCH=um", "KBUILD_BUILD_TIMESTAMP=2024-01-01", "KBUILD_BUILD_USER=hourglass",
    "KBUILD_BUILD_HOST=hourglass", "KBUILD_BUILD_VERSION=1", "SOURCE_DATE_EPOCH=1704067200", "LOCALVERSION=",
]  # fmt: skip
_STEP = re.compile(rb"^  [A-Z][A-Z0-9_.-]* ")
_CAUSE = re.compile(r"error:|can't open|Error |undefined reference|No space left|multiple definition|No rule to make")


class BuildError(HourglassError):
    """The compiler or the configuration refused the source. The message has the log's path and the lines with the
    cause."""

    code = "kernel-build"


class SourceError(BuildError):
    """The compiler refused a custom module. The message quotes it."""

    status = 2
    code = "module-build"


Report = Callable[[float, str], None]
"""Receives the progress of a build: the estimated share, from 0 to 1, and the current step."""


def build(
    version_or_path: str | Path,
    name: str | None = None,
    progress: Report | None = None,
    jobs: int | None = None,
    variant: str | None = None,
    without: Sequence[str] = (),
    trainer: Trainer | None = None,
    modules: Sequence[KernelModule] = (),
    update: bool = False,
) -> BuiltKernel:
    """Build a kernel of the list, or a tree under a name of the user's choice, unless the cache has its key.

    `variant` adds kernel/config/VARIANT.config. `without` leaves hooks out. `modules` are compiled in. `trainer` runs
    the plans for a tuned kernel, which replaces the plain one with the same key: both compute the same. `update`: use
    the suite's current release. Raises InputError, MissingError, or HourglassError with the log and the compiler's
    messages.
    """
    report = progress or (lambda _, __: None)
    with turn(version_or_path, name, report, variant, without, modules, update) as (work, recipe, origin):
        kernel = load(recipe.key(), recipe.label)
        if kernel is None or (trainer is not None and recipe.tunable) > kernel.tuned:
            key, state = make_ready(work, recipe, origin, report)
            job = Job(work, key, recipe, jobs or hardware.cpus(), report, state)
            kernel = compile_all(job, trainer)
        remember(recipe, origin, kernel.key)
    return kernel


def configuration(name: str, variant: str | None, report: Report) -> config.Options:
    """Return all options of a kernel of the list, without compiling it."""
    with turn(name, None, report, variant) as (work, recipe, origin):
        make_ready(work, recipe, origin, report)
        return config.parse((work / ".config").read_text())


@contextmanager
def turn(
    version_or_path: str | Path,
    name: str | None,
    report: Report,
    variant: str | None,
    without: Sequence[str] = (),
    modules: Sequence[KernelModule] = (),
    update: bool = False,
) -> Iterator[tuple[Path, Recipe, SourceTree]]:
    """Yield a kernel's working tree, which no other process uses meanwhile, with its recipe and source."""
    if variant is None:
        version_or_path, variant = config.kernel_and_variant(str(version_or_path))
    check_prerequisites(variant)
    having = TYPES_TOOL if variant == BPF_VARIANT else "Makefile"
    with find_source(version_or_path, name, report, update, having) as origin:
        version = hooks.tree_version(origin.tree)
        recipe = Recipe(origin.name, origin.identity, version, variant, tuple(sorted(without)), tuple(modules))
        work = directories.cache() / "work" / slot(recipe, origin)
        busy = f"waiting for another process that builds Linux {recipe.label}"
        with locks.exclusive(work.with_name(f"{work.name}.lock"), lambda: report(0.0, busy)):
            yield work, recipe, origin


def slot(recipe: Recipe, origin: SourceTree) -> str:
    """Return the working tree's name. All modules share a tree and take turns in it."""
    plain = replace(recipe, name=origin.slot or origin.name, modules=())
    return plain.label + (f"{VARIANT}modules" if recipe.modules else "")


def make_ready(work: Path, recipe: Recipe, origin: SourceTree, report: Report) -> tuple[str, str]:
    """Prepare a working tree with source, hooks and configuration. Return the kernel's key, and the state of all but
    the text of modules; "" for a tree that cannot be relinked."""
    key, files, options = read_ingredients(recipe, origin)
    plain_work = work.with_name(origin.slot or origin.name)
    if work != plain_work and not worktree.built(work) and worktree.built(plain_work):
        report(0.0, f"copying the objects of {origin.name}")
        worktree.clone(plain_work, work)
    report(0.0, "preparing the source tree")
    worktree.prepare(work, origin, files)
    custom_modules.delete_objects(work, recipe.modules)
    option_state = recipe.identity if origin.packaged else worktree.kconfig(work)
    configure(work, recipe, options, option_state, strict=origin.packaged)
    if not recipe.modules or not origin.packaged:
        return key, ""
    return key, relink.digest(files, replace(recipe, modules=()).key(), (work / ".config").read_text())


def read_ingredients(recipe: Recipe, origin: SourceTree) -> tuple[str, hooks.Overlay, config.Options]:
    """Return the key, the files and the options behind it. They are read again if kernel/ changes at the same
    time."""
    custom_modules.refuse_builtin_names(origin.tree, recipe.modules)
    while True:
        key = recipe.key()
        files = custom_modules.with_modules(hooks.overlay(origin.tree, without=recipe.without), recipe.modules)
        options = config.merge(config.fragments(resources.KERNEL / "config", recipe.version, recipe.variant))
        if key == recipe.key():
            return key, files, options


@contextmanager
def find_source(
    version_or_path: str | Path, name: str | None, report: Report, update: bool = False, having: str = "Makefile"
) -> Iterator[SourceTree]:
    """Yield the user's source: a packaged version with the file `having`, or a tree (`tree_spec.py`) with the name for
    it."""
    spec = str(version_or_path)
    if spec in SUITES and name in {None, spec}:
        yield source_tree.packaged(spec, lambda text: report(0.0, text), having, update)
        return
    if update:
        raise InputError("kernel build --update", spec, f"must be a kernel of the list: {CHOICES}")
    if name is None:
        tree_spec.parse(spec)
        raise InputError("kernel build --name", None, "is missing; name your tree")
    with tree_spec.open_tree(spec, name, report) as source:
        yield source


@dataclass(frozen=True)
class Job:
    """A kernel to compile: the configured tree, the key, and the number of make's processes. `state`: see
    `make_ready`."""

    work: Path
    key: str
    recipe: Recipe
    jobs: int
    report: Report
    state: str = ""

    def make(self, arguments: list[str], task: str, work: Path, usual: int | None) -> int:
        """Run make in a tree and return the number of its steps. `usual`: the expected number, if known."""
        steps, start = 0, time.monotonic()

        def step() -> None:
            nonlocal steps
            steps += 1
            self.report(*estimate(task, steps, usual, time.monotonic() - start))

        self.report(0.0, task)
        log, title = log_of(self.work), f"building Linux {self.recipe.label}"
        rules = confined_tools.compiler_rules(work) if self.recipe.modules else None
        run_make(work, title, [f"-j{self.jobs}", *arguments], step, log, rules)
        return steps


def compile_all(job: Job, trainer: Trainer | None) -> BuiltKernel:
    """Compile a configured tree and store the kernel in the cache: first the plain one, then, if requested, the tuned
    one."""
    continued = worktree.interrupted(job.work)
    incremental = worktree.begin(job.work)
    steps_file = directories.cache() / "kernels" / "step_counts" / job.recipe.name
    usual_steps = int(steps_file.read_text()) if steps_file.is_file() else USUAL_STEPS
    try:
        if incremental and relink.is_possible(job.work, job.state):
            steps = relink.relink(
                job.work, job.recipe.modules, lambda words: job.make(words, "linking", job.work, None)
            )
        else:
            relink.forget(job.work)
            steps = job.make(["linux"], "compiling", job.work, None if incremental else usual_steps)
            relink.remember(job.work, job.state)
    except BuildError as error:
        if incremental:  # make left no partial file: the next build continues from the objects
            worktree.finish(job.work)
        if messages := custom_modules.compiler_messages(log_of(job.work), job.recipe.modules):
            names = " and ".join(module.name for module in job.recipe.modules)
            heading = f"{names}: does not compile with Linux {job.recipe.name}"
            raise SourceError("\n".join([heading, *messages, f"build log: {log_of(job.work)}"])) from error
        raise
    worktree.finish(job.work)
    if not incremental and not continued:
        write(steps_file, str(steps).encode())
    plain = facts(job.work, job.key, job.recipe.label)
    if trainer is None or not job.recipe.tunable:
        return store(job.work, plain)
    with worktree.copied(job.work) as copy:
        count = len(tune.objects())
        tuned_kernel = replace(plain, linux=copy / "linux", config=copy / ".config")
        tune.tune(copy, tuned_kernel, lambda targets, task: job.make(["linux", *targets], task, copy, count), trainer)
        return store(job.work, replace(tuned_kernel, tuned=True))


def run_make(
    work: Path,
    task: str,
    targets: list[str],
    step: Callable[[], None] = lambda: None,
    log: Path | None = None,
    rules: sandbox.Rules | None = None,
) -> None:
    """Run make. Its log is next to the tree. `step` is called for each file. `rules` confine make.

    Raises HourglassError "`task` failed" with the lines that have the cause.
    """
    log, command = log or log_of(work), [*MAKE, *targets]
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(log.open("ab"))
        confine: Callable[[], None] | None = None
        environment = ccache.environment()
        if rules is not None:
            environment["TMPDIR"] = str(work)
            confine = stack.enter_context(confined_tools.limits(rules))
        child = stack.enter_context(process.group(command, work, environment, grace_s=5.0, confine=confine))
        assert child.stdout is not None
        bounded = BoundedLog(file)
        for line in iter(partial(child.stdout.readline, LINE_MAX), b""):
            bounded.write(line.rstrip(b"\n"))
            if _STEP.match(line):
                step()
        status = child.wait()
    if status != 0:
        raise failure(f"{task} failed", log)


def estimate(task: str, steps: int, total: int | None, elapsed_s: float) -> tuple[float, str]:
    """Return the share and a text with the elapsed and the remaining time, from make's steps so far and those of a
    complete build."""
    elapsed = f"{task}, {elapsed_s:.0f} s"
    if total is None:
        return 0.0, f"{elapsed}, {steps} files"
    share = min(steps / total, 0.99)
    return share, f"{elapsed}, about {elapsed_s / share - elapsed_s:.0f} s left" if steps >= 50 else elapsed


def configure(work: Path, recipe: Recipe, required: config.Options, option_state: str, strict: bool) -> None:
    """Write .config and check that it has all required options. Skipped if the inputs are those of the last time;
    `option_state` represents the options of the tree.

    Options that a tree of the user does not declare are tolerated unless `strict`.
    """
    log, fragment, stamp = log_of(work), work / ".hourglass-fragment", work / ".hourglass-configured"
    log.write_text(f"# {recipe}\n")
    kconfigs = sorted((work / name).read_bytes() for name in overlaid(work) if "Kconfig" in Path(name).name)
    state = f"{option_state}\n{config.render(required)}" + b"\n".join(kconfigs).decode(errors="replace")
    if stamp.is_file() and stamp.read_text() == state:
        return
    stamp.unlink(missing_ok=True)
    fragment.write_text(config.render(required))
    for target in (["allnoconfig", f"KCONFIG_ALLCONFIG={fragment.name}"], ["olddefconfig"]):
        run_make(work, f"configuring Linux {recipe.label}", target)
    missing = config.unmet(required, config.parse((work / ".config").read_text()))
    missing = [option for option in missing if strict or declared(work, option)]
    if missing:
        raise BuildError(f"Linux {recipe.label} ignores these options of kernel/config: {', '.join(missing)}")
    stamp.write_text(state)


def overlaid(work: Path) -> list[str]:
    """Return the files of the working tree that hooks and drivers changed or added."""
    return (work / hooks.MANIFEST).read_text().splitlines()


def declared(work: Path, option: str) -> bool:
    """Return whether a Kconfig file of the tree declares an option ("CONFIG_X=y")."""
    name = option.split("=")[0].removeprefix("CONFIG_")
    pattern = rf"^\s*(menu)?config\s+{name}\s*$"
    return subprocess.run(["grep", "-rqE", "--include=Kconfig*", pattern, "."], cwd=work, check=False).returncode == 0


def failure(heading: str, log: Path) -> BuildError:
    """Return the error of a failed make, with the log's path and the lines that have the cause."""
    lines = log.read_text(errors="replace").splitlines()
    causes = [line for line in lines if _CAUSE.search(line)][:8] or lines[-8:]
    return BuildError("\n".join([heading, f"build log: {log}", *(f"  | {line}" for line in causes)]))


def facts(work: Path, key: str, label: str) -> BuiltKernel:
    """Return the plain kernel in a working tree."""
    release = (work / "include/config/kernel.release").read_text().strip()
    hz = int(config.parse((work / ".config").read_text())["CONFIG_HZ"])
    return BuiltKernel(label, release, key, work / "linux", work / ".config", hz, tuned=False)


def store(work: Path, kernel: BuiltKernel) -> BuiltKernel:
    """Copy a build into the cache. A new entry appears complete, by a rename. The program of a tuned kernel is added to
    the plain one's entry: another process may be about to start the plain program."""
    kernels = directories.cache() / "kernels"
    folder = kernels / kernel.key
    description = {"release": kernel.release, "hz": kernel.hz, "tuned": kernel.tuned}
    if folder.is_dir():
        program = "tuned" if kernel.tuned else "linux"
        with replacing(folder / program) as fresh:
            shutil.copy2(kernel.linux, fresh)
        write(folder / "kernel.json", json.dumps(description | {"program": program}).encode())
    else:
        with replacing(folder) as fresh:
            fresh.mkdir(parents=True)
            shutil.copy2(kernel.linux, fresh / "linux")
            if "\nCONFIG_DEBUG_INFO=y\n" in kernel.config.read_text():
                strip_debug(fresh / "linux")
            shutil.copy2(kernel.config, fresh / "config")
            shutil.copy2(log_of(work), fresh / "build.log")
            (fresh / "kernel.json").write_text(json.dumps(description))
    directories.keep_newest(kernels.glob("?" * len(kernel.key)), CACHED_MAX)
    stored = load(kernel.key, kernel.name)
    assert stored is not None, "it was just stored"
    return stored


def strip_debug(program: Path) -> None:
    """Delete a kernel's debugging information. A C file may be a part of it, so the tool is confined."""
    status, _, messages = confined_tools.run(["strip", "--strip-debug", program], program.parent)
    if status:
        raise BuildError(f"strip failed: {messages.strip()}")


def log_of(work: Path) -> Path:
    """Return the path of a working tree's build log. It is next to the tree, so it outlives the tree."""
    return work.with_name(f"{work.name}.log")


def load(key: str, label: str) -> BuiltKernel | None:
    """Return the cache's kernel with that key."""
    folder = directories.cache() / "kernels" / key
    description = folder / "kernel.json"
    if not (directories.mark_used(folder) and description.is_file()):
        return None
    facts = json.loads(description.read_text())
    program, tuned = folder / facts.get("program", "linux"), facts.get("tuned", False)
    return BuiltKernel(label, facts["release"], key, program, folder / "config", facts["hz"], tuned=tuned)


def remember(recipe: Recipe, origin: SourceTree, key: str) -> None:
    """Store the key of a name, atomically."""
    record = {
        "key": key, "name": recipe.name, "identity": recipe.identity, "version": recipe.version,
        "variant": recipe.variant, "without": recipe.without,
        "tree": None if origin.packaged else origin.spec or str(origin.tree),
    }  # fmt: skip
    write(directories.cache() / "kernels" / "names" / recipe.label, json.dumps(record).encode())
