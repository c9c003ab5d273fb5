# SPDX-License-Identifier: Apache-2.0
"""Describe this machine's CPUs."""

import os
import platform
import sys


def runs_guests() -> bool:
    """Return whether this machine executes guests itself: Linux on x86-64. It is also the one that builds them."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
