# SPDX-License-Identifier: Apache-2.0
"""Lints on complete runs: built-in scenarios have no findings, and real traps are found in the kernel's records."""

import pytest

from guest.conftest import line

pytestmark = pytest.mark.guest


def ids(run):
    return [warning.id for warning in run.summary.warnings]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["L100M", "L10M", "R100M", "asymmetric", "mobile", "parking-lot"])
def test_built_in_scenarios_raise_no_false_alarm(simulate, name):
    assert ids(simulate(name)) == []


def test_a_small_receive_buffer_is_found_by_its_sysctl_and_by_the_kernel(simulate):
    base = line(rate="100mbit", delay="10ms")
    base["test"] = {"name": "tcp_upload", "length": 20.5, "delay": 1}
    assert ids(simulate(base)) == []
    run = simulate(base, 'stack.server.sysctl.net.ipv4.tcp_rmem="4096 65536 131072"')
    assert ids(run) == ["receive-buffer-below-bdp", "rwnd-limited"]


def test_netem_with_its_default_limit_drops_and_is_found(simulate):
    base = line(rate="100mbit", delay="1ms")
    base["test"] = {"name": "tcp_upload", "length": 20.5, "delay": 1}
    run = simulate(base, 'stack.router1.qdisc="netem delay 200ms"')
    assert "netem-limit" in ids(run)
