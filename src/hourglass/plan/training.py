# SPDX-License-Identifier: Apache-2.0
"""The plans by which kernels are tuned; after a change: `python -m hourglass.plan.training kernel/tuning`.

They are files because the engine, which runs them, knows no scenario. Together they exercise the code of usual runs:
TCP's senders and receivers, forwarding, the common qdiscs, both directions of Wi-Fi, and all measurements.
"""

import sys
from pathlib import Path

from hourglass import scenario
from hourglass.contract.capabilities import Capabilities
from hourglass.plan.plan_builder import build

ABLE = Capabilities(
    nic="wire", own_kernel=True, virtual_time=True, radios=True, programs=True, captures=True, layers=True
)
"""The capabilities of the kernels that are tuned."""

TRAINING = {
    "htb-cubic": ("L100M", "test.length=3"),
    "fq-bbr": ("LR1000M", "test.length=1", "stack.cc=bbr", "stack.qdisc=fq"),
    "cake": ("asymmetric", "test.length=2", "stack.qdisc=cake"),
    "fq_codel": ("R100M", "test.length=1", "stack.qdisc=fq_codel"),
    "wifi": ("wifi-ath9k", "test.length=2"),
}
"""Scenario and settings of each plan."""


def plans() -> dict[str, bytes]:
    """Return the files and their expected content."""
    return {
        f"{name}.json": build(scenario.load(source, ["test.delay=0.2", *settings], kernel="6.1"), ABLE).to_json()
        for name, (source, *settings) in TRAINING.items()
    }


if __name__ == "__main__":
    for name, content in plans().items():
        (Path(sys.argv[1]) / name).write_bytes(content)
