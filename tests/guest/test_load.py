# SPDX-License-Identifier: Apache-2.0
"""Records are the same whether the kernel discards received data or an application reads them."""

import pytest

from .conftest import KERNELS, Simulate

CASES = {
    "TSQ": ("L100M", "test.length=3"),
    "BBR": ("L100M", "test.length=3", "stack.cc=bbr", "stack.qdisc=fq"),
    "losses": ("R10M", "test.length=12"),
    "no offloads": ("L100M", "test.length=2", *(f"testbed.link.{i}.{o}=false" for i in (0, 1) for o in ("tso", "gso"))),
    "both ways": ("asymmetric", "test.length=3"),
    "Wi-Fi": ("wifi-ath9k", "test.length=3"),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_the_records_are_the_same_bytes(simulate: Simulate, kernel: str, name: str) -> None:
    scenario, *settings = CASES[name]
    run_digests = []
    for backend in ("load", "socket"):
        run = simulate(scenario, "test.delay=1", *settings, f"flow.backend={backend}", kernel=kernel)
        assert {flow.backend for flow in run.flows} == {backend}
        assert run.summary.totals.upload_mbps > 1
        run_digests.append(run.info.digest)
    assert run_digests[0] == run_digests[1]
