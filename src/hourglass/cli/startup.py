# SPDX-License-Identifier: Apache-2.0
"""Settings of the interpreter for programs that end soon."""

import gc


def collect_cycles_rarely() -> None:
    """Collect reference cycles rarely: a command has few, and the search during imports takes 0.1 s."""
    gc.set_threshold(500_000)
