# SPDX-License-Identifier: Apache-2.0
"""What no single value of the test shows: its nodes, the parameters of the test at hand, how many streams there are
and what they are called. Fills in defaults, refuses parameters of other tests."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hourglass.contract.plan import STREAMS_MAX
from hourglass.errors import closest
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.datagrams import PHASES_MAX, DatagramStream
from hourglass.scenario.streams import flows, pings
from hourglass.scenario.test import Competing, Test
from hourglass.scenario.testbed import Node
from hourglass.scenario.testkinds import PARAMETERS, TESTS, TRAFFIC, TestKind
from hourglass.scenario.units import seconds_ns

SIZES_MAX = 1000
VOICE = "voip"
OF_FLOWS = ("flow_cc", "stream_delays", "stream_stops", "stream_rates", "stream_writes")
"""What holds for the test's own flows, in turn."""


def resolve(test: Test, nodes: tuple[Node, ...]) -> Test:
    """The test with every default spelled out. Raises InputError."""
    kind, names = TESTS[test.name], [node.name for node in nodes]
    hosts = [node.name for node in nodes if node.role == "host"] or names
    client = test.client or ("client" if "client" in hosts else hosts[0])
    server = test.server or ("server" if "server" in hosts else hosts[-1])
    check_node("test.client", client, names)
    check_node("test.server", server, names)
    if client == server:
        raise refusal("test.server", server, "is the client: name two nodes")
    if test.step > test.length:
        raise refusal("test.step", test.step, f"at most the test's length, {test.length} s")
    competing = _competing(test, server, names)
    datagrams = _datagrams(test, client, server, names)
    found = _parameters(test, kind, [name for name in hosts if name != client])
    for host in found.get("hosts", ()):
        check_node("test.hosts", host, names)
        if host == client:
            raise refusal("test.hosts", host, "is the client: name the others")
    if found.get("hosts"):
        if test.server and test.server != found["hosts"][0]:
            raise refusal("test.server", test.server, f"is the first of test.hosts, {found['hosts'][0]}; leave it out")
        server = found["hosts"][0]
    made = test.model_copy(
        update={"client": client, "server": server, "competing": competing, "datagrams": datagrams} | found
    )
    _check_streams(made, kind)
    return made


def check_node(key: str, name: str, names: Sequence[str]) -> None:
    """Refuses a name that is no node's."""
    if name not in names:
        raise refusal(key, name, f"no such node. {closest(name, names)}Nodes: {several(names)}")


def _competing(test: Test, server: str, names: list[str]) -> tuple[Competing, ...]:
    """Each with its server."""
    resolved = tuple(one.model_copy(update={"server": one.server or server}) for one in test.competing)
    for index, one in enumerate(resolved):
        key = f"test.competing.{index}"
        check_node(f"{key}.client", one.client, names)
        check_node(f"{key}.server", one.server, names)
        if one.client == one.server:
            raise refusal(f"{key}.server", one.server, "is the client: name two nodes")
        _check_span(key, test, one)
    return resolved


def _datagrams(test: Test, client: str, server: str, names: list[str]) -> tuple[DatagramStream, ...]:
    """Each with its name and its two nodes."""
    resolved = []
    for index, one in enumerate(test.datagrams):
        key = f"test.datagrams.{index}"
        name = one.name or f"datagrams {index + 1}"
        sender, receiver = one.sender or client, one.receiver or server
        check_node(f"{key}.sender", sender, names)
        check_node(f"{key}.receiver", receiver, names)
        if sender == receiver:
            raise refusal(f"{key}.receiver", receiver, "is the sender: name two nodes")
        if name == VOICE:
            raise refusal(f"{key}.name", name, "is the stream of the test voip, whose MOS is told; another name")
        _check_span(key, test, one)
        span_ns = seconds_ns(test.length if one.stop is None else one.stop) - seconds_ns(one.start)
        if one.phases(span_ns) > PHASES_MAX:
            raise refusal(f"{key}.repeat", one.repeat, f"at most {PHASES_MAX} steps from its start to its end")
        if not one.spans(0, span_ns):
            raise refusal(key, name, "sends nothing before it ends: a step of its rate above 0 begins later")
        resolved.append(one.model_copy(update={"name": name, "sender": sender, "receiver": receiver}))
    return tuple(resolved)


def _check_span(key: str, test: Test, one: Competing | DatagramStream) -> None:
    """Start and stop lie within the load."""
    if one.stop is not None and one.stop > test.length:
        raise refusal(f"{key}.stop", one.stop, f"at most the test's length, {test.length} s")
    if one.start >= (stop := test.length if one.stop is None else one.stop):
        raise refusal(f"{key}.start", one.start, f"before its end, {stop} s after the load begins")


def _parameters(test: Test, kind: TestKind, others: list[str]) -> dict[str, Any]:
    """The parameters of the test at hand, with its times. `others`: the hosts that can be servers."""
    for key in PARAMETERS:
        if getattr(test, key) is not None and key not in kind.parameters:
            raise refusal(f"test.{key}", getattr(test, key), f"the test {test.name} has no such parameter")
    found = {key: default if (given := getattr(test, key)) is None else given for key, default in PARAMETERS.items()
             if key in kind.parameters}  # fmt: skip
    if kind.hosts:
        found["hosts"] = _hosts(test, kind, others)
    _check_lists(test, kind, found)
    return found | _times(test, kind)


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
    if len(found.get("tcp_cong_control", ())) > 2:
        raise refusal("test.tcp_cong_control", list(found["tcp_cong_control"]), "one for all flows, or [up, down]")
    if not 1 <= len(found.get("http_sizes", (1,))) <= SIZES_MAX:
        raise refusal("test.http_sizes", list(found["http_sizes"]), f"at least one size, at most {SIZES_MAX}")
    for key in ("cc_algos", "tcp_cong_control"):
        if test.flow_cc and found.get(key):
            raise refusal(f"test.{key}", list(found[key]), "test.flow_cc says the same: give one of them")


def _count(kind: TestKind, found: dict[str, Any]) -> int:
    """Plain flows of the fuller way."""
    ways = [one for one in (kind.uploads, kind.downloads) if not isinstance(one, tuple)]
    return max((found[one] if isinstance(one, str) else one for one in ways), default=0)


def _times(test: Test, kind: TestKind) -> dict[str, Any]:
    for key in OF_FLOWS:
        if getattr(test, key) and not kind.bulk:
            raise refusal(f"test.{key}", list(getattr(test, key)), f"the test {test.name} has no flows")
    for late in test.stream_delays:
        if late >= test.length:
            raise refusal("test.stream_delays", late, f"less than the test's length, {test.length} s")
    for stop in test.stream_stops:
        if stop > test.length:
            raise refusal("test.stream_stops", stop, f"at most the test's length, {test.length} s")
    if kind.loaded or test.datagrams:
        return {}
    if test.delay and "delay" in test.model_fields_set:
        raise refusal("test.delay", test.delay, f"the test {test.name} has no flows to wait for")
    return {"delay": 0}


def _check_streams(test: Test, kind: TestKind) -> None:
    """So many as a plan can have, no two of one name, each flow with an end behind its start."""
    competing = sum(one.upload_streams + one.download_streams for one in test.competing)
    own = test.model_copy(update={"competing": ()})
    for one in flows(own):
        if one.stop_s is not None and (0 if one.from_start else test.delay) + one.late_s >= test.delay + one.stop_s:
            raise refusal("test.stream_stops", one.stop_s, f"{one.name} would end before it starts (stream_delays)")
    names = Counter([one.name for one in flows(own)] + [one.name for one in pings(own)])
    names.update(str(one.name) for one in test.datagrams)
    further = sum(getattr(test, TRAFFIC[one].count) if TRAFFIC[one].count else 1 for one in kind.traffic)
    count = competing + names.total() + further
    if count > STREAMS_MAX:
        key, value = ("test.competing", f"{competing} flows") if competing else ("test", f"{count} streams")
        raise refusal(key, value, f"with the test's own streams {count}; at most {STREAMS_MAX}")
    twice = next((name for name, times in names.items() if times > 1), None)
    if twice is not None:
        if any(one.name == twice for one in test.datagrams):
            raise refusal("test.datagrams", twice, "a name of its own: two streams would be it")
        key = "labels" if test.labels else "ping_labels"
        given = list(getattr(test, key) or ())
        raise refusal(f"test.{key}", given, f"names of their own: two streams would be {twice!r}")
