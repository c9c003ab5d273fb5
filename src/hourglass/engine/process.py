# SPDX-License-Identifier: Apache-2.0
"""Programs that are started as a group of their own and never outlive the one who started them.

A started program leads a new session, so a Ctrl-C at the terminal reaches only us and we decide; the kernel kills it
when we die, however we die (PR_SET_PDEATHSIG); leaving the `with` block kills the whole group, however it is left.
"""

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a Python process beside others that have the other CPUs: threads that wait for work take 4 % of a
sweep of short runs."""

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITIES = 64
_LIBC = ctypes.CDLL(None)


def _bind_to(parent: int, powerless: bool, cpu: int | None) -> Callable[[], None]:
    """What the child does before exec: dies with `parent`, dumps no core, stays on `cpu`, has no capabilities."""

    def prepare() -> None:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        if powerless:
            _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            for capability in range(_CAPABILITIES):  # refused to those who have none
                _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
            _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # these pass exec whatever the above says
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.getppid() != parent:  # the parent died before prctl took effect
            os._exit(127)

    return prepare


@contextmanager
def group(
    argv: Sequence[str | Path],
    cwd: Path,
    env: Mapping[str, str],
    grace_s: float = 0.0,
    powerless: bool = False,
    cpu: int | None = None,
    linger_s: float = 0.0,
    fds: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a program whose stdout and stderr are one pipe.

    On exit what is left of its group gets SIGTERM (if there is a grace) and SIGKILL. A `powerless` program has no
    capabilities even if we are root; `cpu` is the only one it runs on, `fds` are descriptors that it gets. A process
    that left the group, and cleans up behind it, is waited for until it closes its output, at most `linger_s`; what it
    says then is lost to the caller.
    """
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=fds,
        preexec_fn=_bind_to(os.getpid(), powerless, cpu),
    )
    try:
        yield child
    finally:
        if grace_s and child.poll() is None:
            kill_group(child, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
        kill_group(child, signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            if linger_s:
                _drain(child.stdout.fileno(), linger_s)
            child.stdout.close()


def _drain(pipe: int, longest_s: float) -> None:
    """Reads until everybody has closed the other end, but no longer."""
    deadline = time.monotonic() + longest_s
    while (left := deadline - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
        if not os.read(pipe, 1 << 16):
            return


def piped(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a program of which we have input, output and complaints, each a pipe; whoever asked ends it."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_bind_to(os.getpid(), False, None),
    )


def said(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What a program says until it ends."""
    bound = _bind_to(os.getpid(), False, None)
    return subprocess.run(argv, text=True, capture_output=True, env=env, check=False, preexec_fn=bound)


def kill_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signals every process of the child's group that is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def clean_environment() -> dict[str, str]:
    """The environment of a build: search path, home and proxies of ours; nothing that steers make or the compiler."""
    kept = ("PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C", "TZ": "UTC"}


def missing_tools(tools: Mapping[str, str]) -> list[str]:
    """The packages of those tools (tool → package) that are not on the search path, in order, each once."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted({package for tool, package in tools.items() if shutil.which(tool, path=path) is None})
