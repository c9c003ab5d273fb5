# SPDX-License-Identifier: Apache-2.0
"""The two ends of the plan's contract: the Python models and the agent accept and refuse the same parts. The relations
between parts are checked by the models alone."""

import json
import subprocess
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from hourglass.contract.plan import STREAMS_MAX, Plan
from hourglass.contract.plan.plan_values import PAYLOAD_MAX
from tests.contract.plans import plans

KeyPath = tuple[str | int, ...]

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
    "version": 8, "seed": 1, "end_ns": 2 * SECOND, "nodes": ["c", "s"],
    "setup": [
        {"do": "ip", "node": None, "lines": ["link add eth0 type wire"], "origin": None},
        {"do": "tc", "node": "c", "lines": ["qdisc add dev eth0 root fq"], "origin": "stack.qdisc"},
        {"do": "write", "node": "c", "path": "/proc/sys/net/ipv4/tcp_ecn", "value": "1", "origin": None},
        {"do": "ethtool", "node": "c", "args": ["-K", "eth0"], "origin": None},
        {"do": "epoch", "node": "c", "path": "/sys/x", "origin": None},
        {"do": "reach", "node": "c", "address": "10.0.0.1", "timeout_ns": 5, "origin": None},
        {"do": "iw", "node": None, "args": ["dev"], "says": None, "timeout_ns": 5, "origin": None},
        {"do": "daemon", "node": "c", "tool": "hostapd", "config": "x", "ready": "y", "timeout_ns": 5, "origin": None},
        {"do": "device", "node": "c", "device": "eth0", "kind": "wire", "mac": "02:00:00:00:00:01", "mtu": 9000,
         "queues": 4, "origin": None},
        {"do": "veth", "node": "c", "device": "eth1", "peer": "eth0", "peer_node": "s", "origin": None},
        {"do": "link", "node": "c", "device": "eth0", "mac": None, "mtu": 1400, "addrgenmode": "none", "name": None,
         "state": "up", "origin": None},
        {"do": "address", "node": "c", "device": "eth0", "act": "add", "address": "10.0.0.2/24", "nodad": False,
         "origin": None},
        {"do": "route", "node": "c", "act": "replace", "subnet": "10.0.1.0/24", "via": "10.0.0.1", "metric": None,
         "origin": None},
        {"do": "qdisc", "node": "c", "device": "eth0", "act": "add", "parent": "1:a", "handle": "10:", "kind": "fq",
         "options": "limit 100", "origin": None},
        {"do": "shaper", "node": "c", "device": "eth0", "act": "add", "rate": "1mbit", "burst": 5, "quantum": 1514,
         "origin": None},
        {"do": "ingress", "node": "c", "device": "eth0", "ifb": "ifb4eth0", "origin": None},
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
    "rooms": [{"node": "c", "root": 0, "mounts": [{"path": "/src", "root": 0}],
               "files": [{"path": "/etc/hosts", "mode": 420, "content": "Zm8="}]}],
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
"""Values. Each key refuses most of them."""

Check = Callable[[Any], str | None]


@pytest.fixture(scope="module")
def check(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Check]:
    """Return a function that gives the agent a plan and returns the agent's version, or None if it refuses."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    with subprocess.Popen([agent, "--check-plan", "-"], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(plan: Any) -> str | None:
            path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
            print(path, file=process.stdin)
            answer = process.stdout.readline()
            if answer.startswith("hourglass: "):
                assert json.loads(answer.removeprefix("hourglass: "))["code"] == "plan-refused"
                return None
            return answer

        yield ask
        process.stdin.close()
        assert process.wait() == 0


def mistakes(plan: Any) -> list[tuple[str, Any]]:
    """Return the kinds and positions of the mistakes that the models find. A wrong relation has no position."""
    try:
        Plan.model_validate_json(json.dumps(plan))
    except ValidationError as error:
        return [(mistake["type"], mistake["loc"]) for mistake in error.errors()]
    return []


def is_valid(plan: Any) -> bool:
    return not mistakes(plan)


def has_valid_parts(plan: Any) -> bool:
    """Tell whether the models accept each part of the plan."""
    return mistakes(plan) in ([], [("value_error", ())])


def key_paths(part: Any, keys: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the key path of every value of the plan, the plan itself first."""
    yield keys
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from key_paths(value, (*keys, key))


def value_at(plan: Any, keys: KeyPath) -> Any:
    for key in keys:
        plan = plan[key]
    return plan


def plan_with(keys: KeyPath, value: Any) -> Any:
    plan = deepcopy(PLAN)
    value_at(plan, keys[:-1])[keys[-1]] = value
    return plan


@given(plans())
@settings(max_examples=200)
def test_the_agent_prints_the_same_plan(check: Check, plan: Plan) -> None:
    answer = check(plan.to_json().decode())
    assert answer is not None
    assert json.loads(answer) == json.loads(plan.to_json())


def test_one_of_every_kind_is_accepted_by_both(check: Check) -> None:
    assert json.loads(check(PLAN) or "null") == PLAN
    assert is_valid(PLAN)


def test_an_unknown_key_is_refused_by_both(check: Check) -> None:
    for keys in [keys for keys in key_paths(PLAN) if isinstance(value_at(PLAN, keys), dict)]:
        plan = plan_with((*keys, "more"), 1)
        assert not is_valid(plan), keys
        assert check(plan) is None, keys


def test_a_missing_key_is_refused_by_both(check: Check) -> None:
    for keys in [keys for keys in key_paths(PLAN) if keys and isinstance(keys[-1], str)]:
        plan = deepcopy(PLAN)
        del value_at(plan, keys[:-1])[keys[-1]]
        assert not is_valid(plan), keys
        assert check(plan) is None, keys


@pytest.mark.slow
def test_both_agree_about_the_form_of_every_replaced_value(check: Check) -> None:
    refused = 0
    for keys in [keys for keys in key_paths(PLAN) if keys]:
        for value in VALUES:
            plan = plan_with(keys, value)
            verdict = has_valid_parts(plan)
            assert (check(plan) is not None) == verdict, (keys, value)
            refused += not verdict
    assert refused > 2000


STREAM = ("streams", 1)
OUT_OF_RANGE: list[tuple[KeyPath, Any]] = [
    (("version",), 1),
    (("seed",), 2**64),
    (("nodes",), ["c", "s", "c"]),
    (("setup", 1, "node"), "nobody"),
    (("setup", 3, "node"), None),
    (("setup", 7, "tool"), "sh"),
    (("setup", 8, "mac"), "02:00:00:00:00:1"),
    (("setup", 8, "mac"), "02:00:00:00:00:0A"),
    (("setup", 11, "address"), "10.0.0.2/024"),
    (("setup", 13, "parent"), ":1"),
    (("setup", 13, "handle"), "10"),
    (("setup", 13, "handle"), "+1:"),
    (("setup", 13, "handle"), "00010:"),
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
    (("rooms", 0, "mounts", 0, "root"), 1),
    (("rooms", 0, "mounts", 0, "path"), "src"),
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


@pytest.mark.parametrize(("keys", "value"), OUT_OF_RANGE, ids=lambda value: str(value)[:40])
def test_a_value_out_of_range_is_refused(check: Check, keys: KeyPath, value: Any) -> None:
    plan = plan_with(keys, value)
    assert not is_valid(plan)
    assert (check(plan) is not None) == has_valid_parts(plan)


def test_a_udp_ping_needs_room_for_its_times() -> None:
    assert not is_valid(plan_with(("streams", 1), PLAN["streams"][1] | {"protocol": "udp", "payload_bytes": 15}))


def test_a_plan_has_no_more_streams_than_the_probe_can_follow() -> None:
    stream = PLAN["streams"][2]
    for count, verdict in ((STREAMS_MAX, True), (STREAMS_MAX + 1, False)):
        plan = plan_with(("streams",), [stream | {"id": id, "name": str(id)} for id in range(count)])
        assert is_valid(plan) == verdict
