# SPDX-License-Identifier: Apache-2.0
"""What pictures and report call a run's streams, and what they look like there: the same in both.

A flow's class is what its name says besides the way ("upload::EF"), or its congestion control where there are too many
flows to name each. A ping of a class of the flows has its colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hourglass import looks
from hourglass.contract.plan import Flow, Ping, Stream
from hourglass.looks import Look
from hourglass.results.recording import Recording

NAMED_FLOWS = 16
"""More than so many flows are not named one by one: they are drawn thin, in the colour of their way or of their
congestion control."""
FIRST_PING = 3
"""Pings begin at this colour: the three before it are most often those of flows."""
WAYS = ("upload", "download")


@dataclass(frozen=True)
class Drawn:
    """A flow as it is drawn. `label`: "" where the line before it has the legend of both. `named`: one by one."""

    flow: Flow
    label: str
    look: Look
    named: bool = True


def flows(run: Recording) -> list[Drawn]:
    """The flows in the plan's order."""
    return _many(run.flows) if len(run.flows) > NAMED_FLOWS else first(run, NAMED_FLOWS)


def sum_of_flows(run: Recording) -> str:
    """What the sum of the flows is called: datagrams in the same panel are not in it."""
    return "all TCP flows" if run.datagrams else "all flows"


def first(run: Recording, most: int) -> list[Drawn]:
    """The first flows, at most so many, each by its name."""
    found = run.flows[:most]
    names = [_name(flow, mixed=len({one.cc for one in found}) > 1) for flow in found]
    made = looks.by_class([class_of(flow) for flow in found], [_way(flow) for flow in found])
    return [Drawn(flow, name, look) for flow, name, look in zip(found, names, made, strict=True)]


def _many(found: Sequence[Flow]) -> list[Drawn]:
    """One colour and one entry of the legend for all flows of a way, or of a congestion control."""
    mixed = len({flow.cc for flow in found}) > 1
    kinds = [flow.cc if mixed else _way(flow) for flow in found]
    known = list(dict.fromkeys(kinds))
    words = {kind: f"{kinds.count(kind)} {kind}" + ("" if mixed else "s") for kind in known}
    first = {kind: kinds.index(kind) for kind in known}
    return [
        Drawn(flow, words[kind] if first[kind] == place else "", looks.look(known.index(kind)), named=False)
        for place, (flow, kind) in enumerate(zip(found, kinds, strict=True))
    ]


def pings(run: Recording) -> list[Look]:
    """The looks of the pings in the plan's order."""
    classes = list(dict.fromkeys(class_of(flow) for flow in run.flows))
    own = [_last_word(ping) for ping in run.pings]
    if len(set(own)) == len(own) and any(one in classes for one in own):
        known = [*classes, *(one for one in own if one not in classes)]
        return [looks.look(known.index(one)) for one in own]
    return looks.looks(len(own), FIRST_PING)


def others(run: Recording, streams: Sequence[Stream]) -> list[Look]:
    """The looks of datagram streams, and of whatever else is sent, beside the flows."""
    return looks.further(len(streams), [one.look for one in flows(run)])


def class_of(flow: Flow) -> str:
    """ "EF" of "upload::EF"; a competing flow is a class of its own."""
    way, _, label = flow.name.partition("::")
    return label if way in WAYS and label else flow.name


def _way(flow: Flow) -> looks.Way:
    return "upload" if flow.upload else "download"


def _name(flow: Flow, mixed: bool) -> str:
    """Its name, with its congestion control where flows differ in it and the name does not say."""
    return f"{flow.name} {flow.cc}" if mixed and flow.cc.lower() not in flow.name.lower() else flow.name


def _last_word(ping: Ping) -> str:
    return ping.name.split()[-1]
