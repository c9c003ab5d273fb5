# SPDX-License-Identifier: Apache-2.0
"""Where two runs part, of rows made by hand."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from hourglass.contract import records
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.errors import InputError
from hourglass.results.diff import Change, diff


@dataclass
class Run:
    """As much of a recording as is looked at."""

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
        schema = dict(records.SCHEMAS[name])
        if "stream" in schema:
            schema["stream"] = pl.Enum(["f", "g"])
        return pl.DataFrame(self.rows.get(name, []), schema=schema)


def passed(number: int, begun: int, *visits: dict[str, int], stream: str = "f") -> list[dict[str, Any]]:
    """A packet's rows: the layers of each node that it passed."""
    nodes = ("client", "router", "server")
    end = begun + sum(sum(layers.values()) for layers in visits)
    about = {"t_ns": begun, "end_ns": end, "stream": stream, "way": "up", "packet": number, "bytes": 1448, "data": True}
    return [
        about | {"visit": place, "node": nodes[place]} | dict.fromkeys(LAYER_COLUMNS, 0)
        | {f"{layer}_ns": ns for layer, ns in layers.items()}
        for place, layers in enumerate(visits)
    ]  # fmt: skip


def sample(t_ns: int, **columns: int) -> dict[str, Any]:
    return {"t_ns": t_ns, "stream": "f", "sender": True, **columns}


A = [
    *passed(1, 1000, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 300}, {"rx": 7}),
    *passed(2, 1100, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 40}, {"rx": 7}),
]


def test_the_same_bytes_are_the_same() -> None:
    found = diff(Run({"packet": A}), Run({"packet": A}))  # type: ignore[arg-type]
    assert found.same
    assert not found.tables


def test_the_first_packet_that_fares_differently_and_the_layer_to_the_ns() -> None:
    later = [
        *passed(1, 1000, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 290}, {"rx": 7}),
        *passed(2, 1100, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 60}, {"rx": 7}),
    ]
    one = Run({"packet": A, "tcp": [sample(1200, snd_cwnd=10), sample(1300, snd_cwnd=11)]})
    other = Run({"packet": later[::-1], "tcp": [sample(1200, snd_cwnd=9), sample(1300, snd_cwnd=12)]}, "b")
    packet = diff(one, other).packet  # type: ignore[arg-type]
    assert packet is not None
    # Packet 2 leaves the router's queue after 40 ns, when it would have stayed: before packet 1 leaves 10 ns early.
    assert (packet.t_ns, packet.number, packet.node, packet.layer) == (1100 + 105 + 20 + 40, 2, "router", "qdisc")
    assert packet.changes == (Change("qdisc_ns", 40, 60), Change("end_ns", 1272, 1292))
    found = diff(one, other)  # type: ignore[arg-type]
    assert (found.socket_ns, found.socket) == (1300, (Change("snd_cwnd", 11, 12),))
    assert [(table.name, table.rows, table.differ, table.t_ns) for table in found.tables] == [("tcp", (2, 2), 2, 1200)]


def test_a_packet_that_one_run_lacks_and_one_that_began_at_another_time() -> None:
    lacks = diff(Run({"packet": A}), Run({"packet": A[:3]}, "b")).packet  # type: ignore[arg-type]
    assert lacks is not None
    assert (lacks.number, lacks.t_ns, lacks.layer, lacks.changes) == (2, 1100, "", (Change("exists", True, False),))
    moved = [*A[:3], *passed(2, 1090, {"cwnd": 5, "qdisc": 100}, {"rx": 20, "qdisc": 40}, {"rx": 7})]
    found = diff(Run({"packet": A}), Run({"packet": moved}, "b")).packet  # type: ignore[arg-type]
    assert found is not None
    assert (found.number, found.t_ns, found.node, found.layer) == (2, 1090, "client", "")
    assert found.changes == (Change("t_ns", 1100, 1090), Change("end_ns", 1272, 1262))


def test_copies_are_told_apart() -> None:
    twice = [*A[:3], *A[:3]]
    found = diff(Run({"packet": A[:3]}), Run({"packet": twice}, "b")).packet  # type: ignore[arg-type]
    assert found is not None
    assert found.changes == (Change("exists", False, True),)


def test_what_was_asked_differently() -> None:
    one, other = {("stack", "tsq"): "default", ("seed",): 1}, {("stack", "tsq"): "off", ("seed",): 1}
    found = diff(Run({}, settings=one), Run({}, "b", other))  # type: ignore[arg-type]
    assert found.asked == (Change("stack.tsq", "default", "off"),)
    assert found.packet is None


def test_what_was_measured_elsewhere_is_refused() -> None:
    with pytest.raises(InputError, match="measured elsewhere"):
        diff(Run({}), Run({}, elsewhere=True))  # type: ignore[arg-type]
