# SPDX-License-Identifier: Apache-2.0
"""The texts by which the engine recognises what a kernel did are those of each kernel's own source."""

import re

import pytest

from hourglass.builders.kernel import source_tree
from hourglass.contract.kernels import KERNELS
from hourglass.engine import kernel_texts

PRINTED: list[tuple[str | re.Pattern[str], str, str]] = [
    (kernel_texts.PANIC, "kernel/panic.c", "Kernel panic - not syncing: "),
    (kernel_texts.COMPLAINT, "kernel/panic.c", "WARNING: "),
    (kernel_texts.COMPLAINT, "kernel/sched/core.c", "BUG: scheduling while atomic"),
    (kernel_texts.COMPLAINT, "lib/ubsan.c", "UBSAN: "),
    (kernel_texts.OUT_OF_MEMORY, "mm/oom_kill.c", "Out of memory and no killable processes"),
    (kernel_texts.OUT_OF_MEMORY, "mm/oom_kill.c", "System is deadlocked on memory"),
    (kernel_texts.CHATTER, "init/calibrate.c", " BogoMIPS (lpj="),
    (kernel_texts.CHATTER, "arch/um/os-Linux/sigio.c", "check_one_sigio failed"),
    (kernel_texts.CHATTER, "kernel/reboot.c", "System halted"),
    (kernel_texts.QDISC_MISSING, "net/sched/sch_api.c", "Specified qdisc kind is unknown"),
]
"""The pattern, the file of the kernel, and a text that it prints."""


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_prints_the_recognised_texts(kernel: str) -> None:
    tree = source_tree.packaged(kernel, print).tree
    for pattern, file, printed in PRINTED:
        assert printed in (tree / file).read_text(errors="replace"), f"{file} of Linux {kernel}"
        prefix = "reboot: " if file == "kernel/reboot.c" else ""  # its pr_fmt
        assert re.search(pattern, prefix + printed), printed


@pytest.mark.parametrize("line", ["ptrace: Operation not permitted", "check_ptrace : x\nPermission denied"])
def test_a_machine_that_forbids_ptrace_is_recognised(line: str) -> None:
    assert kernel_texts.PTRACE_FORBIDDEN.search(line)


def test_another_lack_of_permission_is_not_about_ptrace() -> None:
    assert not kernel_texts.PTRACE_FORBIDDEN.search("open /dev/shm: Permission denied\nptrace: works")
