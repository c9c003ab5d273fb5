# SPDX-License-Identifier: Apache-2.0
"""What a row of the table is, and the rounds in which what its figure comes of is carried out."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from bench import spread
from hourglass.errors import InputError, MissingError

Say = Callable[[str], None]


@dataclass
class Samples:
    """What was measured, by name; `absent`: why something could not be, by the name of its measurement."""

    values: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def add(self, **values: float) -> None:
        """Takes one value for each name."""
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)

    def of(self, name: str) -> list[float]:
        """What there is by a name. Raises KeyError when there is nothing."""
        return self.values[name]


@dataclass(frozen=True)
class Measurement:
    """Something that is carried out in each of the first `rounds` rounds. `until`: then again and again until the
    interval of the values of this name is as narrow as is asked for."""

    name: str
    carry_out: Callable[[Samples], None]
    rounds: int = 3
    until: str = ""


Figure = Callable[[Samples], float]


@dataclass(frozen=True)
class Row:
    """A figure. `group` and `name` are its place in the JSON, `about` says what it is; `interval`: the samples whose
    median it is, so that their interval is told; `at_most`, `at_least`: the aim."""

    group: str
    name: str
    unit: str
    about: str
    by: Measurement
    figure: Figure
    interval: str = ""
    at_most: float = math.inf
    at_least: float = -math.inf

    def value(self, samples: Samples) -> float | None:
        """The figure; None where it could not be measured."""
        try:
            return self.figure(samples)
        except KeyError:
            return None

    def bounds(self, samples: Samples) -> tuple[float, float] | None:
        """Where the median is; None where there are too few values to say so."""
        values = samples.values.get(self.interval, [])
        return spread.interval(values) if len(values) >= spread.LEAST else None


def least(name: str, factor: float = 1.0) -> Figure:
    """The least value: other work on the machine only ever adds time."""
    return lambda samples: min(samples.of(name)) * factor


def most(name: str) -> Figure:
    return lambda samples: max(samples.of(name))


def middle(name: str, factor: float = 1.0) -> Figure:
    return lambda samples: median(samples.of(name)) * factor


def slope_ms(name: str, ends: tuple[float, float]) -> Figure:
    """Least wall ms per second between two lengths: samples `NAME, LENGTH s`."""

    def figure(samples: Samples) -> float:
        short_s, long_s = (min(samples.of(f"{name}, {length_s:g} s")) for length_s in ends)
        return (long_s - short_s) / (ends[1] - ends[0]) * 1e3

    return figure


def over(one: Figure, other: Figure, factor: float = 1.0) -> Figure:
    return lambda samples: one(samples) / other(samples) * factor


NARROW, MOST = 0.1, 12
"""What an interval has to come below, as a share of the median, and after how many values it may stay above."""


def carry_out(measurements: Iterable[Measurement], rounds: int, say: Say) -> Samples:
    """All measurements, `rounds` times over at most. What lacks something on this machine is noted and left out."""
    samples, wanted, enough = Samples(), list(measurements), partial(spread.enough, share=NARROW, most=MOST)

    def once(one: Measurement, words: str) -> None:
        if one.name not in samples.absent:
            say(f"{words}: {one.name}")
            try:
                one.carry_out(samples)
            except (MissingError, InputError) as error:
                samples.absent[one.name] = str(error).splitlines()[0]

    for number in range(1, rounds + 1):
        for one in wanted:
            if number <= one.rounds:
                once(one, f"{number}/{rounds}")
    for one in wanted:
        while one.until and one.name not in samples.absent and not enough(values := samples.of(one.until)):
            once(one, f"until it is narrow, {len(values) + 1}/{MOST}")
    return samples
