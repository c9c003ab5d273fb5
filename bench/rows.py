# SPDX-License-Identifier: Apache-2.0
"""Define rows of the table and measurements, and run the rounds of measurements."""

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
    """The measured values by name. `absent`: the reasons of missing measurements, by the measurement's name."""

    values: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def add(self, **values: float) -> None:
        """Add a value for each name."""
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)

    def of(self, name: str) -> list[float]:
        """Return the values of a name. Raises KeyError without any."""
        return self.values[name]


@dataclass(frozen=True)
class Measurement:
    """A measurement of the first `rounds` rounds. `until`: repeated until the interval of the values of this name is
    narrow."""

    name: str
    carry_out: Callable[[Samples], None]
    rounds: int = 3
    until: str = ""


Figure = Callable[[Samples], float]


@dataclass(frozen=True)
class Row:
    """A figure. `group` and `name` are its key in the JSON, `about` describes it. `interval`: the samples whose median
    it is and whose interval is printed. `at_most`, `at_least`: the target."""

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
        """Return the figure; None if it could not be measured."""
        try:
            return self.figure(samples)
        except KeyError:
            return None

    def bounds(self, samples: Samples) -> tuple[float, float] | None:
        """Return the interval of the median; None for too few values."""
        values = samples.values.get(self.interval, [])
        return spread.interval(values) if len(values) >= spread.LEAST else None


def least(name: str, factor: float = 1.0) -> Figure:
    """Return the minimum, because other work on the machine only adds time."""
    return lambda samples: min(samples.of(name)) * factor


def most(name: str) -> Figure:
    return lambda samples: max(samples.of(name))


def middle(name: str, factor: float = 1.0) -> Figure:
    return lambda samples: median(samples.of(name)) * factor


def slope_ms(name: str, ends: tuple[float, float]) -> Figure:
    """Return the minimum wall ms per second between two lengths, from samples `NAME, LENGTH s`."""

    def figure(samples: Samples) -> float:
        short_s, long_s = (min(samples.of(f"{name}, {length_s:g} s")) for length_s in ends)
        return (long_s - short_s) / (ends[1] - ends[0]) * 1e3

    return figure


def over(numerator: Figure, denominator: Figure, factor: float = 1.0) -> Figure:
    return lambda samples: numerator(samples) / denominator(samples) * factor


NARROW, MOST = 0.1, 12
"""The required width of an interval, as a share of the median, and the number of values after which it may be wider."""


def carry_out(measurements: Iterable[Measurement], rounds: int, say: Say) -> Samples:
    """Make all measurements, at most `rounds` times. Those that lack something on this machine are noted and
    left out."""
    samples, pending, enough = Samples(), list(measurements), partial(spread.enough, share=NARROW, most=MOST)

    def measure_once(measurement: Measurement, progress: str) -> None:
        if measurement.name not in samples.absent:
            say(f"{progress}: {measurement.name}")
            try:
                measurement.carry_out(samples)
            except (MissingError, InputError) as error:
                samples.absent[measurement.name] = str(error).splitlines()[0]

    for number in range(1, rounds + 1):
        for measurement in pending:
            if number <= measurement.rounds:
                measure_once(measurement, f"{number}/{rounds}")
    for measurement in pending:
        while (
            measurement.until
            and measurement.name not in samples.absent
            and not enough(values := samples.of(measurement.until))
        ):
            measure_once(measurement, f"until it is narrow, {len(values) + 1}/{MOST}")
    return samples
