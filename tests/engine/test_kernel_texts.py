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
    (kernel_texts.HOST_REFUSED["memory"], "arch/um/kernel/trap.c", "Kernel mode signal "),
    (kernel_texts.HOST_REFUSED["process"], "arch/um/os-Linux/start_up.c", "start_ptraced_child : fork failed"),
    (kernel_texts.HOST_REFUSED["process"], "arch/um/os-Linux/skas/process.c", " : clone failed, "),
    (kernel_texts.HOST_REFUSED["mapping"], "arch/um/kernel/tlb.c", "UML ran out of memory on the host side! "),
    (kernel_texts.QDISC_MISSING, "net/sched/sch_api.c", "Specified qdisc kind is unknown"),
]
"""The pattern, the file of the kernel, and a text that it prints."""
OF_5_10_AND_6_1 = (kernel_texts.HOST_REFUSED["process"], "arch/um/os-Linux/skas/process.c", "stub-parent reports ")


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_prints_the_recognised_texts(kernel: str) -> None:
    tree = source_tree.packaged(kernel, print).tree
    for pattern, file, printed in [*PRINTED, *([OF_5_10_AND_6_1] if kernel in ("5.10", "6.1") else [])]:
        assert printed in (tree / file).read_text(errors="replace"), f"{file} of Linux {kernel}"
        # its pr_fmt, and the number of SIGBUS
        full = {"kernel/reboot.c": "reboot: " + printed, "arch/um/kernel/trap.c": printed + "7"}.get(file, printed)
        assert re.search(pattern, full), printed
