# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary, with a name and a unit: `totals.upload_mbps`, `ping.icmp.p99`, `layers.router.qdisc.mean`.

A name is the path to the number in `--json`, flows and the like by their id. A unit that stands before the last word is
left out of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from hourglass.contract.summary import Summary

ABOUT: Final = (
    "schema_", "scenario", "engine", "kernel", "seed", "virtual_s", "wall_s", "digest", "warnings", "checks",
)  # fmt: skip
PARTS: Final = tuple(name for name in Summary.model_fields if name not in ABOUT)
"""The parts of a summary that were measured."""

SUFFIXES: Final = {"_per_s": "1/s", "_mbps": "Mbit/s", "_ms": "ms", "_s": "s", "_percent": "%"}
COUNTS: Final = {
    "n": "samples", "lost": "packets", "sent": "packets", "refused": "packets", "retransmits": "segments",
    "ppdus": "PPDUs", "collisions": "PPDUs", "mpdus": "MPDUs",
    "retries": "MPDUs", "dropped": "MPDUs", "subframes": "MPDUs", "txq": "packets", "held": "packets",
    "txq_drops": "packets", "drops": "packets", "drops_by_reason": "packets", "share": "", "air_share": "",
}  # fmt: skip
"""Words of a path and what is counted below them."""
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
        """That of the last word which has one."""
        for word in reversed(self.path):
            if word in OF_A_PART:
                return self.path[0]
            if word in COUNTS:
                return COUNTS[word]
            if suffix := suffix_of(word):
                return SUFFIXES[suffix]
        return ""


def suffix_of(word: str) -> str:
    """The unit at the end of a key; "" of one without."""
    return next((suffix for suffix in SUFFIXES if word.endswith(suffix)), "")


def plain(word: str) -> str:
    """A key without its unit."""
    return word.removesuffix(suffix_of(word))


def figures(summary: Summary) -> Iterator[Figure]:
    """In the order of `--json`."""
    data = summary.data()
    for part in PARTS:
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
