# SPDX-License-Identifier: Apache-2.0
"""A guest that hangs is ended, with the reason and the program; a stopped guest is not. Each kind is a program."""

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from hourglass.builders import cpio, root
from hourglass.builders.kernel import registry
from hourglass.engine import watchdog
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError
from tests.clocks import at_least
from tests.engine.plans import small_plan
from tests.processes import guest_below

from .conftest import KERNELS

pytestmark = pytest.mark.guest

INIT = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void memory(void)
{
	static volatile int there;

	while (!there)
		;
}

static void calls(void)
{
	struct pollfd none = { .fd = -1 };

	for (;;)
		poll(&none, 1, 0);
}

static void kernel(void)
{
	static char buffer[1 << 20];
	static struct iovec same[1024];
	int zero;

	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	zero = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 1024; i++)
		same[i] = (struct iovec){ buffer, sizeof(buffer) };
	for (;;)
		readv(zero, same, 1024);
}

static void sleeps(void)
{
	for (;;)
		sleep(1);
}

int main(void)
{
	sethostname("client", 6);
	if (!fork()) {
		prctl(PR_SET_NAME, "spinner");
		WAY();
	}
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a root for each kind of hang, with only its program."""
    folder = tmp_path_factory.mktemp("ways")
    (folder / "init.c").write_text("#include <sys/stat.h>\n" + INIT)
    archives = {}
    for kind in ("memory", "calls", "kernel", "sleeps"):
        program = folder / kind
        subprocess.run(["gcc", "-static", "-Os", f"-DWAY={kind}", "-w", "-o", program, folder / "init.c"], check=True)
        archives[kind] = folder / f"{kind}.cpio"
        archives[kind].write_bytes(cpio.archive({"init": cpio.file(program.read_bytes(), 0o755)}))
    return archives


def end_reason(kind: str, kernel: str, roots: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the reason with which such a guest is ended."""
    monkeypatch.setattr(root, "image", lambda _wifi, _release, _bpf: roots[kind])
    monkeypatch.setattr(watchdog, "LOOK_AFTER_S", 0.2)
    monkeypatch.setenv(watchdog.LIMIT, "1")
    with pytest.raises(GuestError) as raised:
        Virtual(registry.ensure(kernel)).run(small_plan(), folder)
    return raised.value.reason


SPINNER = r"spinner \(/init /out/plan.json /out/records.arrows\), pid \d+ on client"
REASONS = {
    "memory": f"; {SPINNER}, computes or polls memory and never calls the kernel, at instruction 0x4\\w{{5}} ",
    "calls": f"; {SPINNER}, calls poll repeatedly and never sleeps ",
    "kernel": f"; the guest's kernel is in [^,]*(clear|copy|memset|zero)[^,]* .*, for {SPINNER}, in readv ",
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", REASONS)
def test_a_spinning_guest_is_ended_and_named(
    kind: str, kernel: str, roots: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = end_reason(kind, kernel, roots, tmp_path, monkeypatch)
    assert reason.startswith("the guest spins: its clock has not moved for ")
    assert re.search(REASONS[kind], reason), reason


def test_a_guest_whose_agent_waits_for_ever_is_ended(
    roots: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "SILENT_S", 1.0)
    reason = end_reason("sleeps", "6.1", roots, tmp_path, monkeypatch)
    assert re.search(r"waits for an event that never comes: \d+ s of its clock passed without a message", reason)


@pytest.mark.slow
def test_a_stopped_guest_is_not_ended(roots: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger stops a guest: it is ended only after it continues."""
    monkeypatch.setattr(watchdog, "IDLE_S", 0.5)
    held_s = 3.0

    run_directory = tmp_path / "run"
    run_directory.mkdir()

    def hold() -> None:
        guest = guest_below(tmp_path)
        os.kill(guest, signal.SIGSTOP)
        time.sleep(held_s)
        os.kill(guest, signal.SIGCONT)

    thread = threading.Thread(target=hold)
    with at_least(held_s):
        thread.start()
        reason = end_reason("memory", "6.1", roots, run_directory, monkeypatch)
        thread.join()
    assert "spins" in reason
