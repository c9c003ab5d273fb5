# SPDX-License-Identifier: Apache-2.0
"""The sysctls of TCP Small Queues and autosizing: one set per namespace, with the documented defaults and bounds."""

from pathlib import Path

import pytest

from hourglass import runner
from hourglass.contract.kernels import KERNELS
from hourglass.scenario import load

pytestmark = pytest.mark.guest

BOUNDS = {
    "tcp_tsq_mode": (0, 0, 3),
    "tcp_tsq_usecs": (1000, 1, 10_000_000),
    "tcp_tsq_bytes": (131072, 1, 2**31 - 1),
    "tcp_gso_usecs": (0, 0, 10_000_000),
}
"""Default, least and most (Documentation/networking/ip-sysctl.rst of the patch)."""

READ = "cd /proc/sys/net/ipv4; cat tcp_tsq_mode tcp_tsq_usecs tcp_tsq_bytes tcp_gso_usecs; "


def writes() -> list[tuple[str, int, bool]]:
    """A sysctl, a value, and whether the kernel accepts it."""
    return [
        (name, value, low <= value <= high)
        for name, (_, low, high) in BOUNDS.items()
        for value in (low - 1, high + 1, low, high)
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_namespace_has_separate_sysctls_within_bounds(kernel: str, tmp_path: Path) -> None:
    tries = [f"if echo {value} > {name}; then cat {name}; else echo no; fi 2> /dev/null" for name, value, _ in writes()]
    data = {
        "kernel": kernel,
        "testbed": {"preset": "L100M"},
        "apps": {"root": "debian:12"},
        "app": [
            {"node": "client", "name": "write", "user": "root", "command": ["sh", "-c", READ + "; ".join(tries)]},
            {"node": "server", "name": "read", "start": 1, "command": ["sh", "-c", READ]},
        ],
    }
    run = runner.run(load(data), tmp_path / "run")
    defaults = [str(default) for default, _, _ in BOUNDS.values()]
    assert run.apps["read"].stdout.split() == defaults
    accepted = [str(value) if good else "no" for _, value, good in writes()]
    assert run.apps["write"].stdout.split() == defaults + accepted
