# SPDX-License-Identifier: Apache-2.0
"""The parameters of the test at hand: defaults spelled out, those of other tests refused, lists as long as may be."""

from typing import Any

from hourglass.scenario.blame import refusal
from hourglass.scenario.model import Test
from hourglass.scenario.testkinds import PARAMETERS, TESTS, TestKind


def resolve(test: Test, others: list[str]) -> dict[str, Any]:
    """What is to be updated in the test. `others`: the hosts that can be servers. Raises InputError."""
    kind = TESTS[test.name]
    for key in PARAMETERS:
        if getattr(test, key) is not None and key not in kind.parameters:
            raise refusal(f"test.{key}", getattr(test, key), f"the test {test.name} has no such parameter")
    found = {key: _value(test, key) for key in PARAMETERS if key in kind.parameters}
    if kind.hosts:
        found["hosts"] = _hosts(test, kind, others)
    _check_lists(test, kind, found)
    return found | _times(test, kind)


def _value(test: Test, key: str) -> Any:
    given = getattr(test, key)
    if key == "http_sizes" and given == ():
        raise refusal("test.http_sizes", [], "at least one size")
    return PARAMETERS[key] if given is None else given


def _hosts(test: Test, kind: TestKind, others: list[str]) -> tuple[str, ...]:
    """As many as the test has, in order; all of them where it takes any number."""
    assert kind.hosts is not None
    named = test.hosts or tuple(others)
    needed = kind.hosts.count
    if needed and len(named) < needed:
        raise refusal("test.hosts", list(named), f"{test.name} needs {needed} servers; the preset rtt-fair has six")
    return named[:needed]


def _check_lists(test: Test, kind: TestKind, found: dict[str, Any]) -> None:
    streams = len(found["hosts"]) if kind.hosts else _count(kind, found)
    for key in ("markings", "labels", "ping_labels", "cc_algos", "data_directions"):
        given = found.get(key, ())
        if len(given) > streams:
            raise refusal(f"test.{key}", list(given), f"at most one for each of the {streams} streams")
    labels = found.get("labels", ())
    if kind.udp_per_stream and len(set(labels)) != len(labels):
        raise refusal("test.labels", list(labels), "names of their own: two are the same")
    if len(found.get("tcp_cong_control", ())) > 2:
        raise refusal("test.tcp_cong_control", list(found["tcp_cong_control"]), "one for all flows, or [up, down]")
    for key in ("cc_algos", "tcp_cong_control"):
        if test.flow_cc and found.get(key):
            raise refusal(f"test.{key}", list(found[key]), "test.flow_cc says the same: give one of them")


def _count(kind: TestKind, found: dict[str, Any]) -> int:
    """Plain flows of the fuller way."""
    ways = [one for one in (kind.uploads, kind.downloads) if not isinstance(one, tuple)]
    return max((found[one] if isinstance(one, str) else one for one in ways), default=0)


def _times(test: Test, kind: TestKind) -> dict[str, Any]:
    if not kind.loaded:
        for key in ("flow_cc", "stream_delays"):
            if getattr(test, key):
                raise refusal(f"test.{key}", list(getattr(test, key)), f"the test {test.name} has no flows")
        if test.delay and "delay" in test.model_fields_set:
            raise refusal("test.delay", test.delay, f"the test {test.name} has no flows to wait for")
        return {"delay": 0}
    for late in test.stream_delays:
        if late >= test.length:
            raise refusal("test.stream_delays", late, f"less than the test's length, {test.length} s")
    return {}
