# SPDX-License-Identifier: Apache-2.0
"""Random valid plans, for hypothesis."""

import base64
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from hourglass.contract.plan import (
    DATAGRAM_PAYLOAD_MIN,
    REQUEST_MIN,
    UDP_PING_PAYLOAD_MIN,
    Plan,
)
from hourglass.contract.plan.plan_values import PAYLOAD_MAX

Json = dict[str, Any]

ecn = st.sampled_from(["not_ect", "ect1", "ect0"])
u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
ns = st.integers(0, 2**63 - 1)
positive = st.integers(1, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=12)
origins = st.none() | texts
addresses = st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6, network="2001:db8::/32").map(str)
four = st.builds("{}/{}".format, st.ip_addresses(v=4), st.integers(0, 32))
six = st.builds("{}/{}".format, st.ip_addresses(v=6, network="2001:db8::/32"), st.integers(0, 128))
interfaces = four | six
macs = st.from_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", fullmatch=True)
handles = st.none() | st.from_regex(r"[0-9a-f]{1,4}:[0-9a-f]{0,4}", fullmatch=True)
size = st.none() | u32
acts = st.sampled_from(["add", "replace"])


def payload(minimum: int) -> st.SearchStrategy[int]:
    return st.integers(minimum, PAYLOAD_MAX)


def steps(nodes: list[str], event: bool = False) -> st.SearchStrategy[Json]:
    """Return steps of every kind, or of an event's kinds."""
    node = st.sampled_from(nodes)
    anywhere = st.none() | node
    lines = st.lists(texts, max_size=3)

    def step(do: str, node: st.SearchStrategy[str | None], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
        return st.fixed_dictionaries({"do": st.just(do), "node": node, "origin": origins, **fields})

    of_setup = (
        step("epoch", node, path=texts),
        step("reach", node, address=addresses, timeout_ns=ns),
        step("take", node, real=texts, device=texts),
        step("keep", anywhere, devices=lines, files=lines, made=lines),
    )
    return st.one_of(
        *(() if event else of_setup),
        step("ip", anywhere, lines=lines),
        step("tc", anywhere, lines=lines),
        step("device", anywhere, device=texts, kind=st.sampled_from(["wire", "ifb"]), mac=st.none() | macs, mtu=size,
             queues=st.none() | st.integers(1, 64)),
        step("veth", anywhere, device=texts, peer=texts, peer_node=texts),
        step("link", anywhere, device=texts, mac=st.none() | macs, mtu=size, name=st.none() | texts,
             addrgenmode=st.sampled_from([None, "none"]), state=st.sampled_from([None, "up", "down"])),
        step("address", anywhere, device=texts, act=acts, address=interfaces, nodad=st.booleans()),
        step("route", anywhere, act=acts, subnet=st.none() | interfaces, via=addresses, metric=size),
        step("qdisc", anywhere, device=texts, act=acts, parent=handles, handle=handles, kind=texts, options=texts),
        step("shaper", anywhere, device=texts, act=acts, rate=texts, burst=u32, quantum=u32),
        step("ingress", anywhere, device=texts, ifb=texts),
        step("write", anywhere, path=texts, value=texts),
        step("ethtool", node, args=lines),
        step("iw", anywhere, args=lines, says=st.none() | texts, timeout_ns=ns),
        step("daemon", node, tool=st.just("hostapd"), config=texts, ready=texts, timeout_ns=ns),
    )  # fmt: skip


@st.composite
def events(draw: st.DrawFn, nodes: list[str], end_ns: int) -> list[Json]:
    """Draw events in the order of their times."""
    times = sorted(draw(st.lists(st.integers(0, end_ns - 1), max_size=3)))
    event_steps = st.lists(steps(nodes, event=True), min_size=1, max_size=3)
    node = st.sampled_from(nodes)
    return [{"at_ns": at_ns, "node": draw(node), "name": draw(texts), "steps": draw(event_steps)} for at_ns in times]


@st.composite
def phases(draw: st.DrawFn, start_ns: int, stop_ns: int) -> list[Json]:
    """Draw consecutive phases within the span of a stream."""
    moments = sorted(draw(st.sets(st.integers(start_ns, stop_ns), max_size=4)) | {start_ns, stop_ns})
    spans = draw(st.lists(st.sampled_from(list(pairwise(moments))), unique=True, min_size=1, max_size=3))
    return [{"start_ns": a, "stop_ns": b, "interval_ns": draw(positive)} for a, b in sorted(spans)]


@st.composite
def stream_fields(draw: st.DrawFn, client: str, server: str, span: tuple[int, int]) -> Json:
    """Draw the fields of one kind of stream. `span`: its start and stop."""
    kind = draw(st.sampled_from(["flow", "ping", "datagrams", "fetches", "transactions"]))
    interval_ns = draw(positive)
    match kind:
        case "flow":
            sender, backend = draw(st.sampled_from([client, server])), draw(st.sampled_from(["load", "socket"]))
            fields: Json = {"sender": sender, "cc": draw(texts), "backend": backend}
            fields["writes"] = draw(st.none() | st.fixed_dictionaries({"rate_bps": positive, "interval_ns": positive}))
            fields["pace_bps"] = draw(st.none() | st.integers(1, 2**60 - 1).map(lambda bytes_s: 8 * bytes_s))
        case "ping":
            protocol = draw(st.sampled_from(["icmp", "udp"]))
            minimum = UDP_PING_PAYLOAD_MIN if protocol == "udp" else 0
            fields = {
                "protocol": protocol,
                "ecn": draw(ecn),
                "payload_bytes": draw(payload(minimum)),
                "interval_ns": interval_ns,
            }
            fields |= {"jitter_ns": draw(st.integers(0, interval_ns)), "jitter_seed": draw(u64)}
        case "datagrams":
            fields = {
                "ecn": draw(ecn),
                "payload_bytes": draw(payload(DATAGRAM_PAYLOAD_MIN)),
                "burst": draw(st.integers(1, 2**32 - 1)),
            }
            fields["phases"] = draw(phases(*span))
        case "transactions":
            fields = {"cc": draw(texts), "request_bytes": draw(positive), "response_bytes": draw(positive)}
        case _:
            sizes = draw(st.lists(positive, min_size=1, max_size=3))
            fields = {"cc": draw(texts), "request_bytes": draw(payload(REQUEST_MIN)), "sizes": sizes}
            fields["interval_ns"] = interval_ns
    return {"kind": kind, **fields}


@st.composite
def streams(draw: st.DrawFn, nodes: list[str], end_ns: int) -> list[Json]:
    entries = []
    for number, name in enumerate(draw(st.lists(texts, unique=True, max_size=4))):
        client, server = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        start_ns = draw(st.integers(0, end_ns - 1))
        stop_ns = draw(st.integers(start_ns + 1, end_ns))
        entries.append(
            {"id": number, "name": name, "client": client, "server": server, "address": draw(addresses)}
            | {"port": draw(u16), "dscp": draw(st.integers(0, 63)), "start_ns": start_ns}
            | {"stop_ns": stop_ns, **draw(stream_fields(client, server, (start_ns, stop_ns)))}
        )
    return entries


hops = st.lists(
    st.fixed_dictionaries(
        {"node": texts, "device": texts, "address": interfaces, "to_node": texts, "to_device": texts}
        | {"to_address": interfaces, "medium": st.sampled_from(["cable", "air"]), "line_bps": ns}
        | {"shaper_bps": st.none() | ns, "rate_bps": ns, "delay_ns": ns, "qdisc": texts, "ingress": st.none() | texts}
        | {"impairments": st.lists(texts, max_size=2), "origin": texts}
    ),
    max_size=2,
)


contents = st.binary(max_size=9).map(lambda content: base64.b64encode(content).decode())
absolute = texts.map(lambda text: f"/{text}".replace("\0", ""))
app_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,31}", fullmatch=True)
files = st.fixed_dictionaries({"path": absolute, "mode": st.integers(0, 0o7777), "content": contents})
ready = st.one_of(
    st.sampled_from([{"when": "start"}, {"when": "exit"}]),
    st.fixed_dictionaries({"when": st.just("listen"), "protocol": st.sampled_from(["tcp", "udp"]), "port": u16}),
    st.fixed_dictionaries({"when": st.just("output"), "text": st.text("abc", min_size=1, max_size=3)}),
    st.fixed_dictionaries({"when": st.just("file"), "path": absolute}),
    st.fixed_dictionaries({"when": st.just("delay"), "ns": ns}),
)


@st.composite
def programs(draw: st.DrawFn, nodes: list[str], end_ns: int) -> Json:
    """Draw roots, rooms and programs."""
    kinds = st.sampled_from(["folder", "archive", "debian", "host", "mount"])
    root = st.fixed_dictionaries({"kind": kinds, "place": texts, "packages": st.lists(texts, max_size=2)})
    roots = draw(st.lists(root, min_size=1, max_size=2))
    containers = st.sets(st.tuples(st.sampled_from(nodes), st.integers(0, len(roots) - 1)), min_size=1, max_size=3)
    pairs = sorted(draw(containers))
    mount = st.fixed_dictionaries({"path": absolute, "root": st.integers(0, len(roots) - 1)})
    rooms = [
        {
            "node": node, "root": root,
            "mounts": draw(st.lists(mount, max_size=2)), "files": draw(st.lists(files, max_size=2)),
        }
        for node, root in pairs
    ]  # fmt: skip
    apps, names = [], draw(st.lists(app_names, unique=True, max_size=3))
    for number, name in enumerate(names):
        start_ns = draw(st.integers(0, end_ns - 1))
        other_ids = [other for other in range(len(names)) if other != number]
        fields = {
            "command": st.lists(texts, min_size=1, max_size=3), "env": st.dictionaries(texts, texts, max_size=2),
            "folder": absolute, "user": texts, "stdin": contents, "stop_signal": st.integers(1, 64), "grace_ns": ns,
            "after": st.lists(st.sampled_from(other_ids), max_size=2) if other_ids else st.just([]), "ready": ready,
            "stop_ns": st.none() | st.integers(start_ns + 1, end_ns), "ready_ns": ns, "restarts": u32, "restart_ns": ns,
            "background": st.booleans(), "output_bytes": ns, "collect": st.lists(absolute, max_size=2),
            "origin": origins, "room": st.integers(0, len(rooms) - 1),
        }  # fmt: skip
        apps.append({"id": number, "name": name, "start_ns": start_ns} | draw(st.fixed_dictionaries(fields)))
    return {"roots": roots, "rooms": rooms, "apps": apps}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw any valid plan."""
    nodes = draw(st.lists(texts, unique=True, min_size=1, max_size=3))
    node = st.sampled_from(nodes)
    end_ns = draw(positive)
    drawn_streams = draw(streams(nodes, end_ns))
    pairs = dict.fromkeys((stream["client"], stream["server"]) for stream in drawn_streams)
    captures = st.fixed_dictionaries({"node": node, "device": texts, "file": names, "snaplen": u32})
    radios = st.fixed_dictionaries({"phy": texts, "node": node, "device": texts, "address": texts})
    return Plan.model_validate(
        {
            "version": 8,
            "seed": draw(u64),
            "end_ns": end_ns,
            "nodes": nodes,
            "setup": draw(st.lists(steps(nodes), max_size=6)),
            "streams": drawn_streams,
            "paths": [{"client": c, "server": s, "there": draw(hops), "back": draw(hops)} for c, s in pairs],
            "sampling": {"tcp_ns": draw(ns), "device_ns": draw(ns), "totals_ns": draw(ns), "packets": draw(u32)},
            "captures": draw(st.lists(captures, max_size=1)),
            "radios": draw(st.lists(radios, max_size=2)),
            "events": draw(events(nodes, end_ns)),
            **draw(programs(nodes, end_ns)),
            "apps_end": draw(st.booleans()),
        }
    )
