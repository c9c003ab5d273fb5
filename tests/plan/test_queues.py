# SPDX-License-Identifier: Apache-2.0
"""The plan of NICs with several queues."""

import re
from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL
from .text import plan_text

LINK = {"ends": ["client:eth0", "server:eth0"], "nic": "igb"}


def text(*overrides: str, **link: Any) -> str:
    testbed = {"node": [{"name": "client"}, {"name": "server"}], "link": [{**LINK, "queues": 4, **link}]}
    return plan_text(build(load({"testbed": testbed}, overrides), ALL))


def lines(tool: str, *overrides: str, **link: Any) -> list[str]:
    """Return the client's lines of a tool."""
    start = f"client {tool} "
    return [
        line.split("#")[0].strip()[len(start) :]
        for line in text(*overrides, **link).splitlines()
        if line.startswith(start)
    ]


def test_a_nic_is_made_with_its_queues() -> None:
    (line,) = [line for line in lines("ip") if line.startswith("link add")]
    assert line == "link add dev eth0 address 02:00:00:00:00:01 numtxqueues 4 numrxqueues 4 type wire"


@pytest.mark.parametrize("qdisc", ["pfifo_fast", "mq"])
def test_the_kernel_s_default_needs_no_step(qdisc: str) -> None:
    assert lines("tc", f"stack.qdisc={qdisc}") == []


def test_each_queue_has_a_qdisc_below_mq() -> None:
    assert lines("tc", "stack.qdisc=mq fq limit 7", queues=2) == [
        "qdisc add dev eth0 root handle 10: mq",
        "qdisc add dev eth0 parent 10:1 handle 11: fq limit 7",
        "qdisc add dev eth0 parent 10:2 handle 12: fq limit 7",
    ]


def test_the_qdisc_of_a_queue_can_have_a_size_table() -> None:
    assert lines("tc", "stack.qdisc=mq stab overhead 4 fq", queues=2)[1:] == [
        "qdisc add dev eth0 parent 10:1 handle 11: stab overhead 4 fq",
        "qdisc add dev eth0 parent 10:2 handle 12: stab overhead 4 fq",
    ]


def test_another_qdisc_is_the_root_of_all_queues() -> None:
    assert lines("tc", "stack.qdisc=fq") == ["qdisc add dev eth0 root handle 10: fq"]


@pytest.mark.parametrize("nic", ["tg3", "igb"])
def test_mq_is_the_qdisc_itself_where_there_is_one_queue(nic: str) -> None:
    assert lines("tc", "stack.qdisc=mq fq", queues=1, nic=nic) == ["qdisc add dev eth0 root handle 10: fq"]
    assert lines("tc", "stack.qdisc=mq", queues=1, nic=nic) == []


def test_mq_is_the_qdisc_itself_below_a_shaper() -> None:
    shaper = 'testbed.shaper=[{at = "client:eth0", rate = "10mbit"}]'
    assert lines("tc", shaper, "stack.qdisc=mq fq")[-1] == "qdisc add dev eth0 parent 1:1 handle 10: fq"


def test_the_limit_of_bql_is_that_of_each_queue() -> None:
    writes = [
        line for line in text("stack.client.device.eth0.bql_max=9KB", queues=2).splitlines() if "limit_max" in line
    ]
    assert [f"tx-{queue}/byte_queue_limits/limit_max" in line for queue, line in enumerate(writes)] == [True, True]


@pytest.mark.parametrize("nic", ["igb", "igc"])
@pytest.mark.parametrize(("queues", "vectors"), [(1, False), (2, False), (3, True), (4, True)])
def test_more_than_two_queues_of_igb_share_vectors(nic: str, queues: int, vectors: bool) -> None:
    """The driver's default is one vector; igb and igc write 2."""
    assert ("wire/vectors" not in text(queues=queues, nic=nic)) is vectors


@pytest.mark.parametrize(
    ("link", "values"),
    [
        ({}, ["phc=1", "launch_time=32"]),
        ({"queues": 1}, ["phc=1"]),
        ({"nic": "igc"}, ["phc=1", "launch_time=1", "gates=1"]),
        ({"nic": "igc", "phc": 0}, []),
        ({"nic": "ixgbe"}, ["phc=1"]),
        ({"nic": "ixgbe", "gates": 1}, ["phc=1", "gates=1"]),
    ],
)
def test_gates_and_launch_times_are_of_nics_with_several_queues(link: dict[str, Any], values: list[str]) -> None:
    pattern = re.compile(r"^client write \S+/wire/(phc|launch_time|gates) '(\d+)'", re.MULTILINE)
    assert [f"{name}={value}" for name, value in pattern.findall(text(**link))] == values


@pytest.mark.parametrize(
    ("overrides", "link", "message"),
    [
        ([], {"queues": 5}, "at most 4 queues; use nic = \"ixgbe\" (up to 16)"),
        ([], {"nic": "tg3"}, "use nic = \"igb\" (up to 4) or nic = \"igc\" (up to 4) or nic = \"ixgbe\" (up to 16)"),
        ([], {"queues": 0}, "testbed.link.0.queues = 0"),
        ([], {"queues": 1, "launch_time": 8}, "launch_time = 8: needs several queues; set testbed.link.0.queues"),
        ([], {"queues": 1, "gates": 1}, "testbed.link.0.gates = 1: needs several queues; set testbed.link.0.queues"),
        ([], {"gates": 1, "phc": 0}, "testbed.link.0.gates = 1: needs phc, which is 0"),
        ([], {"launch_time": 8, "phc": 0}, "testbed.link.0.launch_time = 8: needs phc, which is 0"),
        ([], {"launch_time": 1001}, "must be a whole number of nanoseconds from 0 to 1000"),
        (["stack.qdisc=multiq"], {"queues": 1}, "several queues, but client:eth0 has one; set testbed.link.0.queues"),
        (["stack.qdisc=mq multiq"], {}, "The word after mq"),
        (["stack.qdisc=mq mq"], {}, "The word after mq"),
        (["stack.qdisc=stab overhead 4 mq fq"], {}, "mq has no stab"),
        ([], {"duplex": "half"}, "must be 1 on a shared line"),
        ([], {"medium": "bus"}, "must be 1 on a shared line"),
        (["stack.client.device.eth0.ingress=multiq"], {}, "needs several queues, but ifb4eth0 has one"),
        (
            ['testbed.shaper=[{at = "client:eth0", rate = "10mbit"}]', "stack.qdisc=multiq"],
            {},
            "must be the root, but client:eth0 has a shaper or a netem",
        ),
    ],
)  # fmt: skip
def test_refused(overrides: list[str], link: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        text(*overrides, **link)
    assert message in str(error.value)
