# SPDX-License-Identifier: Apache-2.0
"""What is more than a plan can hold, or would be ignored, is refused where it is read."""

from typing import Any

import pytest
from plan.able import ALL

from hourglass.contract.plan import STREAMS_MAX, Fetches, Flow
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load


def crowd(flows: int) -> list[dict[str, Any]]:
    """Competing flows, a thousand a row."""
    rows = [1000] * (flows // 1000) + [flows % 1000] * bool(flows % 1000)
    return [{"client": "router", "upload_streams": count} for count in rows]


def test_a_crowd_is_refused_with_its_number() -> None:
    with pytest.raises(
        InputError, match=r"test\.competing = '?61000 flows'?: with the test's own streams 61006; at most"
    ):
        load("L100M", [("test.competing", crowd(61_000))])


def test_as_many_streams_as_a_plan_can_hold_have_ports_of_their_own() -> None:
    test = ["test.name=http-1up", "test.http_workers=100"]
    most = STREAMS_MAX - 103  # one flow, two pings, a hundred clients of the web
    plan = build(load("L100M", [*test, ("test.competing", crowd(most))]), ALL)
    assert len(plan.streams) == STREAMS_MAX
    ports = [one.port for one in plan.streams if isinstance(one, Flow | Fetches)]
    assert len(set(ports)) == len(ports)
    with pytest.raises(InputError, match=f"at most {STREAMS_MAX}"):
        load("L100M", [*test, ("test.competing", crowd(most + 1))])


@pytest.mark.parametrize(
    ("scenario", "settings", "complaint"),
    [
        (
            "L100M",
            ["test.name=udp_flood", "test.stream_delays=[1]"],
            "test.stream_delays = [1]: the test udp_flood has no",
        ),
        ("L100M", ["test.name=udp_flood", "test.flow_cc=bbr"], "test.flow_cc = ['bbr']: the test udp_flood has no"),
        ("L100M", ["test.name=voip", "test.stream_delays=[1]"], "test.stream_delays = [1]: the test voip has no"),
        ("L100M", ["test.name=rrul_var", "test.bidir_streams=2", "test.labels=1 (CS0)"], "two streams would be"),
        ("rtt-fair", ["test.name=rtt_fair_var", "test.ping_labels=udp"], "two streams would be 'udp near'"),
        ("L100M", ["test.name=http", f"test.http_sizes={'1KB,' * 1000}1KB"], "at least one size, at most 1000"),
    ],
)
def test_what_would_collide_or_be_ignored_is_refused(scenario: str, settings: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        load(scenario, settings)
    assert complaint in str(caught.value)


def test_a_flood_forgets_what_another_test_s_file_says_of_flows() -> None:
    made = load("mobile", ["test.name=udp_flood"])
    assert (made.test.stream_delays, made.test.flow_cc, made.test.delay) == ((), (), 5)


def test_defaults_are_spelled_out() -> None:
    """What is null in a resolved scenario is absent: it has no default."""
    made = load("L100M")
    link = made.testbed.link[0].model_dump()
    assert {key for key, value in link.items() if value is None} == {
        "addresses",
        "trace",
        "medium",
        "policer",
        "shaper",
    }
    assert [shaper.burst for shaper in made.testbed.shaper] == [14_100, 14_100]
    cell = load("wifi-ax").testbed.wifi[0].model_dump()
    assert {key for key, value in cell.items() if value is None} == {"snr"}
    assert (cell["max_subframes"], cell["depth"]) == (256, 1)


def test_checksums_take_tso_with_them() -> None:
    link = load("L100M", ["testbed.link.0.checksum=false"]).testbed.link[0]
    assert (link.checksum, link.tso) == (False, False)
    with pytest.raises(InputError, match="tso needs checksum"):
        load("L100M", ["testbed.link.0.checksum=false", "testbed.link.0.tso=true"])
