# SPDX-License-Identifier: Apache-2.0
"""The hops of a run with the qdiscs that were at them, also those that events and programs made.

The plan has the set-up's qdiscs. The table `qdisc_change` has the others, and the table `qdisc` the instants at which
each was there. A device has a state for each leaf of its tree that sent packets, with the lowest rate above it.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl

from hourglass.contract.plan import Hop
from hourglass.qdisc_line import QdiscLine
from hourglass.results.recording import Recording
from hourglass.results.series import Window
from hourglass.scenario.vocabulary import MULTIQUEUE_QDISCS
from hourglass.tc_words import rate_bps

_LINK_RATE = re.compile(r"(?:policer|shaper) .*?\brate ([^,]+)")
_DEFAULT = "0:"
"""The handle of the kernel's own qdiscs."""


class HopState(Hop):
    """A hop with one of its qdiscs."""

    handle: str = ""
    """The qdisc's handle as tc writes it; "": the set-up made it."""


class _Queue(NamedTuple):
    """A qdisc or a class of the table `qdisc`."""

    kind: str
    handle: str
    parent: str

    @property
    def is_class(self) -> bool:
        return self.kind.endswith(" class")

    @property
    def is_inside(self) -> bool:
        return (self.kind, self.handle) == ("bfifo", _DEFAULT)


class _State(NamedTuple):
    handle: str
    qdisc: str
    shaper_bps: int | None


Options = dict[tuple[str, str], str]
"""The words of changed qdiscs by handle and parent."""


class HopStates:
    """The states of a run's hops within a window."""

    def __init__(self, run: Recording, window: Window) -> None:
        self._run = run
        self._window = window
        self._states: dict[tuple[str, str, str], list[HopState]] = {}

    def of(self, hop: Hop) -> list[HopState]:
        """Return a hop with each of its qdiscs, that with most bytes first; without changes, the plan's."""
        place = (hop.node, hop.device, hop.to_node)
        if place not in self._states:
            self._states[place] = _hop_states(self._run, self._window, hop)
        return self._states[place]


def _hop_states(run: Recording, window: Window, hop: Hop) -> list[HopState]:
    until_end = (pl.col("node") == hop.node) & (pl.col("device") == hop.device) & (pl.col("t_ns") <= window.end_ns)
    changes = run.qdisc_changes.filter(until_end).sort("t_ns")
    if changes.is_empty():
        return [HopState.model_construct(**_values(hop))]
    rows = run.qdisc.filter(until_end).sort("t_ns", maintain_order=True)
    sent: dict[_State, int] = {}
    previous: dict[_Queue, int] = {}
    for t_ns, tree, options in _trees(rows, changes):
        if t_ns >= window.start_ns:
            for queue in filter(partial(_holds_packets, tree), tree):
                grown = tree[queue] - previous.get(queue, 0)
                state = _state_of(hop, tree, queue, options)
                sent[state] = sent.get(state, 0) + (grown if grown >= 0 else tree[queue])
        previous = tree
    states = sorted(sent, key=lambda state: -sent[state])
    used = [state for state in states if sent[state]] or states
    return [_hop_state(hop, state) for state in used] or [HopState.model_construct(**_values(hop))]


def _trees(rows: pl.DataFrame, changes: pl.DataFrame) -> Iterator[tuple[int, dict[_Queue, int], Options]]:
    """Yield the instants with their qdiscs and classes, the bytes that each has sent so far, and the words of those
    that changed."""
    pending = deque(changes.select("t_ns", "handle", "parent", "options").iter_rows())
    options: Options = {}
    columns = rows.select("t_ns", "kind", "handle", "parent", "bytes").iter_rows()
    for t_ns, group in groupby(columns, key=itemgetter(0)):
        while pending and pending[0][0] <= t_ns:
            _, handle, parent, words = pending.popleft()
            options[handle, parent] = words
        yield t_ns, {_Queue(*queue): count for _, *queue, count in group}, options


def _major(handle: str) -> str:
    return handle.partition(":")[0]


def _holds_packets(tree: Iterable[_Queue], queue: _Queue) -> bool:
    """Tell if a qdisc queues packets that leave: it has no other below it, or it is netem, which delays all. The bfifo
    inside tbf and red is not a separate qdisc."""
    if queue.is_class or queue.parent == "ingress" or queue.is_inside or queue.kind in MULTIQUEUE_QDISCS:
        return False
    if queue.kind == "netem" or queue.handle == _DEFAULT:
        return True
    below = (other for other in tree if not other.is_inside)
    return _major(queue.handle) not in {_major(other.handle if other.is_class else other.parent) for other in below}


def _state_of(hop: Hop, tree: Iterable[_Queue], queue: _Queue, options: Options) -> _State:
    above = [QdiscLine(_words(hop, each, options), hop.line_bps).frame_bps for each in _above(tree, queue)]
    changed = (queue.handle, queue.parent) in options
    words = _words(hop, queue, options)
    return _State(queue.handle if changed else "", words, min(filter(None, above), default=None))


def _above(tree: Iterable[_Queue], queue: _Queue) -> Iterator[_Queue]:
    """Yield the classes and qdiscs above a qdisc. A class of the first level names the root as its parent."""
    if queue.parent != "root":
        names: tuple[str, ...] = (queue.parent, f"{_major(queue.parent)}:")
    elif queue.is_class:
        names = (f"{_major(queue.handle)}:",)
    else:
        return
    by_handle = {each.handle: each for each in tree if each.handle != _DEFAULT}
    upper = next((by_handle[name] for name in names if name in by_handle), None)
    if upper is not None:
        yield upper
        yield from _above(tree, upper)


def _words(hop: Hop, queue: _Queue, options: Options) -> str:
    """Return a qdisc's words: recorded, or the plan's."""
    if words := options.get((queue.handle, queue.parent)):
        return words
    if queue.kind == "htb class" and hop.shaper_bps:
        return f"{queue.kind} ceil {hop.shaper_bps}bit"
    return hop.qdisc if queue.kind == QdiscLine(hop.qdisc).kind else queue.kind


def _hop_state(hop: Hop, state: _State) -> HopState:
    link_rates = [rate_bps(match[1]) for text in hop.impairments if (match := _LINK_RATE.match(text))]
    qdisc_rates = [QdiscLine(line, hop.line_bps).frame_bps for line in (state.qdisc, hop.ingress or "")]
    rate = min(filter(None, (hop.line_bps, state.shaper_bps, *link_rates, *qdisc_rates)))
    return HopState.model_construct(**(_values(hop) | state._asdict() | {"rate_bps": rate}))


def _values(hop: Hop) -> dict[str, Any]:
    return {name: getattr(hop, name) for name in Hop.model_fields}
