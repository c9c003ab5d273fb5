# SPDX-License-Identifier: Apache-2.0
"""Converts files of the versions 1 to 3 of Flent's format to version 4, as Flent does when it opens them.

Before version 4 the points had the tools' own units: netperf's UDP_RR counts transactions per second, and http-getter
reports s. netperf is recognized by the name of the series and by `dur`. Means of iperf were in bit/s. Version 1 has
its points, if any, in the metadata. Times without "Z" are local times of the sender.
"""

import math
from datetime import UTC, datetime

from hourglass.flent.document import Document, Point, SeriesMeta

MS_PER_S = 1000.0
BITS_PER_MBIT = 1e6
HTTP = "HTTP latency"
HOUR_S = 3600.0


def converted(document: Document) -> Document:
    """Return the document with the points of version 4."""
    raw_values = document.raw_values
    if document.version == 1:
        raw_values = {name: series.raw_values for name, series in document.metadata.series_meta.items()}
    if document.version < 4:
        raw_values = {name: [_in_ms(name, point) for point in points] for name, points in raw_values.items()}
    meta = document.metadata
    series_meta = {name: _in_mbits(series) for name, series in meta.series_meta.items()}
    meta = meta.model_copy(update={"series_meta": series_meta}) if document.version < 4 else meta
    return document.model_copy(update={"raw_values": raw_values, "metadata": meta})


def _in_mbits(series: SeriesMeta) -> SeriesMeta:
    """Return the metadata of a series of an old file with its mean in Mbit/s, if it is in bit/s."""
    if series.units != "bits/s" or series.mean_value is None:
        return series
    return series.model_copy(update={"mean_value": series.mean_value / BITS_PER_MBIT})


def _in_ms(series: str, point: Point) -> Point:
    """Return a point of an old file with its value in ms, if its series is a latency in another unit."""
    value = point.val
    if value is None or not (series == HTTP or ("UDP" in series and point.dur is not None)):
        return point
    if series == HTTP:
        return point.model_copy(update={"val": value * MS_PER_S})
    return point.model_copy(update={"val": MS_PER_S / value if value else None})


def start_s(document: Document) -> float:
    """Return the time of x = 0, s since 1970: T0, or else the first point's time, or 0.

    A local time is moved by the number of whole hours that brings it within half an hour of the first point.
    """
    times_s = [point.t for points in document.raw_values.values() for point in points]
    text = document.metadata.t0
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return min(times_s, default=0.0)
    if moment.tzinfo is not None:
        return moment.timestamp()
    local_s = moment.replace(tzinfo=UTC).timestamp()
    offset_s = min(times_s, default=local_s) - local_s
    hours = max(0, math.ceil((abs(offset_s) - HOUR_S / 2) / HOUR_S))
    return local_s + math.copysign(hours * HOUR_S, offset_s)
