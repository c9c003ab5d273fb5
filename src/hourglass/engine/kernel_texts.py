# SPDX-License-Identifier: Apache-2.0
"""The texts by which the engine recognises what a kernel did. A kernel reports these in no other form.

| constant | written by | event |
|---|---|---|
| `PANIC` | kernel/panic.c | the kernel stopped |
| `COMPLAINT` | kernel/panic.c, lib/ubsan.c, mm/oom_kill.c, and others | a defect, which the run shows as a warning |
| `OUT_OF_MEMORY` | mm/oom_kill.c | a process was killed, or none was left to kill |
| `CHATTER` | arch/um, net/wireless, drivers/base | nothing: left out of the lines that an error quotes |
| `HOST_REFUSED` | arch/um | the host refused the guest memory, another process or another mapping |
| `QDISC_MISSING` | net/sched/sch_api.c, by way of `tc` | no module has this kind |

A test compares each with a line of a real kernel (tests/engine/test_kernel_texts.py)."""

import re
from typing import Final

PANIC: Final = "Kernel panic - not syncing"
COMPLAINT: Final = re.compile(r"WARNING: |BUG: |UBSAN: |Oops|Out of memory: |hourglass: .* computed or polled memory")
OUT_OF_MEMORY: Final = re.compile(r"Out of memory|deadlocked on memory")
CHATTER: Final = re.compile(
    r"BogoMIPS|regulatory\.db|firmware_class|epollctl add err|check_one_sigio|kernel memory protection"
    r"|reboot: System halted"
)
HOST_REFUSED: Final = {
    "memory": re.compile(
        r"Kernel mode signal 7|clone failed, errno = 12|reports error 12|fork failed: Cannot allocate"
    ),
    "process": re.compile(r"(?:fork|clone) failed|stub-parent reports"),
    "mapping": re.compile(r"ran out of memory on the host side"),
}
QDISC_MISSING: Final = re.compile(r"qdisc kind is unknown")
