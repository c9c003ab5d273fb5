# SPDX-License-Identifier: Apache-2.0
"""Words and lines of tc. `guest/test_tc_numbers.py` compares them with tc itself."""

import pytest

from hourglass.qdisc_line import Limit, QdiscLine
from hourglass.tc_words import rate_bps, size_bytes, time_us, whole_number

DSL = "stab linklayer atm overhead -4 tbf rate 840kbit latency 300ms burst 1696"


@pytest.mark.parametrize(
    ("word", "size"),
    [("1000mbit", 131_072_000), ("100k", 102_400), ("0.1k", 102), ("1e3", 1000), ("0x10", 16), ("3000b", 3000),
     ("4g", None), ("5kib", None), ("", None), ("-1", None), ("inf", None)],
)  # fmt: skip
def test_a_size(word, size):
    assert size_bytes(word) == size


@pytest.mark.parametrize(
    ("word", "rate"),
    [("10mbit", 10**7), ("1gbps", 8 * 10**9), ("1Kibit", 1024), ("500", 496), ("10.0001mbit", 10_000_096),
     ("50%", 5 * 10**8), ("x", None), ("5mb", None)],
)  # fmt: skip
def test_a_rate_is_in_whole_bytes_per_second(word, rate):
    assert rate_bps(word, line_bps=10**9) == rate


def test_a_percentage_needs_a_line():
    assert rate_bps("50%") is None


def test_a_time_and_a_whole_number():
    assert [time_us(word) for word in ("10ms", "1s", "250", "0.5us", "1ns")] == [10_000, 10**6, 250, 0, None]
    assert [whole_number(word) for word in ("10", "010", "0x10", "1e3", "09", "-1", "1_0")] == [10, 8, 16, *[None] * 4]


def test_the_last_of_equal_options_counts():
    assert QdiscLine("netem delay 1ms limit 5 limit 7").limit == Limit(7)


def test_a_limit_follows_from_the_latency_of_tbf():
    assert QdiscLine(DSL).limit == Limit(31_500 + 1696, in_bytes=True)


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        (DSL, 32 * 53),
        ("cake bandwidth 840kbit besteffort overhead 10 atm", 32 * 53),
        ("cake bandwidth 840kbit conservative", 33 * 53),
        ("cake bandwidth 840kbit", 1514),
        ("tbf rate 840kbit burst 2k latency 1s overhead 20 linklayer ethernet", 1534),
        ("htb class ceil 840kbit overhead 24 linklayer atm", 33 * 53),
        ("stab overhead 38 mpu 84 pfifo", 1552),
    ],
)
def test_a_full_frame_counts_with_its_link_layer(line, counted):
    qdisc = QdiscLine(line)
    assert qdisc.counted_bytes(1514) == counted
    assert qdisc.frame_bps in (None, 840_000 * 1514 // counted)


def test_a_short_frame_counts_as_the_shortest():
    assert QdiscLine("stab overhead 38 mpu 84 pfifo").counted_bytes(42) == 84
    assert QdiscLine("cake ethernet").counted_bytes(42) == 84


def test_the_qdisc_of_each_queue_is_not_that_of_the_device():
    line = QdiscLine("mq cake bandwidth 10mbit")
    assert (line.kind, line.of_each_queue, line.rate_bps, line.fixed_bps, line.target_us) == (
        "cake",
        True,
        None,
        None,
        5000,
    )
    assert (QdiscLine("mq").kind, QdiscLine("mq").limit) == ("pfifo_fast", None)
    assert QdiscLine("mq stab overhead 4 pfifo limit 7").stab == {"overhead": "4"}


def test_the_qdiscs_of_cake_mq_share_a_rate():
    assert QdiscLine("cake_mq bandwidth 10mbit").fixed_bps == 10**7
