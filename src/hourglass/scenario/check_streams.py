# SPDX-License-Identifier: Apache-2.0
"""Checks of the test across tables: its nodes, its parameters, the number and names of its streams. Fills in
defaults and refuses parameters of other tests."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hourglass.contract.plan import STREAMS_MAX
from hourglass.errors import closest
from hourglass.scenario import check_lan
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.datagrams import PHASES_MAX, ExtraDatagrams
from hourglass.scenario.quantities import seconds_ns
from hourglass.scenario.streams import flows, pings
from hourglass.scenario.test import Competing, Test
from hourglass.scenario.testbed import Node
from hourglass.scenario.testkinds import PARAMETERS, TESTS, TRAFFIC, TestKind

SIZES_MAX = 1000
VOICE = "voip"
OF_FLOWS = ("flow_cc", "stream_delays", "stream_stops", "stream_rates", "stream_writes")
"""The parameters of the test's bulk flows, in turn."""


def resolve(test: Test, nodes: tuple[Node, ...]) -> Test:
    """Return the test with every default spelled out. Raises InputError."""
    kind, names = TESTS[test.name], [node.name for node in nodes]
    switches = check_lan.switches(nodes)
    ends = [name for name in names if name not in switches]
    hosts = [node.name for node in nodes if node.role == "host"] or ends
    client = test.client or ("client" if "client" in hosts else hosts[0])
    candidates = hosts if len(hosts) > 1 else ends
    servers = [name for name in candidates if name != client] or candidates
    server = test.server or ("server" if "server" in servers else servers[-1])
    for key, name in _ends(test, client, server):
        check_node(key, name, names)
        if name in switches:
            raise refusal(key, name, "is a switch, which has no address; give a host or a router")
    if client == server and len(ends) > 1:
        raise refusal("test.server", server, "is already the client; give two different nodes")
    if test.step > test.length:
        raise refusal("test.step", test.step, f"must be at most the test's length, {test.length} s")
    competing = _competing(test, server)
    datagrams = _datagrams(test, client, server)
    parameters = _parameters(test, kind, [name for name in hosts if name != client])
    for host in parameters.get("hosts", ()):
        if host == client:
            raise refusal("test.hosts", host, "is the client; give the other hosts")
    if parameters.get("hosts"):
        if test.server and test.server != parameters["hosts"][0]:
            raise refusal(
                "test.server", test.server, f"differs from the first of test.hosts, {parameters['hosts'][0]}; remove it"
            )
        server = parameters["hosts"][0]
    resolved = test.model_copy(
        update={"client": client, "server": server, "competing": competing, "datagrams": datagrams} | parameters
    )
    _check_streams(resolved, kind)
    return resolved


def _ends(test: Test, client: str, server: str) -> Iterator[tuple[str, str]]:
    """Yield (key, name) of each node that sends or receives."""
    yield "test.client", client
    yield "test.server", server
    yield from (("test.hosts", host) for host in test.hosts or ())
    for index, flow in enumerate(test.competing):
        yield f"test.competing.{index}.client", flow.client
        yield f"test.competing.{index}.server", flow.server or server
    for index, stream in enumerate(test.datagrams):
        yield f"test.datagrams.{index}.sender", stream.sender or client
        yield f"test.datagrams.{index}.receiver", stream.receiver or server


def check_node(key: str, name: str, names: Sequence[str]) -> None:
    """Refuse a name of no node."""
    if name not in names:
        raise refusal(key, name, f"no such node. {closest(name, names)}Nodes: {several(names)}")


def _competing(test: Test, server: str) -> tuple[Competing, ...]:
    """Return the competing flows, each with its server."""
    resolved = tuple(stream.model_copy(update={"server": stream.server or server}) for stream in test.competing)
    for index, stream in enumerate(resolved):
        key = f"test.competing.{index}"
        if stream.client == stream.server:
            raise refusal(f"{key}.server", stream.server, "is already the client; give two different nodes")
        _check_span(key, test, stream)
    return resolved


def _datagrams(test: Test, client: str, server: str) -> tuple[ExtraDatagrams, ...]:
    """Return the streams of UDP, each with its name and its two nodes."""
    resolved = []
    for index, stream in enumerate(test.datagrams):
        key = f"test.datagrams.{index}"
        name = stream.name or f"datagrams {index + 1}"
        sender, receiver = stream.sender or client, stream.receiver or server
        if sender == receiver:
            raise refusal(f"{key}.receiver", receiver, "is already the sender; give two different nodes")
        if name == VOICE:
            raise refusal(
                f"{key}.name", name, "is already the stream of the test voip, which has a MOS; choose another name"
            )
        _check_span(key, test, stream)
        span_ns = seconds_ns(test.length if stream.stop is None else stream.stop) - seconds_ns(stream.start)
        if stream.phases(span_ns) > PHASES_MAX:
            raise refusal(
                f"{key}.repeat", stream.repeat, f"must have at most {PHASES_MAX} steps from its start to its end"
            )
        if not stream.spans(0, span_ns):
            raise refusal(key, name, "sends nothing before it ends; give it an earlier step above 0")
        resolved.append(stream.model_copy(update={"name": name, "sender": sender, "receiver": receiver}))
    return tuple(resolved)


def _check_span(key: str, test: Test, stream: Competing | ExtraDatagrams) -> None:
    """Check that start and stop lie within the load."""
    if stream.stop is not None and stream.stop > test.length:
        raise refusal(f"{key}.stop", stream.stop, f"must be at most the test's length, {test.length} s")
    if stream.start >= (stop := test.length if stream.stop is None else stream.stop):
        raise refusal(f"{key}.start", stream.start, f"must be before its end, {stop} s after the load begins")


def _parameters(test: Test, kind: TestKind, other_hosts: list[str]) -> dict[str, Any]:
    """Return the parameters of this test, with its times. `others`: the hosts that can be servers."""
    for key in PARAMETERS:
        if getattr(test, key) is not None and key not in kind.parameters:
            raise refusal(f"test.{key}", getattr(test, key), f"is not a parameter of the test {test.name}")
    parameters = {
        key: default if (value := getattr(test, key)) is None else value
        for key, default in PARAMETERS.items()
        if key in kind.parameters
    }
    if kind.hosts:
        parameters["hosts"] = _hosts(test, kind, other_hosts)
    _check_lists(test, kind, parameters)
    return parameters | _times(test, kind)


def _hosts(test: Test, kind: TestKind, other_hosts: list[str]) -> tuple[str, ...]:
    """Return as many hosts as the test has servers, in order; all of them if it takes any number."""
    assert kind.hosts is not None
    names = test.hosts or tuple(other_hosts)
    needed = kind.hosts.count
    if needed and len(names) < needed:
        raise refusal(
            "test.hosts", list(names), f"must be {needed} servers for the test {test.name}; the preset rtt-fair has six"
        )
    return names[:needed]


def _check_lists(test: Test, kind: TestKind, parameters: dict[str, Any]) -> None:
    streams = len(parameters["hosts"]) if kind.hosts else _count(kind, parameters)
    for key in ("markings", "labels", "ping_labels", "cc_algos", "data_directions"):
        values = parameters.get(key, ())
        if len(values) > streams:
            raise refusal(f"test.{key}", list(values), f"must have at most one for each of the {streams} streams")
    if len(parameters.get("tcp_cong_control", ())) > 2:
        raise refusal(
            "test.tcp_cong_control", list(parameters["tcp_cong_control"]), "must be one for all flows, or [up, down]"
        )
    if not 1 <= len(parameters.get("http_sizes", (1,))) <= SIZES_MAX:
        raise refusal(
            "test.http_sizes", list(parameters["http_sizes"]), f"must be at least one size, at most {SIZES_MAX}"
        )
    for key in ("cc_algos", "tcp_cong_control"):
        if test.flow_cc and parameters.get(key):
            raise refusal(f"test.{key}", list(parameters[key]), "is the same as test.flow_cc; give only one of them")


def _count(kind: TestKind, parameters: dict[str, Any]) -> int:
    """Return the number of plain flows in the direction that has more."""
    counts = [count for count in (kind.uploads, kind.downloads) if not isinstance(count, tuple)]
    return max((parameters[count] if isinstance(count, str) else count for count in counts), default=0)


def _times(test: Test, kind: TestKind) -> dict[str, Any]:
    for key in OF_FLOWS:
        if getattr(test, key) and not kind.bulk:
            raise refusal(f"test.{key}", list(getattr(test, key)), f"needs flows, and the test {test.name} has none")
    for start_delay in test.stream_delays:
        if start_delay >= test.length:
            raise refusal("test.stream_delays", start_delay, f"must be less than the test's length, {test.length} s")
    for stop in test.stream_stops:
        if stop > test.length:
            raise refusal("test.stream_stops", stop, f"must be at most the test's length, {test.length} s")
    if kind.loaded or test.datagrams:
        return {}
    if test.delay and "delay" in test.model_fields_set:
        raise refusal("test.delay", test.delay, f"needs flows to wait for, and the test {test.name} has none")
    return {"delay": 0}


def _check_streams(test: Test, kind: TestKind) -> None:
    """Check the number of streams, that their names differ, and that each flow ends after its start."""
    competing = sum(competitor.upload_streams + competitor.download_streams for competitor in test.competing)
    without_competitors = test.model_copy(update={"competing": ()})
    for flow in flows(without_competitors):
        if flow.stop_s is not None and (0 if flow.from_start else test.delay) + flow.late_s >= test.delay + flow.stop_s:
            raise refusal(
                "test.stream_stops", flow.stop_s, f"would end the flow {flow.name} before it starts (stream_delays)"
            )
    names = Counter(
        [stream.name for stream in flows(without_competitors)] + [stream.name for stream in pings(without_competitors)]
    )
    names.update(str(stream.name) for stream in test.datagrams)
    other_traffic = sum(
        getattr(test, TRAFFIC[kind_name].count) if TRAFFIC[kind_name].count else 1 for kind_name in kind.traffic
    )
    count = competing + names.total() + other_traffic
    if count > STREAMS_MAX:
        key, value = ("test.competing", f"{competing} flows") if competing else ("test", f"{count} streams")
        raise refusal(key, value, f"makes {count} streams with those of the test; at most {STREAMS_MAX}")
    duplicate = next((name for name, times in names.items() if times > 1), None)
    if duplicate is not None:
        if any(stream.name == duplicate for stream in test.datagrams):
            raise refusal("test.datagrams", duplicate, "is already the name of another stream; choose a different one")
        key = "labels" if test.labels else "ping_labels"
        labels = list(getattr(test, key) or ())
        raise refusal(f"test.{key}", labels, f"would give two streams the name {duplicate!r}; choose different ones")
