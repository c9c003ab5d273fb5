# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary, with a name and a unit: `totals.upload_mbps`, `ping.icmp.p99`, `layers.router.qdisc.mean`.

A name is the path to the number in `--json`, flows and the like by their id. A unit that stands before the last word is
left out of it.
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
"""The parts of a summary that were measured."""

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
    "connections": "connections", "bytes_up": "B", "bytes_down": "B",
}  # fmt: skip
"""Words of a path and what is counted below them; "" of a ratio, a mark, or, of qdiscs, what tc's word says."""
OF_A_PART: Final = ("begun", "unfinished")
"""Those that count what their part of the summary is called."""


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
        """That of the last word which has one; keys, the names of streams, nodes, layers, have none."""
        for word, keyed in zip(reversed(self.path), reversed(keys(self.path)), strict=True):
            if keyed:
                continue
            if word in OF_A_PART:
                return self.path[0]
            if word in COUNTS:
                return COUNTS[word]
            if suffix := suffix_of(word):
                return SUFFIXES[suffix]
        raise AssertionError(f"the figure {self.name} has no unit in COUNTS")


@cache
def keys(path: tuple[str, ...]) -> tuple[bool, ...]:
    """Which words of a figure's path are keys."""
    found, annotation = [False], Summary.model_fields[path[0]].annotation
    for word in path[1:]:
        kind, inner = held(annotation)
        found.append(kind == "keys")
        annotation = inner if kind == "keys" else inner.model_fields[word].annotation
    return tuple(found)


def held(annotation: Any) -> tuple[str, Any]:
    """What a place of the summary holds: parts under keys, the fields of a model, a number, or text."""
    if get_origin(annotation) is dict:
        return "keys", get_args(annotation)[1]
    if get_origin(annotation) is list:
        return "keys", get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "fields", annotation
    plain_types = {annotation, *get_args(annotation)}
    return ("number", None) if plain_types & {int, float} else ("text", None)


def suffix_of(word: str) -> str:
    """The unit at the end of a key; "" of one without."""
    return next((suffix for suffix in SUFFIXES if word.endswith(suffix)), "")


def plain(word: str) -> str:
    """A key without its unit."""
    return word.removesuffix(suffix_of(word))


def figures(summary: Summary) -> Iterator[Figure]:
    """In the order of `--json`."""
    data = summary.data()
    for part in (part for part in PARTS if part in data):
        yield from _below((part,), data[part])


def _below(path: tuple[str, ...], value: Any) -> Iterator[Figure]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _below((*path, key), inner)
    elif isinstance(value, list):
        for one in value:
            yield from _below((*path, one["id"]), {key: inner for key, inner in one.items() if key != "id"})
    elif value is None or isinstance(value, int | float):
        yield Figure(path, value)
