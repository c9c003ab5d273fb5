# SPDX-License-Identifier: Apache-2.0
"""Start programs as process groups that never outlive this process.

A started program leads a new session, so Ctrl-C at the terminal reaches only this process, which decides. Linux
kills the program when this process dies for any reason (PR_SET_PDEATHSIG). Leaving the `with` block for any reason
kills the whole group."""

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a Python process among others that use the other CPUs. Waiting threads cost 4 % of a sweep of
short runs."""

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITIES = 64
_LIBC = ctypes.CDLL(None)
_FILES = 2**16


def die_with(parent: int) -> bool:
    """Let this process die with its parent, if the kernel can do that. Return whether the parent lives."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    return os.getppid() == parent


def _bind_to(
    parent: int, powerless: bool, cpu: int | None, confine: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Return the function that the child runs before exec: it dies with `parent`, dumps no core, stays on `cpu`, drops
    its capabilities, and confines itself last."""

    def prepare() -> None:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        if powerless and sys.platform == "linux":
            _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            for capability in range(_CAPABILITIES):  # refused without capabilities
                _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
            _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # these would survive exec
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_most_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        if not die_with(parent):
            os._exit(127)
        if confine is not None:
            confine()

    return prepare


def _most_files() -> int:
    """Return the open files that a process may have: a guest with programs has more than the usual 1024."""
    permitted = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _FILES if permitted == resource.RLIM_INFINITY else min(permitted, _FILES)


@contextmanager
def group(
    argv: Sequence[str | Path],
    cwd: Path | None,
    env: Mapping[str, str],
    grace_s: float = 0.0,
    powerless: bool = False,
    cpu: int | None = None,
    linger_s: float = 0.0,
    fds: Sequence[int] = (),
    confine: Callable[[], None] | None = None,
    stderr: int = subprocess.STDOUT,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program whose stdout is a pipe, which stderr shares by default.

    On exit, the rest of its group gets SIGTERM (if there is a grace period) and SIGKILL. A `powerless` program has no
    capabilities even as root; `cpu` is its only CPU, `fds` are descriptors that it inherits, `confine` runs in it
    before exec (`sandbox.py`). A process that left the group, to clean up, may keep its output open for at most
    `linger_s`; that output is discarded."""
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
        pass_fds=fds,
        preexec_fn=_bind_to(os.getpid(), powerless, cpu, confine),
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
    """Read until every writer has closed the pipe, for at most `longest_s`."""
    deadline = time.monotonic() + longest_s
    while (remaining_s := deadline - time.monotonic()) > 0 and select.select([pipe], [], [], remaining_s)[0]:
        if not os.read(pipe, 1 << 16):
            return


def piped(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program with pipes for stdin, stdout and stderr; the caller ends it."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_bind_to(os.getpid(), False, None),
    )


def output_of(
    argv: Sequence[str | Path],
    env: Mapping[str, str],
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program as a `group` and return its output."""
    with group(argv, cwd, env, stderr=subprocess.PIPE) as child:
        output, messages = child.communicate()
    return subprocess.CompletedProcess(argv, child.returncode, output.decode(), messages.decode())


def kill_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to every process of the child's group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def clean_environment() -> dict[str, str]:
    """Return the environment of a build: search path, home and proxies, but nothing that affects make or the
    compiler."""
    names = ("PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {name: os.environ[name] for name in names if name in os.environ} | {"LC_ALL": "C", "TZ": "UTC"}


def missing_tools(tools: Mapping[str, str]) -> list[str]:
    """Return the packages of those tools (tool → package) that are not on the search path, sorted."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted({package for tool, package in tools.items() if shutil.which(tool, path=path) is None})
