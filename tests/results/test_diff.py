# SPDX-License-Identifier: Apache-2.0
"""The first difference of two runs, from rows written by hand."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from hourglass.contract import record_tables
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.errors import InputError
from hourglass.results.diff import Change, diff


@dataclass
class Run:
    """The part of a recording that `diff` reads."""

    rows: dict[str, list[dict[str, Any]]]
    digest: str = "a"
    settings: dict[tuple[str, ...], Any] = field(default_factory=dict)
    elsewhere: bool = False
    path: str = "runs/x"

    @property
    def info(self) -> Any:
        kernel = SimpleNamespace(release="6.1", key="k")
        return SimpleNamespace(digest=self.digest, elsewhere=self.elsewhere, engine="virtual", kernel=kernel)

    @property
    def experiment(self) -> Any:
        return SimpleNamespace(settings=self.settings)

    @property
    def packets(self) -> pl.DataFrame:
        return self.table("packet")

    def table(self, name: str) -> pl.DataFrame:
        schema = dict(record_tables.SCHEMAS[name])
        if "stream" in schema:
            schema["stream"] = pl.Enum(["f", "g"])
        return pl.DataFrame(self.rows.get(name, []), schema=schema)


def packet_rows(number: int, start_ns: int, *visits: dict[str, int], stream: str = "f") -> list[dict[str, Any]]:
    """Return a packet's rows: the layers of each node that it passed."""
    nodes = ("client", "router", "server")
    end = start_ns + sum(sum(layers.values()) for layers in visits)
    fields = {
        "t_ns": start_ns,
        "end_ns": end,
        "stream": stream,
        "way": "up",
        "packet": number,
        "bytes": 1448,
        "data": True,
    }
    return [
        fields | {"visit": number, "node": nodes[number]} | dict.fromkeys(LAYER_COLUMNS, 0)
        | {f"{layer}_ns": ns for layer, ns in layers.items()}
        for number, layers in enumerate(visits)
    ]  # fmt: skip


def sample(t_ns: int, **columns: int) -> dict[str, Any]:
    return {"t_ns": t_ns, "stream": "f", "sender": True, **columns}


A = [
    *packet_rows(1, 1000, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 300}, {"rx": 7}),
    *packet_rows(2, 1100, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 40}, {"rx": 7}),
]


def test_the_same_bytes_are_the_same() -> None:
    difference = diff(Run({"packet": A}), Run({"packet": A}))  # type: ignore[arg-type]
    assert difference.same
    assert not difference.tables


def test_the_first_packet_that_differs_and_its_layer_to_the_ns() -> None:
    later = [
        *packet_rows(1, 1000, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 290}, {"rx": 7}),
        *packet_rows(2, 1100, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 60}, {"rx": 7}),
    ]
    first = Run({"packet": A, "tcp": [sample(1200, snd_cwnd=10), sample(1300, snd_cwnd=11)]})
    second = Run({"packet": later[::-1], "tcp": [sample(1200, snd_cwnd=9), sample(1300, snd_cwnd=12)]}, "b")
    packet = diff(first, second).packet  # type: ignore[arg-type]
    assert packet is not None
    # Packet 2 leaves the router's queue after 40 ns, when it would have stayed: before packet 1 leaves 10 ns early.
    assert (packet.t_ns, packet.number, packet.node, packet.layer) == (1100 + 105 + 20 + 40, 2, "router", "qdisc")
    assert packet.changes == (Change("qdisc_ns", 40, 60), Change("end_ns", 1272, 1292))
    difference = diff(first, second)  # type: ignore[arg-type]
    assert (difference.socket_ns, difference.socket) == (1300, (Change("snd_cwnd", 11, 12),))
    assert [(table.name, table.rows, table.differ, table.t_ns) for table in difference.tables] == [
        ("tcp", (2, 2), 2, 1200)
    ]


def test_a_packet_that_one_run_lacks_and_one_that_began_at_another_time() -> None:
    lacks = diff(Run({"packet": A}), Run({"packet": A[:3]}, "b")).packet  # type: ignore[arg-type]
    assert lacks is not None
    assert (lacks.number, lacks.t_ns, lacks.layer, lacks.changes) == (2, 1100, "", (Change("exists", True, False),))
    moved = [*A[:3], *packet_rows(2, 1090, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 40}, {"rx": 7})]
    shifted = diff(Run({"packet": A}), Run({"packet": moved}, "b")).packet  # type: ignore[arg-type]
    assert shifted is not None
    assert (shifted.number, shifted.t_ns, shifted.node, shifted.layer) == (2, 1090, "client", "")
    assert shifted.changes == (Change("t_ns", 1100, 1090), Change("end_ns", 1272, 1262))


def test_copies_of_packets_are_distinguished() -> None:
    twice = [*A[:3], *A[:3]]
    packet = diff(Run({"packet": A[:3]}), Run({"packet": twice}, "b")).packet  # type: ignore[arg-type]
    assert packet is not None
    assert packet.changes == (Change("exists", False, True),)


def test_settings_that_differ_are_listed() -> None:
    first, second = {("stack", "tsq"): "default", ("seed",): 1}, {("stack", "tsq"): "off", ("seed",): 1}
    difference = diff(Run({}, settings=first), Run({}, "b", second))  # type: ignore[arg-type]
    assert difference.asked == (Change("stack.tsq", "default", "off"),)
    assert difference.packet is None


def test_runs_that_were_measured_elsewhere_are_refused() -> None:
    with pytest.raises(InputError, match="made by another tool"):
        diff(Run({}), Run({}, elsewhere=True))  # type: ignore[arg-type]
