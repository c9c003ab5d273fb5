# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in a guest kernel in virtual time.

The guest sees these things of the host: its root archive, the run directory (as /out), a file of memory without a name,
and for its programs the folders that the plan names as roots, read-only. All paths it is given are relative to the run
directory, because a kernel's command line knows no quoting. It ends by itself when the plan ends; it is killed when its
clock stands still, when we die, or when the user interrupts.
"""

import math
import mmap
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from hourglass.contract.capabilities import VIRTUAL, Capabilities
from hourglass.contract.kernels import tools
from hourglass.contract.modules import Module
from hourglass.contract.plan import Plan
from hourglass.contract.plan_apps import Root
from hourglass.engine import approot, cpu, follow, paths, process, root
from hourglass.engine.base import Making, Outcome, Preload, Report
from hourglass.engine.console import Console
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.watchdog import GuestWatch, Watchdog, stall_s
from hourglass.errors import MissingError

START_NS = 1_704_067_200_000_000_000
"""The guest's clock at boot, 2024-01-01 UTC, so that no run depends on today."""

MEMORY = "2G"
"""Buffer limits and hash sizes follow it, so it is the same always; untouched memory costs nothing."""

PRIVATE = ".guest"
"""The folder of the run directory that holds what only the guest's start needs; gone afterwards."""

NO_RSEQ = "glibc.pthread.rseq=0"
"""For the C library in the guest's kernel: rseq has the host write to memory that a guest's processes do not have."""

_LEAST_MEMORY = 256 << 20


@dataclass(frozen=True)
class Terminal:
    """What makes a program interactive: its name, and the descriptor that is its terminal's other end. Time is then
    no faster than ours."""

    app: str
    fd: int


@dataclass(frozen=True)
class Virtual:
    """A guest kernel. `words`: more for its command line: parameters of modules, what kernels that look for faults
    want."""

    kernel: BuiltKernel
    words: tuple[str, ...] = ()
    terminal: Terminal | None = None
    name: ClassVar = VIRTUAL
    capabilities: ClassVar = Capabilities(
        nic="wire", own_kernel=True, virtual_time=True, radios=True, programs=True, captures=True, layers=True
    )

    @classmethod
    def ready(cls, name: str, report: Making = lambda _, __: None, modules: Sequence[Module] = ()) -> Self:
        """On the kernel of a name, built if need be, with modules of the user's own compiled in."""
        from hourglass.engine.kernel import store

        words = (f"{one.name}.{parameter}={value}" for one in modules for parameter, value in one.parameters)
        return cls(store.ensure(name, report, modules=modules), tuple(words))

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: Making = lambda _, __: None) -> str:
        """The kernel's key, the root's, and what stands for the programs' roots, which are made if need be."""
        made = [approot.ready(one, report).digest[:16] for one in roots]
        return " ".join([self.kernel.key, root.key(radios, tools(self.kernel.release)), *made])

    def run(
        self, plan: Plan, place: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """`Engine.run`. Raises MissingError when this machine cannot run guests."""
        watchdog = Watchdog(stall_s())
        roots = [approot.ready(one).folder for one in plan.roots]
        wifi, terminal = bool(plan.radios), self.terminal
        guest = boot(self.kernel, place, plan.seed, wifi=wifi, roots=roots, words=self.words, terminal=terminal)

        def watched(child: subprocess.Popen[bytes], console: Console) -> follow.Stuck:
            return GuestWatch(child, self.kernel.linux, console, watchdog).stuck

        guard = watched if terminal is None else follow.silence(math.inf)
        return follow.execute(plan, place, guest, judge, guard, progress, preload)


@contextmanager
def boot(
    kernel: BuiltKernel,
    directory: Path,
    seed: int,
    wifi: bool = False,
    roots: Sequence[Path] = (),
    words: tuple[str, ...] = (),
    terminal: Terminal | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A guest at work in the run directory; what it needs there beside the plan is gone afterwards. `roots`: folders
    that its programs see; `words`: more for its kernel's command line."""
    private = directory / PRIVATE
    try:
        private.mkdir(exist_ok=True)
        (private / "root.cpio").symlink_to(root.image(wifi, tools(kernel.release)))
        for place, folder in enumerate(roots):
            (private / f"root-{place}").symlink_to(folder.absolute(), target_is_directory=True)
        environment = {"TMPDIR": str(memory_folder()), "GLIBC_TUNABLES": NO_RSEQ}
        line = command(kernel, seed, len(roots), words, terminal)
        fds = [] if terminal is None else [terminal.fd]
        with (
            cpu.claim() as own,
            process.group(line, directory, environment, powerless=True, cpu=own, fds=fds) as guest,
        ):
            yield guest
    finally:
        shutil.rmtree(private, ignore_errors=True)


def command(
    kernel: BuiltKernel, seed: int, roots: int = 0, words: tuple[str, ...] = (), terminal: Terminal | None = None
) -> list[str]:
    """The guest's command line. `roots`: how many there are for programs; `words`: more for its kernel."""
    return [
        str(kernel.linux),
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"mem={MEMORY}",
        f"initrd={PRIVATE}/root.cpio",
        "hostfs=/proc/self/cwd",  # whatever its name is; 6.12 wants an absolute path
        "root=98:0",  # unused; this and the console would else be appended, behind the agent's arguments
        "console=tty0",
        f"uml_dir={PRIVATE}/",
        "con=null",
        "con0=null,fd:1",
        f"con1={f'fd:{terminal.fd},fd:{terminal.fd}' if terminal else 'null'}",
        "ssl=null",
        "quiet",
        "loglevel=5",
        "random.trust_cpu=on",
        "thash_entries=1024",
        "fb_tunnels=none",  # no sit0 in every namespace: the tunnel is compiled in for MAX_TCP_HEADER alone
        "panic=-1",
        f"hourglass.seed={seed % 2**64}",
        *([f"hourglass.roots={roots}"] if roots else []),
        *(["hourglass.pace=1"] if terminal else []),
        *words,
        "rdinit=/init",
        "--",
        "/out/plan.json",
        "/out/records.arrows",
        *([terminal.app] if terminal else []),
    ]


def judge(console: Console, stuck: str | None, status: int, directory: Path) -> None:
    """`follow.judge` of a guest. One that could not even begin is the machine's fault."""
    begun = console.ready or console.done or console.error is not None or console.panicked or stuck is not None
    text = "\n".join(console.tail())
    if not begun and "ptrace" in text and ("not permitted" in text or "denied" in text):
        raise MissingError("this machine forbids ptrace, which the guest kernel lives on", PTRACE_REMEDY)
    follow.judge(console, stuck, status, directory, "the guest")


PTRACE_REMEDY = "sysctl kernel.yama.ptrace_scope=1 (in a container: allow it SYS_PTRACE)"


def memory_folder() -> Path:
    """A folder for the guest's memory: with room, and where memory may be executed. Raises MissingError."""
    candidates = [Path("/dev/shm"), paths.temporary(), Path("/var/tmp"), paths.home()]
    for folder in candidates:
        if folder.is_dir() and shutil.disk_usage(folder).free >= _LEAST_MEMORY and executable(folder):
            return folder
    tried = ", ".join(map(str, candidates))
    what = f"no folder for the guest's memory: it needs 256 MiB and a mount without noexec; tried {tried}"
    raise MissingError(what, "mount -o remount,exec /dev/shm, or set TMPDIR to such a folder")


def executable(folder: Path) -> bool:
    """Whether a file there can be mapped for execution."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True
