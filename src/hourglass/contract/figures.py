# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary, with a name and a unit: `totals.upload_mbps`, `ping.icmp.p99`, `layers.router.qdisc.mean`.

A name is the path to the number in `--json`, with the id of a flow as its key. Only the last word contains its unit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from hourglass.contract.summary import Summary

ABOUT: Final = (
    "schema_", "scenario", "engine", "kernel", "seed", "virtual_s", "wall_s", "digest", "warnings", "events",
    "checks",
)  # fmt: skip
PARTS: Final = tuple(name for name in Summary.model_fields if name not in ABOUT)
"""The measured parts of a summary."""

SUFFIXES: Final = {"_per_s": "1/s", "_mbps": "Mbit/s", "_ms": "ms", "_s": "s", "_percent": "%"}
COUNTS: Final = {
    "n": "samples", "lost": "packets", "sent": "packets", "refused": "packets", "retransmits": "segments",
    "ppdus": "PPDUs", "collisions": "PPDUs", "not_acked": "PPDUs", "mpdus": "MPDUs",
    "retries": "MPDUs", "dropped": "MPDUs", "subframes": "MPDUs", "txq": "packets", "held": "MPDUs",
    "txq_drops": "packets", "drops": "packets", "policed": "packets",
    "shaper_full": "packets", "marked": "packets", "qdisc_skbs": "skbs", "drops_by_reason": "packets",
    "marks": "packets", "ect1": "packets", "ect0": "packets", "ce": "packets",
    "by_bytes": "ms",
    "share": "", "air_share": "", "fairness": "", "upload_fairness": "", "download_fairness": "", "mos": "",
    "qdiscs": "", "starts": "starts", "exit": "", "output_bytes": "B", "error_bytes": "B", "calls": "calls",
    "waits": "s",
    "rpm": "1/min", "foreign_rpm": "1/min", "loaded_rpm": "1/min", "idle_rpm": "1/min", "probes": "probes",
    "flows": "flows",
    "connections": "connections", "bytes_up": "B", "bytes_down": "B",
}  # fmt: skip
"""Words of a path → the unit of the numbers below them; "" for ratios, scores and the qdiscs' own counters."""
NAMED_BY_PART: Final = ("begun", "unfinished")
"""Counts whose unit is the name of their part of the summary."""


@dataclass(frozen=True)
class Figure:
    """A number. `path`: its keys in `--json`."""

    path: tuple[str, ...]
    value: float | None

    @cached_property
    def name(self) -> str:
        *before, last = self.path
        return ".".join([*map(plain, before), last])

    @cached_property
    def unit(self) -> str:
        """The unit of the last word that has one. Keys (names of streams, nodes, layers) have none."""
        for word, keyed in zip(reversed(self.path), reversed(keys(self.path)), strict=True):
            if keyed:
                continue
            if word in NAMED_BY_PART:
                return self.path[0]
            if word in COUNTS:
                return COUNTS[word]
            if suffix := suffix_of(word):
                return SUFFIXES[suffix]
        raise AssertionError(f"the figure {self.name} has no unit in COUNTS")


@cache
def keys(path: tuple[str, ...]) -> tuple[bool, ...]:
    """Return for each word of a figure's path whether it is a key."""
    flags, annotation = [False], Summary.model_fields[path[0]].annotation
    for word in path[1:]:
        kind, inner = annotation_kind(annotation)
        flags.append(kind == "keys")
        annotation = inner if kind == "keys" else inner.model_fields[word].annotation
    return tuple(flags)


def annotation_kind(annotation: Any) -> tuple[str, Any]:
    """Return the kind of an annotation (keys, fields, number or text) and the annotation or model below it."""
    if get_origin(annotation) is dict:
        return "keys", get_args(annotation)[1]
    if get_origin(annotation) is list:
        return "keys", get_args(annotation)[0]
    plain_types = {annotation, *get_args(annotation)}
    for model in plain_types:
        if isinstance(model, type) and issubclass(model, BaseModel):
            return "fields", model
    return ("number", None) if plain_types & {int, float} else ("text", None)


def suffix_of(word: str) -> str:
    """Return the unit suffix of a word, or ""."""
    return next((suffix for suffix in SUFFIXES if word.endswith(suffix)), "")


def plain(word: str) -> str:
    """Return a word without its unit suffix."""
    return word.removesuffix(suffix_of(word))


def figures(summary: Summary) -> Iterator[Figure]:
    """Yield the figures in the order of `--json`."""
    data = summary.data()
    for part in (part for part in PARTS if part in data):
        yield from _below((part,), data[part])


def _below(path: tuple[str, ...], value: Any) -> Iterator[Figure]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _below((*path, key), inner)
    elif isinstance(value, list):
        for element in value:
            yield from _below((*path, element["id"]), {key: inner for key, inner in element.items() if key != "id"})
    elif value is None or isinstance(value, int | float):
        yield Figure(path, value)
