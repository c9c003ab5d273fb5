# SPDX-License-Identifier: Apache-2.0
"""Run a plan in a guest kernel in virtual time.

Of the host, the guest sees its root archive, the run directory (as /out), and read-only the folders that the plan names
as roots. `sandbox.py` enforces this. All its paths are relative to the run directory, because a kernel's command line
has no quoting. The guest ends when the plan ends. It is killed if its clock does not move, if this process dies, or if
the user interrupts."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from hourglass import files
from hourglass.builders import bpf, root
from hourglass.builders.approot import ReadyRoot
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.contract.capabilities import VIRTUAL, Capabilities
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.kernels import tools, version_of
from hourglass.contract.plan import EventStep, Plan
from hourglass.contract.plan.apps import Root
from hourglass.engine import cpu, host_conditions, supervise
from hourglass.engine.base import BuildReport, Outcome, Preload, Report
from hourglass.engine.console import Console, Event
from hourglass.engine.host_conditions import MEMORY_GIB, HostUse
from hourglass.engine.watchdog import GuestWatch, Watchdog, stall_s
from hourglass.errors import GuestError, HostError, HourglassError, MissingError
from hourglass.host import hardware, process, sandbox

START_NS = 1_704_067_200_000_000_000
"""The guest's clock at boot, 2024-01-01 UTC, so that no run depends on the date."""

NODES_IN_MEMORY, NODE_MIB = 2000, 0.5
"""Nodes for which `MEMORY_GIB` suffices, and the memory that each additional node needs."""

FILE_BYTES = 64 << 30
"""The largest file that a guest may write, and so the largest that the engine reads after it."""

PRIVATE = ".guest"
"""The folder of the run directory with files for the guest's start; deleted afterwards."""

DECISIONS = f"{PRIVATE}/decisions"
"""The folder in which the agent looks for the steps of a decision."""

NO_RSEQ = "glibc.pthread.rseq=0"
"""For the C library in the guest's kernel: with rseq, the host writes to memory that a guest's processes lack."""

NO_GUESTS = "guests run only on Linux on x86-64"
NO_GUESTS_REMEDY = "make runs on such a machine; here you can show, compare, draw and export them"

UNCONFIGURED = "the scripts of these packages failed in the programs' root, so their configuration may be missing: {}"

CACHE_REMEDY = "set HOURGLASS_CACHE to a folder on another file system"

DEVICES = (Path("/dev/null"), Path("/dev/zero"), Path("/dev/ptmx"))
"""The devices of the host that a guest uses."""


@dataclass(frozen=True)
class Terminal:
    """An interactive program: its name, and the descriptor of its terminal's other end. Its virtual time is no faster
    than real time."""

    app: str
    fd: int


Controller = Callable[[Event], Sequence[EventStep]]
"""Returns the steps that a decision's event gets, from the state of the senders in it."""


@dataclass(frozen=True)
class Virtual:
    """A guest kernel. `arguments`: more of its command line, such as parameters of modules. `objects`: in BPF, which
    the guest loads before the set-up. `controller`: makes the decisions of a plan. `counts`: the folder to which a
    kernel of a PGO build writes; it may also write to the run directory."""

    kernel: BuiltKernel
    arguments: tuple[str, ...] = ()
    objects: tuple[Path, ...] = ()
    terminal: Terminal | None = None
    controller: Controller | None = None
    counts: Path | None = None
    name: ClassVar = VIRTUAL
    capabilities: ClassVar = Capabilities(
        nic="wire", own_kernel=True, virtual_time=True, radios=True, programs=True, captures=True, layers=True
    )

    @classmethod
    def ready(cls, name: str, report: BuildReport = lambda _, __: None, modules: Sequence[KernelModule] = ()) -> Self:
        """Return the engine on the kernel of a name, built if needed. The user's modules are compiled in, and those in
        BPF to objects. Raises MissingError."""
        from hourglass.builders.kernel import registry

        if not hardware.runs_guests():
            raise MissingError(NO_GUESTS, NO_GUESTS_REMEDY)
        arguments = (f"{module.name}.{key}={value}" for module in modules for key, value in module.parameters)
        loaded = [module for module in modules if module.is_bpf]
        kernel = registry.ensure(name, report, modules=[module for module in modules if not module.is_bpf])
        if loaded:
            bpf.check(kernel, loaded)
        return cls(kernel, tuple(arguments), tuple(bpf.compiled(kernel, module) for module in loaded))

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: BuildReport = lambda _, __: None) -> str:
        """Return the kernel's key, the root's, and the digests of the programs' roots, which are built if needed."""
        from hourglass.engine import program_root

        digests = [program_root.ready(planned, report).digest[:16] for planned in roots]
        digests += [files.sha256(file)[:16] for file in self.objects]
        guest_root = root.key(radios, tools(self.kernel.release), bool(self.objects))
        return " ".join([self.kernel.key, guest_root, *digests])

    def run(
        self, plan: Plan, directory: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """Execute a plan; see `Engine.run`. Raises MissingError if this machine cannot run guests."""
        from hourglass.engine import program_root

        for lack in host_conditions.settings(version_of(self.kernel.release)):
            raise lack
        watchdog = Watchdog(stall_s(len(plan.nodes)))
        roots = [program_root.ready(planned) for planned in plan.roots]
        wifi, terminal = bool(plan.radios), self.terminal

        def watched(child: subprocess.Popen[bytes], console: Console) -> supervise.StuckCheck:
            return GuestWatch(child, self.kernel.linux, console, watchdog).stuck

        guard = watched if terminal is None else supervise.silence_guard(math.inf)
        decide = None if self.controller is None else partial(_decide, self.controller, directory)
        if decide is not None:
            (directory / DECISIONS).mkdir(parents=True)
        with _pipe() as (events, line):
            guest = boot(
                self.kernel,
                directory,
                plan.seed,
                wifi=wifi,
                roots=roots,
                arguments=(*self.arguments, *more_memory(len(plan.nodes))),
                objects=self.objects,
                terminal=terminal,
                events=line,
                counts=self.counts,
            )
            verdict = partial(judge, before=HostUse.now())
            outcome = supervise.execute(plan, directory, guest, verdict, guard, progress, preload, events, decide)
        warnings = [UNCONFIGURED.format(" ".join(ready.unconfigured)) for ready in roots if ready.unconfigured]
        return replace(outcome, warnings=warnings + outcome.warnings)


def train(kernel: BuiltKernel, plan: Plan, directory: Path) -> None:
    """Carry out a plan in a kernel: a training run of its PGO build (`builders/kernel/tune.py`). The kernel writes its
    counts to its tree."""
    Virtual(kernel, counts=kernel.linux.parent).run(plan, directory)


def _decide(controller: Controller, directory: Path, guest: subprocess.Popen[bytes], event: Event) -> None:
    """Answer a decision. The guest looks for the answer without moving its clock, so its kernel is stopped until then.
    A signal to its group would reach its programs."""
    guest.send_signal(signal.SIGSTOP)
    steps = [step.model_dump(mode="json") for step in controller(event)]
    files.write(directory / DECISIONS / str(event["number"]), json.dumps(steps).encode())
    guest.send_signal(signal.SIGCONT)


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a pipe: read, write."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def boot(
    kernel: BuiltKernel,
    directory: Path,
    seed: int,
    wifi: bool = False,
    roots: Sequence[ReadyRoot] = (),
    arguments: tuple[str, ...] = (),
    objects: Sequence[Path] = (),
    terminal: Terminal | None = None,
    events: int | None = None,
    counts: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a guest in the run directory; its private files are deleted afterwards. `roots`: those of its programs;
    `arguments`: more for its kernel's command line; `objects`: in BPF; `events`: the descriptor for the agent's events,
    or None to ignore them; `counts`: another folder that it may write to. Raises MissingError."""
    if not os.access(kernel.linux, os.X_OK):
        raise MissingError(f"the kernel {kernel.linux} cannot be executed; its folder may be noexec", CACHE_REMEDY)
    private = directory / PRIVATE
    image = root.image(wifi, tools(kernel.release), bool(objects))
    rules = [
        (directory, sandbox.WRITE_PLAIN),
        (kernel.linux, sandbox.RUN),
        (image, sandbox.READ),
        (Path("/proc/cpuinfo"), sandbox.READ),
        *((path, sandbox.READ) for ready in roots for path in (ready.folder, ready.owners) if path is not None),
        *([(counts, sandbox.WRITE_PLAIN)] if counts is not None else []),
        *((device, sandbox.DEVICE) for device in DEVICES),
    ]
    try:
        private.mkdir(exist_ok=True)
        (private / "root.cpio").symlink_to(image)
        for number, ready in enumerate(roots):
            (private / f"root-{number}").symlink_to(ready.folder.absolute(), target_is_directory=True)
            if ready.owners is not None:
                (private / f"owners-{number}").symlink_to(ready.owners.absolute())
        for number, file in enumerate(objects):
            shutil.copyfile(file, private / f"bpf-{number}.o")
        if objects:
            arguments = (*arguments, f"bpf_objects={len(objects)}")  # in the agent's environment
        environment = {"TMPDIR": PRIVATE, "GLIBC_TUNABLES": NO_RSEQ}
        command_line = command(kernel, seed, len(roots), arguments, terminal, events)
        fds = ([] if terminal is None else [terminal.fd]) + ([] if events is None else [events])
        with (
            cpu.claim() as core,
            sandbox.confinement(rules, filtered=True, limits=[(resource.RLIMIT_FSIZE, FILE_BYTES)]) as confine,
            process.group(
                command_line, directory, environment, powerless=True, cpu=core, fds=fds, confine=confine
            ) as guest,
        ):
            yield guest
    finally:
        files.delete(private)


def more_memory(nodes: int) -> tuple[str, ...]:
    """Return the argument for the kernel's command line that gives a large testbed more than `MEMORY_GIB`."""
    more = nodes - NODES_IN_MEMORY
    return (f"mem={1024 * MEMORY_GIB + math.ceil(NODE_MIB * more)}M",) if more > 0 else ()


def command(
    kernel: BuiltKernel,
    seed: int,
    roots: int = 0,
    arguments: tuple[str, ...] = (),
    terminal: Terminal | None = None,
    events: int | None = None,
) -> list[str]:
    """Return the guest's command line. `roots`: the number of roots for programs; `arguments`: more for its kernel;
    `events`: the descriptor of the serial line for the agent's events."""
    return [
        str(kernel.linux),
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"mem={MEMORY_GIB}G",
        f"initrd={PRIVATE}/root.cpio",
        "hostfs=/proc/self/cwd",  # independent of its name; 6.12 requires an absolute path
        "root=98:0",  # unused; otherwise this and the console would follow the agent's arguments
        "console=tty0",
        f"uml_dir={PRIVATE}/",
        "con=null",
        "con0=null,fd:1",
        f"con1={f'fd:{terminal.fd},fd:{terminal.fd}' if terminal else 'null'}",
        "ssl=null",
        *([f"ssl0=null,fd:{events}"] if events is not None else []),
        "quiet",
        "loglevel=5",
        "random.trust_cpu=on",
        "thash_entries=1024",
        "fb_tunnels=none",  # no sit0 in every namespace: the tunnel is compiled in only for MAX_TCP_HEADER
        "bonding.max_bonds=0",  # no bond0 by itself
        "panic=-1",
        "cgroup_no_v1=all,named",  # its release_agent is a program that the kernel starts outside all nodes
        f"hourglass.seed={seed % 2**64}",
        *([f"hourglass.roots={roots}"] if roots else []),
        *(["hourglass.pace=1"] if terminal else []),
        *arguments,
        "rdinit=/init",
        "--",
        "/out/plan.json",
        "/out/records.arrows",
        *([terminal.app] if terminal else []),
    ]


def judge(console: Console, stuck: supervise.Stop | None, status: int, directory: Path, before: HostUse) -> None:
    """Raise the error for a guest's end; see `supervise.judge`. The cause may be the host, whose use was `before` when
    the guest started."""
    log = directory / "console.log"
    if (refused := host_conditions.refusal(console)) is not None:
        raise HostError(refused, log, console.tail())
    try:
        supervise.judge(console, stuck, status, directory, "the guest")
    except HourglassError as error:
        if status == -signal.SIGSYS:
            problem = "the guest made a system call that its sandbox forbids; it was killed"
            raise GuestError(problem, log, console.tail(), code="guest-sandbox") from error
        if (lack := host_conditions.cause(console, status, before)) is not None:
            raise HostError(lack, log, console.tail()) from error
        if not console.spoke and isinstance(error, GuestError):
            reason = f"{error.reason}, before its agent started; to examine this machine: hourglass doctor"
            raise GuestError(reason, log, error.tail, code=error.code) from error
        raise
