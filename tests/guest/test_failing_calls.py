# SPDX-License-Identifier: Apache-2.0
"""Code takes no time, and neither do system calls that fail, on any kernel version."""

import os
import subprocess
from pathlib import Path

import pytest

from hourglass.builders import cpio
from hourglass.builders.kernel import registry
from hourglass.contract.kernels import KERNELS
from hourglass.engine import virtual
from tests.clocks import HANG_S

pytestmark = pytest.mark.guest

INIT = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void)
{
	long long start = now();
	int failed = 0;

	for (int i = 0; i < 1000; i++)
		failed += close(-1) && open("/not/there", O_RDONLY) < 0;
	printf("%d failed in %lld ns\n", failed, now() - start);
	fflush(stdout);
	return reboot(RB_POWER_OFF);
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with only this program."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "init.c").write_text(INIT)
    subprocess.run(["gcc", "-static", "-Os", "-o", folder / "init", folder / "init.c"], check=True)
    archive = folder / "root.cpio"
    archive.write_bytes(cpio.archive({"init": cpio.file((folder / "init").read_bytes(), 0o755)}))
    return archive


@pytest.mark.parametrize("kernel", KERNELS)
def test_failing_calls_take_no_time(kernel: str, root: Path) -> None:
    built = registry.ensure(kernel)
    options = ["time-travel=inf-cpu", "mem=256M", f"initrd={root.name}", "rdinit=/init", "root=98:0", "console=tty0"]
    options += ["con=null", "con0=null,fd:1", "con1=null", "ssl=null", "quiet", "panic=-1"]
    guest = subprocess.run(
        [built.linux, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=root.parent,
        env=os.environ | {"GLIBC_TUNABLES": virtual.NO_RSEQ},
        timeout=HANG_S,
        check=False,
    )
    assert "1000 failed in 0 ns" in guest.stdout
