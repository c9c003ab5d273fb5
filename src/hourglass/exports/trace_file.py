# SPDX-License-Identifier: Apache-2.0
"""Encode tracks, slices and counters as a Perfetto trace: a sequence of `TracePacket` messages (perfetto.dev,
protos/perfetto/trace/track_event). Repeated texts are interned. The messages are those of the package `perfetto`."""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import BinaryIO, TypeAlias

from hourglass.errors import MissingError, installing

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
except ImportError:
    remedy = installing("'hourglass-net[perfetto]'")
    raise MissingError("a Perfetto trace needs the Python package perfetto", remedy) from None

SEQUENCE = 1
"""All packets are one sequence, so that they share the interned texts."""

Details: TypeAlias = Mapping[str, int | str | bool]
"""The arguments of a slice, which SQL finds under `debug.NAME`."""


class TraceFile:
    """A trace that is written to an open file. Times are ns of test time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._tracks = 0
        self._texts: dict[tuple[str, str], int] = {}
        self._trace = protos.Trace()
        self._packet = self._trace.packet.add()
        self._packet.sequence_flags = protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        self._write()

    def process(self, name: str) -> int:
        """Return a new track that the viewer shows as a process."""
        descriptor = self._descriptor(name)
        descriptor.process.pid = descriptor.process.legacy_sort_index = descriptor.uuid
        descriptor.process.process_name = name
        descriptor.child_ordering = protos.TrackDescriptor.EXPLICIT
        return self._end_track()

    def track(self, name: str, parent: int = 0) -> int:
        """Return a new track of slices. Tracks of one name and parent are lanes of one track in the viewer."""
        self._descriptor(name, parent)
        return self._end_track()

    def counter(self, name: str, unit: str, parent: int, samples: Iterable[tuple[int, float]]) -> None:
        """Add a track with the samples of a counter, (ns, value). Samples that repeat a value are left out."""
        descriptor = self._descriptor(name, parent)
        descriptor.counter.unit_name = unit
        track, last = self._end_track(), None
        for t_ns, value in samples:
            if value == last:
                continue
            event = self._event(t_ns, protos.TrackEvent.TYPE_COUNTER, track)
            if isinstance(value, int):
                event.counter_value = value
            else:
                event.double_counter_value = value
            self._write()
            last = value

    def begin(
        self, track: int, t_ns: int, name: str, details: Details, category: str = "", flow: int | None = None
    ) -> None:
        """Begin a slice. Slices of one `flow` are joined by arrows in the order of their times."""
        event = self._event(t_ns, protos.TrackEvent.TYPE_SLICE_BEGIN, track)
        self._describe(event, name, details, category)
        if flow is not None:
            event.flow_ids.append(flow)
        self._write()

    def end(self, track: int, t_ns: int) -> None:
        """End the last slice of a track."""
        self._event(t_ns, protos.TrackEvent.TYPE_SLICE_END, track)
        self._write()

    def instant(self, track: int, t_ns: int, name: str, details: Details) -> None:
        """Add a slice without length."""
        self._describe(self._event(t_ns, protos.TrackEvent.TYPE_INSTANT, track), name, details, "")
        self._write()

    def _descriptor(self, name: str, parent: int = 0):  # type: ignore[no-untyped-def]  # generated messages
        self._tracks += 1
        descriptor = self._packet.track_descriptor
        descriptor.uuid, descriptor.name, descriptor.sibling_order_rank = self._tracks, name, self._tracks
        if parent:
            descriptor.parent_uuid = parent
        return descriptor

    def _end_track(self) -> int:
        self._write()
        return self._tracks

    def _event(self, t_ns: int, kind: int, track: int):  # type: ignore[no-untyped-def]
        self._packet.timestamp = t_ns
        self._packet.sequence_flags = protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        event = self._packet.track_event
        event.type, event.track_uuid = kind, track
        return event

    def _describe(self, event, name: str, details: Details, category: str) -> None:  # type: ignore[no-untyped-def]
        event.name_iid = self._text("event_names", name)
        if category:
            event.category_iids.append(self._text("event_categories", category))
        for key, value in details.items():
            detail = event.debug_annotations.add(name_iid=self._text("debug_annotation_names", key))
            if isinstance(value, bool):
                detail.bool_value = value
            elif isinstance(value, int):
                detail.int_value = value
            else:
                detail.string_value_iid = self._text("debug_annotation_string_values", value)

    def _text(self, table: str, text: str) -> int:
        """Return the number of a text in a table of `InternedData`, which this packet extends if it is new."""
        if (number := self._texts.get((table, text))) is None:
            number = self._texts[table, text] = len(self._texts) + 1
            entry = getattr(self._packet.interned_data, table).add(iid=number)
            if table == "debug_annotation_string_values":
                entry.str = text.encode()
            else:
                entry.name = text
        return number

    def _write(self) -> None:
        self._packet.trusted_packet_sequence_id = SEQUENCE
        self._file.write(self._trace.SerializeToString())
        self._packet.Clear()


def lanes(slices: Iterable[tuple[int, int]]) -> Iterable[int]:
    """Yield the lane of each slice (start, end), in the order of starts: the lowest lane that is free then."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    count = 0
    for start, end in slices:
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, count = count, count + 1
        heappush(busy, (end, lane))
        yield lane
