# SPDX-License-Identifier: Apache-2.0
"""The two ends of the plan's contract: what the Python models take and refuse, the agent takes and refuses."""

import json
import subprocess
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from hourglass.contract.plan import STREAMS_MAX, Plan
from hourglass.contract.plan_values import PAYLOAD_MAX
from tests.contract.plans import plans

Where = tuple[str | int, ...]

SECOND = 10**9
BASE = {"client": "c", "server": "s", "address": "10.0.0.1", "dscp": 0, "start_ns": 0, "stop_ns": SECOND}
HOP = {
    "node": "c", "device": "eth0", "address": "10.0.0.2/24", "to_node": "s", "to_device": "eth0",
    "to_address": "10.0.0.1/24", "medium": "cable", "line_bps": 10**9, "shaper_bps": 10**8, "rate_bps": 10**8,
    "delay_ns": 0, "qdisc": "fq_codel", "ingress": None, "impairments": ["loss 1%"], "origin": "testbed.link.0",
}  # fmt: skip
APP = {
    "room": 0, "command": ["x"], "env": {}, "folder": "/", "user": "root", "stdin": "", "start_ns": 0,
    "after": [], "stop_ns": None, "stop_signal": 15, "grace_ns": SECOND, "ready_ns": SECOND, "restarts": 1,
    "restart_ns": 5, "background": False, "output_bytes": 100, "collect": ["/var/*"], "origin": "app.0",
}  # fmt: skip
PLAN: dict[str, Any] = {
    "version": 6, "seed": 1, "end_ns": 2 * SECOND, "nodes": ["c", "s"],
    "setup": [
        {"do": "ip", "node": None, "lines": ["link add eth0 type wire"], "origin": None},
        {"do": "tc", "node": "c", "lines": ["qdisc add dev eth0 root fq"], "origin": "stack.qdisc"},
        {"do": "write", "node": "c", "path": "/proc/sys/net/ipv4/tcp_ecn", "value": "1", "origin": None},
        {"do": "ethtool", "node": "c", "args": ["-K", "eth0"], "origin": None},
        {"do": "epoch", "node": "c", "path": "/sys/x", "origin": None},
        {"do": "reach", "node": "c", "address": "10.0.0.1", "timeout_ns": 5, "origin": None},
        {"do": "iw", "node": None, "args": ["dev"], "says": None, "timeout_ns": 5, "origin": None},
        {"do": "daemon", "node": "c", "tool": "hostapd", "config": "x", "ready": "y", "timeout_ns": 5, "origin": None},
        {"do": "tell", "node": "c", "tool": "hostapd", "socket": "/s", "line": "x", "says": "y", "timeout_ns": 5,
         "origin": None},
    ],
    "streams": [
        BASE | {"id": 0, "kind": "flow", "name": "f", "port": 5000, "sender": "c", "cc": "cubic",
                "pace_bps": 8000, "writes": {"rate_bps": 5, "interval_ns": 7}, "backend": "load"},
        BASE | {"id": 1, "kind": "ping", "name": "p", "port": 0, "protocol": "icmp", "payload_bytes": 56,
                "ecn": "not_ect",
                "interval_ns": SECOND, "jitter_ns": 5, "jitter_seed": 7},
        BASE | {"id": 2, "kind": "datagrams", "name": "d", "port": 9, "ecn": "ect1", "payload_bytes": 172, "burst": 1,
                "phases": [{"start_ns": 5, "stop_ns": SECOND, "interval_ns": SECOND}]},
        BASE | {"id": 3, "kind": "fetches", "name": "h", "port": 80, "cc": "reno", "request_bytes": 300,
                "sizes": [1000], "interval_ns": SECOND},
        BASE | {"id": 4, "kind": "transactions", "name": "t", "port": 12865, "cc": "reno", "request_bytes": 1,
                "response_bytes": 1000},
    ],
    "paths": [{"client": "c", "server": "s", "there": [HOP], "back": [HOP | {"shaper_bps": None, "ingress": "cake"}]}],
    "sampling": {"tcp_ns": 1, "device_ns": 2, "totals_ns": 3, "packets": 9},
    "captures": [{"node": "c", "device": "eth0", "file": "c.pcapng", "snaplen": 128}],
    "radios": [{"phy": "c0s0", "node": "c", "device": "wlan0", "address": "02:00:00:00:00:01"}],
    "events": [
        {"at_ns": 0, "node": "c", "name": "tc qdisc del dev eth0 root", "steps": [
            {"do": "tc", "node": "c", "lines": ["qdisc del dev eth0 root"], "origin": "event.0.tc"}]},
        {"at_ns": SECOND, "node": "s", "name": "ap restart", "steps": [
            {"do": "write", "node": "s", "path": "/sys/x", "value": "1", "origin": None},
            {"do": "app", "node": "c", "app": 1, "act": "kill", "origin": "event.1.kill"},
            {"do": "daemon", "node": "s", "tool": "hostapd", "config": "x", "ready": "y", "timeout_ns": 5,
             "origin": None}]},
    ],
    "roots": [{"kind": "debian", "place": "12", "packages": ["curl"]}],
    "rooms": [{"node": "c", "root": 0, "files": [{"path": "/etc/hosts", "mode": 420, "content": "Zm8="}]}],
    "apps": [
        APP | {"id": 0, "name": "a", "ready": {"when": "listen", "protocol": "tcp", "port": 80}},
        APP | {"id": 1, "name": "b", "after": [0], "stop_ns": SECOND, "ready": {"when": "output", "text": "x"}},
        APP | {"id": 2, "name": "d", "ready": {"when": "file", "path": "/x"}},
        APP | {"id": 3, "name": "e", "ready": {"when": "delay", "ns": 5}},
        APP | {"id": 4, "name": "f", "ready": {"when": "exit"}},
        APP | {"id": 5, "name": "g", "ready": {"when": "start"}},
    ],
    "apps_end": True,
}  # fmt: skip
"""One of every kind."""

VALUES = [None, True, -1, 0, 1, 1.5, 64, 2**16, 2**32, 2**63, 2**64, "", "x", "a/b", "10.0.0.1", "10.0.0.1/33",
          "010.0.0.1", "2001:DB8::1", "fe80::1%eth0", [], {}, [1], ["x"]]  # fmt: skip
"""Of which each place refuses most."""

Check = Callable[[Any], str | None]


@pytest.fixture(scope="module")
def check(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Check]:
    """Gives the plan to the agent: what it understood, None where it refuses."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    with subprocess.Popen([agent, "--check-plan", "-"], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as one:
        assert one.stdin is not None
        assert one.stdout is not None

        def ask(plan: Any) -> str | None:
            path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
            print(path, file=one.stdin)
            answer = one.stdout.readline()
            if answer.startswith("hourglass: "):
                assert json.loads(answer.removeprefix("hourglass: "))["message"].startswith("plan: ")
                return None
            return answer

        yield ask
        one.stdin.close()
        assert one.wait() == 0


def taken(plan: Any) -> bool:
    """Whether the models take the plan."""
    try:
        Plan.model_validate_json(json.dumps(plan))
    except ValidationError:
        return False
    return True


def places(part: Any, where: Where = ()) -> Iterator[Where]:
    """Every value of the plan, the plan itself first."""
    yield where
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from places(value, (*where, key))


def at(plan: Any, where: Where) -> Any:
    for key in where:
        plan = plan[key]
    return plan


def changed(where: Where, value: Any) -> Any:
    plan = deepcopy(PLAN)
    at(plan, where[:-1])[where[-1]] = value
    return plan


@given(plans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_comes_back_as_it_went(check: Check, plan: Plan) -> None:
    answer = check(plan.to_json().decode())
    assert answer is not None
    assert json.loads(answer) == json.loads(plan.to_json())


def test_one_of_every_kind_is_taken_by_both(check: Check) -> None:
    assert json.loads(check(PLAN) or "null") == PLAN
    assert taken(PLAN)


def test_a_key_too_many_is_refused_by_both(check: Check) -> None:
    for where in [where for where in places(PLAN) if isinstance(at(PLAN, where), dict)]:
        plan = changed((*where, "more"), 1)
        assert not taken(plan), where
        assert check(plan) is None, where


def test_a_key_too_few_is_refused_by_both(check: Check) -> None:
    for where in [where for where in places(PLAN) if where and isinstance(where[-1], str)]:
        plan = deepcopy(PLAN)
        del at(plan, where[:-1])[where[-1]]
        assert not taken(plan), where
        assert check(plan) is None, where


def test_what_is_put_in_place_of_a_value_is_judged_alike(check: Check) -> None:
    refused = 0
    for where in [where for where in places(PLAN) if where]:
        for value in VALUES:
            plan = changed(where, value)
            verdict = taken(plan)
            assert (check(plan) is not None) == verdict, (where, value)
            refused += not verdict
    assert refused > 2000


STREAM = ("streams", 1)
OUT_OF_RANGE: list[tuple[Where, Any]] = [
    (("version",), 1),
    (("seed",), 2**64),
    (("nodes",), ["c", "s", "c"]),
    (("setup", 1, "node"), "nobody"),
    (("setup", 3, "node"), None),
    (("setup", 7, "tool"), "sh"),
    ((*STREAM, "id"), 2),
    ((*STREAM, "name"), "f"),
    ((*STREAM, "port"), 2**16),
    ((*STREAM, "dscp"), 64),
    ((*STREAM, "stop_ns"), 2 * SECOND + 1),
    ((*STREAM, "start_ns"), SECOND),
    ((*STREAM, "interval_ns"), 0),
    ((*STREAM, "jitter_ns"), SECOND + 1),
    ((*STREAM, "payload_bytes"), PAYLOAD_MAX + 1),
    ((*STREAM, "server"), "c"),
    (("streams", 0, "sender"), "nobody"),
    (("streams", 2, "payload_bytes"), 3),
    (("streams", 3, "request_bytes"), 7),
    (("streams", 3, "sizes"), []),
    (("streams", 3, "sizes"), [0]),
    (("streams", 3, "sizes"), [2**63]),
    (("streams", 4, "request_bytes"), 0),
    (("streams", 4, "response_bytes"), 2**63),
    (("captures", 0, "file"), "../c"),
    (("captures",), [PLAN["captures"][0], PLAN["captures"][0] | {"node": "s"}]),
    (("captures",), [PLAN["captures"][0], PLAN["captures"][0] | {"file": "d"}]),
    (("paths",), []),
    (("paths",), PLAN["paths"] * 2),
    (("paths", 0, "there", 0, "shaper_bps"), -1),
    (("radios", 0, "node"), "nobody"),
    (("events", 1, "steps", 1, "app"), 6),
    (("events", 1, "steps", 1, "node"), "s"),
    (("setup",), [PLAN["events"][1]["steps"][1]]),
    (("rooms", 0, "node"), "nobody"),
    (("rooms", 0, "root"), 1),
    (("rooms",), [PLAN["rooms"][0], PLAN["rooms"][0]]),
    (("rooms", 0, "files", 0, "mode"), 0o10000),
    (("rooms", 0, "files", 0, "content"), "Zm9="),
    (("apps", 1, "id"), 2),
    (("apps", 1, "name"), "a"),
    (("apps", 1, "name"), "1a"),
    (("apps", 1, "room"), 1),
    (("apps", 1, "after"), [1]),
    (("apps", 1, "after"), [6]),
    (("apps", 1, "start_ns"), 2 * SECOND),
    (("apps", 1, "stop_ns"), 2 * SECOND + 1),
    (("apps", 1, "stop_signal"), 65),
    (("apps", 1, "command"), []),
    (("apps", 1, "folder"), "tmp"),
    (("apps", 1, "ready"), {"when": "start", "port": 1}),
    (("events", 0, "at_ns"), SECOND + 1),
    (("events", 1, "at_ns"), 2 * SECOND),
    (("events", 0, "node"), "nobody"),
    (("events", 0, "steps"), []),
    (("events", 0, "steps", 0, "node"), "nobody"),
    (("events", 0, "steps", 0), PLAN["setup"][4]),
    (("events", 0, "steps", 0), PLAN["setup"][5]),
]


@pytest.mark.parametrize(("where", "value"), OUT_OF_RANGE, ids=lambda one: str(one)[:40])
def test_what_is_out_of_range_is_refused_by_both(check: Check, where: Where, value: Any) -> None:
    plan = changed(where, value)
    assert not taken(plan)
    assert check(plan) is None


def test_a_udp_ping_needs_room_for_its_times(check: Check) -> None:
    plan = changed(("streams", 1), PLAN["streams"][1] | {"protocol": "udp", "payload_bytes": 15})
    assert not taken(plan)
    assert check(plan) is None


def test_there_are_no_more_streams_than_the_probe_can_follow(check: Check) -> None:
    stream = PLAN["streams"][2]
    for count, verdict in ((STREAMS_MAX, True), (STREAMS_MAX + 1, False)):
        plan = changed(("streams",), [stream | {"id": id, "name": str(id)} for id in range(count)])
        assert taken(plan) == verdict
        assert (check(plan) is not None) == verdict
