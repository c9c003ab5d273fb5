# SPDX-License-Identifier: Apache-2.0
"""Values above the limits of a plan, or without an effect, are refused when the scenario is read."""

from typing import Any

import pytest
from plan.able import ALL

from hourglass.contract.plan import STREAMS_MAX, FetchStream, FlowStream
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load


def crowd(flows: int) -> list[dict[str, Any]]:
    """Return competing flows, a thousand in each row."""
    rows = [1000] * (flows // 1000) + [flows % 1000] * bool(flows % 1000)
    return [{"client": "router", "upload_streams": count} for count in rows]


def test_a_crowd_is_refused_with_its_number() -> None:
    with pytest.raises(
        InputError, match=r"test\.competing = '?61000 flows'?: makes 61006 streams with those of the test; at most"
    ):
        load("L100M", [("test.competing", crowd(61_000))])


def test_the_most_streams_of_a_plan_have_different_ports() -> None:
    test = ["test.name=http-1up", "test.http_workers=100"]
    most = STREAMS_MAX - 103  # one flow, two pings, a hundred clients of the web
    plan = build(load("L100M", [*test, ("test.competing", crowd(most))]), ALL)
    assert len(plan.streams) == STREAMS_MAX
    ports = [stream.port for stream in plan.streams if isinstance(stream, FlowStream | FetchStream)]
    assert len(set(ports)) == len(ports)
    with pytest.raises(InputError, match=f"at most {STREAMS_MAX}"):
        load("L100M", [*test, ("test.competing", crowd(most + 1))])


@pytest.mark.parametrize(
    ("scenario", "settings", "complaint"),
    [
        (
            "L100M",
            ["test.name=udp_flood", "test.stream_delays=[1]"],
            "test.stream_delays = [1]: needs flows, and the test udp_flood has no",
        ),
        (
            "L100M",
            ["test.name=udp_flood", "test.flow_cc=bbr"],
            "test.flow_cc = ['bbr']: needs flows, and the test udp_flood has no",
        ),
        (
            "L100M",
            ["test.name=voip", "test.stream_delays=[1]"],
            "test.stream_delays = [1]: needs flows, and the test voip has no",
        ),
        (
            "L100M",
            ["test.name=rrul_var", "test.bidir_streams=2", "test.labels=1 (CS0)"],
            "would give two streams the name",
        ),
        ("rtt-fair", ["test.name=rtt_fair_var", "test.ping_labels=udp"], "would give two streams the name 'udp near'"),
        ("L100M", ["test.name=http", f"test.http_sizes={'1KB,' * 1000}1KB"], "at least one size, at most 1000"),
    ],
)
def test_keys_that_collide_or_would_be_ignored_are_refused(scenario: str, settings: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        load(scenario, settings)
    assert complaint in str(caught.value)


def test_a_flood_drops_the_flows_of_another_test_s_file() -> None:
    loaded = load("mobile", ["test.name=udp_flood"])
    assert (loaded.test.stream_delays, loaded.test.flow_cc, loaded.test.delay) == ((), (), 5)


def test_defaults_are_spelled_out() -> None:
    """A null of a resolved scenario means absent: the key has no default."""
    loaded = load("L100M")
    link = loaded.testbed.link[0].model_dump()
    assert {key for key, value in link.items() if value is None} == {
        "addresses",
        "vlan",
        "trace",
        "medium",
        "policer",
        "shaper",
    }
    assert [shaper.burst for shaper in loaded.testbed.shaper] == [14_100, 14_100]
    cell = load("wifi-ax").testbed.wifi[0].model_dump()
    assert {key for key, value in cell.items() if value is None} == {"snr"}
    assert (cell["max_subframes"], cell["depth"]) == (256, 1)


def test_checksums_off_turns_tso_off() -> None:
    link = load("L100M", ["testbed.link.0.checksum=false"]).testbed.link[0]
    assert (link.checksum, link.tso) == (False, False)
    with pytest.raises(InputError, match="tso needs checksum"):
        load("L100M", ["testbed.link.0.checksum=false", "testbed.link.0.tso=true"])
