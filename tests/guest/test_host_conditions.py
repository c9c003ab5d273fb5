# SPDX-License-Identifier: Apache-2.0
"""Settings and limits of hosts: a guest runs with the same bytes, or one line names the cause and the remedy.

Each condition is made by namespaces, limits, cgroups or a filter of system calls (docs/how-to/install.md, "Hosts")."""

import errno
import json
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hourglass.builders.kernel import registry
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine.host_conditions import MAX_MAP_COUNT
from hourglass.host import directories
from tests.clocks import until
from tests.processes import refuse_calls, run_hourglass

from .conftest import Simulate

pytestmark = pytest.mark.guest

SHORT = ("test.length=1", "test.delay=0.2")
MIB = 1 << 20

Prepare = Callable[[], None]

REFUSED_CALLS = {
    "acct": 163, "add_key": 248, "bpf": 321, "clock_adjtime": 305, "clock_settime": 227, "delete_module": 176,
    "fanotify_init": 300, "finit_module": 313, "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433,
    "get_mempolicy": 239, "init_module": 175, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kcmp": 312,
    "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "mbind": 237, "mount": 165,
    "mount_setattr": 442, "move_mount": 429, "move_pages": 279, "open_by_handle_at": 304, "open_tree": 428,
    "perf_event_open": 298, "personality": 135, "pivot_root": 155, "process_vm_readv": 310, "process_vm_writev": 311,
    "quotactl": 179, "reboot": 169, "request_key": 249, "set_mempolicy": 238, "setns": 308, "settimeofday": 164,
    "swapoff": 168, "swapon": 167, "sysfs": 139, "umount2": 166, "unshare": 272, "userfaultfd": 323, "vhangup": 153,
}  # fmt: skip
"""The system calls that the default seccomp profiles of Docker and Podman refuse to a container without capabilities.
The numbers are those of x86-64. The source is Docker's documentation, "Seccomp security profiles". The profiles permit
`personality` for some arguments."""
CLONE3 = 435
CONTAINER = {**dict.fromkeys(REFUSED_CALLS.values(), errno.EPERM), CLONE3: errno.ENOSYS}


def limited(kind: int, soft: int) -> Prepare:
    """Return a function that lowers a resource limit."""
    return lambda: resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))


def inside(script: str, *options: str) -> list[str]:
    """Return a command that prepares new namespaces by a script, and runs the rest of the command in them."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, *(options or ("--mount",)), "sh", "-ec", f'{script}\nexec "$0" "$@"']


PIDS = ("--pid", "--fork", "--mount-proc")
READ_ONLY = """\
for folder in /tmp "$PWD" "$HOURGLASS_CACHE"; do mount --bind "$folder" "$folder"; done
mount -o remount,bind,ro /
cd "$PWD"  # the folder of the new mount"""
NOEXEC = f"""\
mount -t tmpfs -o noexec none /dev/shm
for folder in /tmp "$PWD"; do mount --bind "$folder" "$folder"; mount -o remount,bind,noexec "$folder"; done
for folder in {shlex.quote(sys.prefix)}; do mount --bind "$folder" "$folder"; mount -o remount,bind,exec "$folder"; done
cd "$PWD"  # the folder of the new mount"""

HARMLESS: dict[str, tuple[list[str], Prepare | None]] = {
    "no random addresses": (["setarch", "-R"], None),
    "the old layout of addresses": (["setarch", "-L"], None),
    "a stack without limit": ([], limited(resource.RLIMIT_STACK, resource.RLIM_INFINITY)),
    "a stack of 256 KiB": ([], limited(resource.RLIMIT_STACK, MIB // 4)),
    "24 open files": ([], lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))),
    "no locked memory": ([], limited(resource.RLIMIT_MEMLOCK, 0)),
    "4 GiB of addresses": ([], limited(resource.RLIMIT_AS, 4 << 30)),
    "/dev/shm of 1 MiB": (inside("mount -t tmpfs -o size=1m none /dev/shm"), None),
    "noexec /dev/shm, /tmp and run directory": (inside(NOEXEC), None),
    "no /sys": (inside("mount -t tmpfs none /sys"), None),
    "a read-only root": (inside(READ_ONLY), None),
    "no user namespaces": (inside("echo 0 >/proc/sys/user/max_user_namespaces", "--user", "--map-root-user"), None),
    "memory files without execution by default": (inside("echo 1 >/proc/sys/vm/memfd_noexec", *PIDS), None),
    "the system calls of a container": ([], lambda: refuse_calls(CONTAINER)),
}
"""Conditions with which a guest runs: the command before Hourglass, or a function for its process."""

REFUSED: dict[str, tuple[list[str], Prepare | None, str, str]] = {
    "addresses": (
        [],
        limited(resource.RLIMIT_AS, 2560 * MIB),
        "host-limit",
        "the limit of address space is 2.5 GiB (ulimit -v), and a guest needs 4 GiB; to fix: ulimit -v unlimited",
    ),
    "the size of files": (
        [],
        limited(resource.RLIMIT_FSIZE, 100 * MIB),
        "host-limit",
        "the limit of the size of a file is 100 MiB (ulimit -f), and a guest needs 2 GiB; to fix: ulimit -f unlimited",
    ),
    "signals": (
        [],
        limited(resource.RLIMIT_SIGPENDING, 0),
        "host-limit",
        "the limit of pending signals is 0 (ulimit -i), and a guest needs 16; to fix: ulimit -i unlimited",
    ),
    "/proc": (
        inside("mount -t tmpfs none /proc"),
        None,
        "host-setting",
        "/proc is not mounted, and a guest finds its run directory there; to fix: mount -t proc proc /proc",
    ),
}
"""Conditions that stop a guest; the code and the message."""


def command(
    folder: Path, *arguments: str, before: list[str] | None = None, prepare: Prepare | None = None
) -> subprocess.CompletedProcess[str]:
    """Return the result of Hourglass under a condition. Skip the test where the condition cannot be made."""
    cache = {"HOURGLASS_CACHE": str(directories.cache())}
    if before:
        trial = subprocess.run([*before, "true"], cwd=folder, env=os.environ | cache, capture_output=True, check=False)
        if trial.returncode:
            pytest.skip(f"this host does not permit it: {trial.stderr.decode().strip()}")
    return run_hourglass(folder, *arguments, before=before or [], prepare=prepare, **cache)


def run_arguments(kernel: str, *settings: str) -> list[str]:
    return ["run", "L100M", "--kernel", kernel, "--json", "--out", "run", *(f"--set={text}" for text in settings)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("condition", HARMLESS)
def test_records_do_not_depend_on_a_condition_of_the_host(
    simulate: Simulate, condition: str, kernel: str, tmp_path: Path
) -> None:
    before, prepare = HARMLESS[condition]
    result = command(tmp_path, *run_arguments(kernel, *SHORT), before=before, prepare=prepare)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["digest"] == simulate("L100M", *SHORT, kernel=kernel).info.digest


def refusal(
    folder: Path, kernel: str, code: str, message: str, before: list[str] | None = None, prepare: Prepare | None = None
) -> None:
    """Assert that a run is refused with a message, and that `doctor` prints the same message."""
    registry.ensure(kernel)
    result = command(folder, *run_arguments(kernel, *SHORT), before=before, prepare=prepare)
    assert result.returncode == 3
    assert result.stderr.splitlines()[-1] == f"hourglass: error: {message}"
    assert json.loads(result.stdout)["code"] == code
    doctor = command(folder, "doctor", before=before, prepare=prepare)
    problem, remedy = message.split("; to fix: ")
    assert doctor.returncode == 3
    assert f"{problem}\n        to fix: {remedy}\n" in doctor.stdout


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("condition", REFUSED)
def test_a_host_that_stops_the_guest_is_named(condition: str, kernel: str, tmp_path: Path) -> None:
    before, prepare, code, message = REFUSED[condition]
    refusal(tmp_path, kernel, code, message, before, prepare)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_host_without_executable_memory_files(simulate: Simulate, kernel: str, tmp_path: Path) -> None:
    """Only Linux 7 starts its processes from one."""
    before = inside("echo 2 >/proc/sys/vm/memfd_noexec", *PIDS)
    if kernel == "7.3":
        message = (
            "vm.memfd_noexec = 2 forbids programs in memory, which guests of Linux 7 start; to fix: "
            "sysctl vm.memfd_noexec=1; or another kernel: --kernel 6.12"
        )
        refusal(tmp_path, kernel, "host-setting", message, before)
    else:
        result = command(tmp_path, *run_arguments(kernel, *SHORT), before=before)
        assert json.loads(result.stdout)["digest"] == simulate("L100M", *SHORT, kernel=kernel).info.digest


def test_a_folder_of_kernels_without_execution(tmp_path: Path) -> None:
    linux = registry.ensure(DEFAULT).linux
    cache = '"$HOURGLASS_CACHE"'
    before = inside(f"mount --bind {cache} {cache}; mount -o remount,bind,noexec {cache}")
    result = command(tmp_path, *run_arguments(DEFAULT, *SHORT), before=before)
    assert result.returncode == 3
    assert result.stderr.splitlines()[-1] == (
        f"hourglass: error: the kernel {linux} cannot be executed; its folder may be noexec; "
        "to fix: set HOURGLASS_CACHE to a folder on another file system"
    )
    doctor = command(tmp_path, "doctor", before=before)
    assert doctor.returncode == 3
    assert f"cache: {directories.cache()} is mounted noexec, so kernels in it cannot be executed\n" in doctor.stdout


@pytest.fixture
def cgroup(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield a new cgroup for a controller of version 1, inside this process's own."""
    controller = request.param
    own_path = next(
        (
            line.split(":")[2]
            for line in Path("/proc/self/cgroup").read_text().splitlines()
            if f":{controller}:" in line
        ),
        None,
    )
    if own_path is None:
        pytest.skip(f"this host has no {controller} cgroup of version 1")
    folder = Path("/sys/fs/cgroup", controller, own_path.lstrip("/"), f"hourglass-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    try:
        yield folder
    finally:
        until(lambda: not (folder / "cgroup.procs").read_text(), "processes remain in the cgroup")
        folder.rmdir()


def joining(folder: Path) -> list[str]:
    """Return a command that runs the rest of the command in a cgroup."""
    return ["sh", "-ec", f'echo $$ >{folder}/cgroup.procs; exec "$0" "$@"']


EATER = "pages = bytearray(400_000_000)\nfor page in range(0, len(pages), 4096): pages[page] = 1"


@pytest.mark.parametrize("cgroup", ["memory"], indirect=True)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guest_that_the_host_kills_for_memory(cgroup: Path, kernel: str, tmp_path: Path) -> None:
    """A program of the scenario needs more than the cgroup permits."""
    (cgroup / "memory.limit_in_bytes").write_text(str(400 * MIB))
    scenario = {
        "testbed": {"preset": "L100M"},
        "apps": {"packages": ["python3"]},
        "app": [{"node": "client", "command": ["python3", "-c", EATER]}],
        "kernel": kernel,
    }
    (tmp_path / "eater.json").write_text(json.dumps(scenario))
    result = command(tmp_path, "run", "eater.json", "--json", "--out", "run", before=joining(cgroup))
    assert result.returncode == 3
    words = result.stderr.splitlines()
    error = next(line for line in words if line.startswith("hourglass: error: "))
    assert error.startswith("hourglass: error: the host killed the guest, which had ")
    assert f" MiB, for lack of memory: {cgroup}/memory.limit_in_bytes is 400 MiB, and a guest may use 2 GiB" in error
    assert error.endswith("to fix: raise this limit, make fewer runs at once, or let the scenario's programs need less "
                          "memory")  # fmt: skip
    assert f"console log: {tmp_path}/run.failed/console.log" in words
    assert json.loads(result.stdout)["code"] == "host-memory"


@pytest.mark.parametrize("cgroup", ["memory"], indirect=True)
@pytest.mark.parametrize("kernel", KERNELS)
def test_256_mib_suffice(simulate: Simulate, cgroup: Path, kernel: str, tmp_path: Path) -> None:
    (cgroup / "memory.limit_in_bytes").write_text(str(256 * MIB))
    result = command(tmp_path, *run_arguments(kernel, *SHORT), "--no-picture", before=joining(cgroup))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["digest"] == simulate("L100M", *SHORT, kernel=kernel).info.digest


@pytest.mark.parametrize("cgroup", ["memory"], indirect=True)
def test_doctor_names_scarce_memory(cgroup: Path, tmp_path: Path) -> None:
    (cgroup / "memory.limit_in_bytes").write_text(str(250 * MIB))
    result = command(tmp_path, "doctor", before=joining(cgroup))
    assert result.returncode == 3
    assert (
        f" of memory are free, and a guest needs 256 MiB: {cgroup}/memory.limit_in_bytes is 250 MiB\n" in result.stdout
    )


@pytest.mark.parametrize("cgroup", ["pids"], indirect=True)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_host_that_permits_no_more_processes(cgroup: Path, kernel: str, tmp_path: Path) -> None:
    """A program of the guest would get an error that depends on the host, so the run fails."""
    (cgroup / "pids.max").write_text("25")
    result = program(tmp_path, kernel, "for (int i = 0; i < 24; i++) if (!fork()) pause();", before=joining(cgroup))
    assert result.returncode == 3
    assert f"hourglass: error: the host permits no more processes ({cgroup}/pids.max is 25); each" in result.stderr
    assert json.loads(result.stdout)["code"] == "host-limit"


LIBRARIES_OF_A_GUEST = """\
import sys

def audit(event, arguments):
    if event == "subprocess.Popen" and str(arguments[0]).endswith("/linux"):
        print("libraries:", *sorted({"numpy", "polars"} & set(sys.modules)), file=sys.stderr)

sys.addaudithook(audit)
"""


def test_libraries_start_their_threads_before_programs(tmp_path: Path) -> None:
    """Programs may use up the host's processes. The import of NumPy or Polars fails if it cannot start threads."""
    (tmp_path / "sitecustomize.py").write_text(LIBRARIES_OF_A_GUEST)
    result = program(tmp_path, DEFAULT, "", before=["env", f"PYTHONPATH={tmp_path}"])
    assert "libraries: numpy polars" in result.stderr.splitlines()


PICTURE_WITHOUT_THREADS = """\
import sys, threading

def start(self):
    raise RuntimeError("can't start new thread")

if "hourglass.cli.pictures" in sys.orig_argv:
    threading.Thread.start = start
"""


def test_a_picture_without_a_process_left_is_drawn_later(tmp_path: Path) -> None:
    """Its process starts while programs may have used up the host's processes. It prints no traceback."""
    (tmp_path / "sitecustomize.py").write_text(PICTURE_WITHOUT_THREADS)
    result = program(tmp_path, DEFAULT, "", before=["env", f"PYTHONPATH={tmp_path}"])
    assert result.returncode == 0
    assert (tmp_path / "run/run.png").is_file()


MAPPINGS_MAX = 200_000
"""A host that permits more would need a program with more memory."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_host_that_permits_no_more_mappings(kernel: str, tmp_path: Path) -> None:
    """Every third page is used, from the last to the first."""
    limit = int(MAX_MAP_COUNT.read_text())
    if limit > MAPPINGS_MAX:
        pytest.skip(f"this host permits {limit} mappings")
    pages = f"long n = {limit + 1000}; char *p = mmap(0, 3 * n << 12, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
    result = program(tmp_path, kernel, f"{pages} while (n--) p[3 * n << 12] = 1;")
    assert result.returncode == 3
    assert f"the host permits a program no more mappings (vm.max_map_count = {limit}); each range" in result.stderr
    assert json.loads(result.stdout)["code"] == "host-limit"


def program(
    folder: Path, kernel: str, statements: str, before: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return the result of a run with a program in C."""
    (root := folder / "root").mkdir()
    (folder / "program.c").write_text(
        f"#include <sys/mman.h>\n#include <unistd.h>\nint main(void) {{ {statements} return 0; }}\n"
    )
    subprocess.run(["gcc", "-static", "-o", root / "program", folder / "program.c"], check=True)
    scenario = {
        "testbed": {"preset": "L100M"},
        "apps": {"root": str(root)},
        "app": [{"node": "client", "command": ["/program"]}],
        "kernel": kernel,
    }
    (folder / "program.json").write_text(json.dumps(scenario))
    return command(folder, "run", "program.json", "--json", "--out", "run", before=before)


@pytest.mark.parametrize("kernel", KERNELS)
def test_doctor_starts_a_guest_of_each_kernel(kernel: str, tmp_path: Path) -> None:
    registry.ensure(kernel)
    result = command(tmp_path, "doctor")
    assert f"ok      guest {kernel}: Linux {kernel}." in result.stdout
    assert list(tmp_path.iterdir()) == []
