# SPDX-License-Identifier: Apache-2.0
"""The limits of queues below the qdisc: BQL of a cable's NIC, AQL of a radio."""

import pytest

from hourglass.cli.apply import lines
from hourglass.errors import InputError
from hourglass.scenario import load

from .test_plan_builder import WAN, build


def test_bql_has_a_maximum_and_a_line_for_a_real_machine() -> None:
    scenario = load("L100M", [f"{WAN}.bql_max=12500B"])
    (step,) = [step for step in build(scenario).setup if step.do == "write" and step.origin == f"{WAN}.bql_max"]
    path = "/sys/class/net/eth1/queues/tx-0/byte_queue_limits/limit_max"
    assert (step.node, step.path, step.value) == ("router", path, "12500")
    assert f"echo 12500 > {path}" in lines(scenario, "router")
    with pytest.raises(InputError, match="no driver of a radio has BQL"):
        build(load("wifi-ath9k", ["stack.client.device.wlan0.bql_max=12500B"]))


@pytest.mark.parametrize(("settings", "words"), [([], 0), (["testbed.wifi.0.aql=true"], 2)])
def test_airtime_queue_limits_are_a_word_of_each_radio(settings: list[str], words: int) -> None:
    radios = [step.value for step in build(load("wifi-ath9k", settings)).setup
              if step.do == "write" and step.value.startswith("phy ")]  # fmt: skip
    assert sum(" aql=1" in line for line in radios) == words
    with pytest.raises(InputError, match="needs queues in mac80211, which ath9k_htc does not use"):
        build(load("wifi-ath9k-htc", ["testbed.wifi.0.aql=true"]))
