# SPDX-License-Identifier: Apache-2.0
"""Names and styles of a run's streams, the same in pictures and report.

A flow's class is the rest of its name after the direction ("upload::EF"), or its congestion control if there are too
many flows for individual names. A ping has the colour of the flows with the same class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hourglass import series_style
from hourglass.contract.plan import FlowStream, PingStream, Stream
from hourglass.results import connection_series
from hourglass.results.connections import Connection
from hourglass.results.recording import Recording
from hourglass.series_style import SeriesStyle

NAMED_FLOWS = 16
"""The most flows with individual names. More are thin lines, in the colour of their direction or congestion control."""
FIRST_PING = 3
"""The first colour of pings: the three before it usually belong to flows."""
WAYS = ("upload", "download")


@dataclass(frozen=True)
class FlowStyle:
    """The style of a flow. `label`: "" if the line before it has the legend of both. `named`: individually."""

    flow: FlowStream
    label: str
    look: SeriesStyle
    named: bool = True


def flow_styles(run: Recording) -> list[FlowStyle]:
    """Return the flows in the plan's order."""
    return _many(run.flows) if len(run.flows) > NAMED_FLOWS else first_flow_styles(run, NAMED_FLOWS)


def sum_of_flows(run: Recording) -> str:
    """Return the label of the flows' sum, which excludes datagrams in the same panel."""
    return "all TCP flows" if run.datagrams else "all flows"


def first_flow_styles(run: Recording, most: int) -> list[FlowStyle]:
    """Return styles with individual names for the first flows."""
    selection = run.flows[:most]
    names = [_name(flow, mixed=len({flow.cc for flow in selection}) > 1) for flow in selection]
    styles = series_style.styles_by_class(
        [class_of(flow) for flow in selection], [_direction(flow) for flow in selection]
    )
    return [FlowStyle(flow, name, look) for flow, name, look in zip(selection, names, styles, strict=True)]


def _many(run_flows: Sequence[FlowStream]) -> list[FlowStyle]:
    """Return one colour and one entry of the legend for all flows of a direction, or of a congestion control."""
    mixed = len({flow.cc for flow in run_flows}) > 1
    kinds = [flow.cc if mixed else _direction(flow) for flow in run_flows]
    legend = list(dict.fromkeys(kinds))
    labels = {kind: f"{kinds.count(kind)} {kind}" + ("" if mixed else "s") for kind in legend}
    first_index = {kind: kinds.index(kind) for kind in legend}
    return [
        FlowStyle(
            flow,
            labels[kind] if first_index[kind] == index else "",
            series_style.style(legend.index(kind)),
            named=False,
        )
        for index, (flow, kind) in enumerate(zip(run_flows, kinds, strict=True))
    ]


def ping_styles(run: Recording) -> list[SeriesStyle]:
    """Return the styles of the pings in the plan's order."""
    classes = list(dict.fromkeys(class_of(flow) for flow in run.flows))
    last_words = [_last_word(ping) for ping in run.pings]
    if len(set(last_words)) == len(last_words) and any(word in classes for word in last_words):
        ordered = [*classes, *(word for word in last_words if word not in classes)]
        return [series_style.style(ordered.index(word)) for word in last_words]
    return series_style.styles(len(last_words), FIRST_PING)


def other_styles(run: Recording, streams: Sequence[Stream]) -> list[SeriesStyle]:
    """Return the styles of datagram streams and of all other traffic except flows."""
    return series_style.more_styles(len(streams), [style.look for style in flow_styles(run)])


def connection_styles(run: Recording) -> list[tuple[Connection, SeriesStyle]]:
    """Return the drawn connections of programs, with styles that neither flows nor other traffic have."""
    drawn = connection_series.drawn(run)
    used = [style.look for style in flow_styles(run)]
    return list(
        zip(drawn, series_style.more_styles(len(drawn), [*used, *other_styles(run, run.datagrams)]), strict=True)
    )


def class_of(flow: FlowStream) -> str:
    """Return "EF" of "upload::EF"; a competing flow is a separate class."""
    way, _, label = flow.name.partition("::")
    return label if way in WAYS and label else flow.name


def _direction(flow: FlowStream) -> series_style.Direction:
    return "upload" if flow.upload else "download"


def _name(flow: FlowStream, mixed: bool) -> str:
    """Return its name, with its congestion control if flows differ in it and the name lacks it."""
    return f"{flow.name} {flow.cc}" if mixed and flow.cc.lower() not in flow.name.lower() else flow.name


def _last_word(ping: PingStream) -> str:
    return ping.name.split()[-1]
