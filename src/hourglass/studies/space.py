# SPDX-License-Identifier: Apache-2.0
"""The conditions that a search varies: `--over`, as `tune` has it (over.py), with more forms of a value.

    testbed.link.1.rate=1mbit..100mbit               a range
    stack.qdisc=fq_codel,pfifo limit 10..1000        alternatives, and ranges within a text
    test.stream_delays=["0..5", "0.5|1|2"]           open places in lists and tables; "|" instead of commas
    testbed.link.1.rate=1mbit..50mbit every 500ms    drawn again every 500 ms of the load

`every` is for what an event can set of a link (rate, delay, jitter, loss …), and for the rate of `test.datagrams`. The
changes of a link at one time are one event.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from hourglass.errors import InputError, closest
from hourglass.scenario import Scenario
from hourglass.scenario.event import LinkChange
from hourglass.scenario.load import parse_override
from hourglass.scenario.quantities import parse_seconds, seconds_ns
from hourglass.studies.over import OPTION, default_values, read_range, split_values

MOST_PIECES = 200
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,12})?"
_RANGE = re.compile(rf"(?<![\w.])({_NUMBER})([a-zA-Z%]*)\.\.({_NUMBER})([a-zA-Z%]*)(?![\w.%])", re.ASCII)
_EVERY = re.compile(r"(.*) every (\S+)", re.DOTALL)

Point = Mapping[str, float]
"""A value for each open place: the share of a range, from 0 to 1, or the position of an alternative."""
Changes = list[tuple[str, Any]]


@dataclass(frozen=True)
class Place:
    """An open place: a range, or a number of alternatives."""

    name: str
    choices: int = 0


@dataclass(frozen=True)
class Axis:
    """A key with the template of its value, and how often the value is drawn."""

    key: str
    template: Any
    every_s: Fraction | None = None

    def value(self, place: str, point: Point) -> Any:
        """Return the value at a point."""
        return _filled(self.template, place, point)

    def places(self, place: str) -> list[Place]:
        """Return the open places of one value."""
        return list(_places(self.template, place))


@dataclass(frozen=True)
class Space:
    """The axes of a search. `base`: the scenario that they change."""

    axes: tuple[Axis, ...]
    base: Scenario

    @property
    def places(self) -> list[Place]:
        """Return all open places, in the order of the axes."""
        return [place for axis in self.axes for name, _ in self._pieces(axis) for place in axis.places(name)]

    def changes(self, point: Point) -> Changes:
        """Return the keys of a point, as `scenario.load` takes them. All events are one key."""
        changes: Changes = []
        events: dict[tuple[Fraction, int], dict[str, Any]] = {}
        for axis in self.axes:
            first, *later = [(at_s, axis.value(name, point)) for name, at_s in self._pieces(axis)]
            parts = axis.key.split(".")
            if axis.every_s is not None and parts[1] == "datagrams":
                changes.append((axis.key, [[_seconds(at_s), value] for at_s, value in (first, *later)]))
                continue
            changes.append((axis.key, first[1]))
            before = first[1]
            for at_s, value in later:
                if value != before:
                    events.setdefault((at_s, int(parts[2])), {})[parts[3]] = value
                before = value
        if events:
            present = [event.model_dump(mode="json") for event in self.base.event]
            changes.append(("event", [*present, *(self._event(*at, values) for at, values in sorted(events.items()))]))
        return changes

    def _event(self, at_s: Fraction, link: int, values: dict[str, Any]) -> dict[str, Any]:
        end = self.base.testbed.link[link].ends[0]
        at = _seconds(at_s + Fraction(seconds_ns(self.base.test.delay), 10**9))
        return {"at": at, "node": end.node, "device": end.device, "set": values}

    def _pieces(self, axis: Axis) -> Iterator[tuple[str, Fraction]]:
        """Yield the name and the beginning of each piece of an axis, in s after the load's beginning."""
        if axis.every_s is None:
            yield axis.key, Fraction(0)
            return
        for number in range(ceil(Fraction(seconds_ns(self.base.test.length), 10**9) / axis.every_s)):
            yield f"{axis.key}@{_seconds(number * axis.every_s)}", number * axis.every_s


def parse(texts: Sequence[str], base: Scenario) -> Space:
    """Return the space of `--over` options. Raises `InputError`."""
    if not texts:
        raise InputError(OPTION, None, "needs a key and its values, like testbed.link.1.rate=1mbit..50mbit")
    axes = tuple(_axis(text, base) for text in texts)
    keys = [axis.key for axis in axes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise InputError(OPTION, twice, "occurs twice")
    return Space(axes, base)


def _axis(text: str, base: Scenario) -> Axis:
    match = _EVERY.fullmatch(text)
    setting, every = match.groups() if match else (text, None)
    key, equals, written = (part.strip() for part in setting.partition("="))
    values = [
        parse_override(f"{key}={value}")[1]
        for value in split_values(written if equals else default_values(OPTION, key))
    ]
    template = tuple(map(_template, values)) if len(values) > 1 else _template(values[0])
    if isinstance(template, str) and template.startswith(("[", "{")):
        raise InputError(OPTION, text, 'is not a list or table of TOML; put its ranges in quotes, like ["0..5"]')
    axis = Axis(key, template)
    if not axis.places(""):
        raise InputError(OPTION, text, "has one value only; write a range like 1mbit..50mbit, or values: A,B")
    if every is None:
        return axis
    try:
        every_s = Fraction(seconds_ns(parse_seconds(every, Fraction(1, 1000), Fraction(86400)))) / 10**9
    except ValueError:
        raise InputError(OPTION, text, "every needs a time, like 500ms") from None
    _check_every(parse_override(setting)[0], text, base)
    if base.test.length / every_s > MOST_PIECES:
        raise InputError(OPTION, text, f"has more than {MOST_PIECES} pieces in {base.test.length} s")
    return Axis(key, template, every_s)


def _check_every(parts: list[str], text: str, base: Scenario) -> None:
    """Refuse `every` for a key that cannot change during a run."""
    match parts:
        case ["testbed", "link", number, key] if key in LinkChange.model_fields:
            if not number.isdecimal() or int(number) >= len(base.testbed.link):
                raise InputError(OPTION, text, f"the scenario has the links 0 to {len(base.testbed.link) - 1}")
        case ["test", "datagrams", number, "rate"] if number.isdecimal():
            return
        case _:
            keys = ", ".join(LinkChange.model_fields)
            hint = closest(parts[-1], LinkChange.model_fields)
            allowed = f"{hint}every is for testbed.link.N with {keys}, and for test.datagrams.N.rate"
            raise InputError(OPTION, text, allowed)


def _template(value: Any) -> Any:
    """Return a value with its alternatives as tuples."""
    if isinstance(value, Mapping):
        return {key: _template(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_template(inner) for inner in value]
    if isinstance(value, str) and "|" in value:
        return tuple(_template(parse_override(f"x={text.strip()}")[1]) for text in value.split("|"))
    return value


def _inner(template: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the values within a template, each with its name."""
    keyed = template.items() if isinstance(template, Mapping) else enumerate(template)
    for key, value in keyed:
        yield f"{name}.{key}", value


def _places(template: Any, name: str) -> Iterator[Place]:
    """Yield the open places of a template."""
    if isinstance(template, tuple):
        yield Place(name, len(template))
    if isinstance(template, Mapping | list | tuple):
        for inner, value in _inner(template, name):
            yield from _places(value, inner)
    elif isinstance(template, str):
        for number, match in enumerate(_RANGE.finditer(template)):
            read_range(OPTION, name, match[0], *match.groups())
            yield Place(f"{name}~{number}")


def _filled(template: Any, name: str, point: Point) -> Any:
    """Return a template's value at a point."""
    if isinstance(template, tuple):
        number = int(point[name])
        return _filled(template[number], f"{name}.{number}", point)
    if isinstance(template, Mapping):
        return dict(
            zip(template, (_filled(value, inner, point) for inner, value in _inner(template, name)), strict=True)
        )
    if isinstance(template, list):
        return [_filled(value, inner, point) for inner, value in _inner(template, name)]
    if not isinstance(template, str):
        return template
    filled, end = "", 0
    for number, match in enumerate(_RANGE.finditer(template)):
        value = read_range(OPTION, name, match[0], *match.groups()).at(point[f"{name}~{number}"])
        if match[0] == template.strip():
            return value
        filled, end = f"{filled}{template[end : match.start()]}{value}", match.end()
    return filled + template[end:] if filled else template


def _seconds(seconds: Fraction) -> int | float:
    return int(seconds) if seconds.denominator == 1 else float(seconds)
