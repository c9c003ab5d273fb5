# SPDX-License-Identifier: Apache-2.0
"""The conditions that `tune` tries settings under: the scenario itself, and links near to its own.

By default they are the rate of the slowest device (link or shaper), times 0.8 and 1.25, and all delays, times 0.5 and
2. One setting changes at a time. A rate that follows a trace, and a radio, have no neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hourglass.scenario import Scenario
from hourglass.scenario.quantities import RATE, TIME, show
from hourglass.studies.grid import text
from hourglass.studies.over import read_over

ITSELF = "as it is"
NONE = "none"
RATE_FACTORS = ((4, 5), (5, 4))
DELAY_FACTORS = ((1, 2), (2, 1))
MOST_VALUES = 3
"""The number of values of a range."""


@dataclass(frozen=True)
class Condition:
    """A variant of the scenario's link: the keys that differ."""

    name: str
    changes: dict[str, Any]


def conditions(scenario: Scenario, near: Sequence[str]) -> list[Condition]:
    """Return the conditions, the scenario itself first. `near`: KEY=VALUES as in `--over`, each value a condition;
    without any, the default ones; "none": only the scenario itself. Raises `InputError`."""
    itself = Condition(ITSELF, {})
    if list(near) == [NONE]:
        return [itself]
    if near:
        return [
            itself,
            *(
                Condition(f"{key.key}={text(value)}", {key.key: value})
                for key in read_over(near, "--near")
                for value in key.values_of(MOST_VALUES)
            ),
        ]
    return [itself, *_rates(scenario), *_delays(scenario)]


def _rates(scenario: Scenario) -> Iterator[Condition]:
    """Yield the scenario with other rates of its slowest devices."""
    links = {f"testbed.link.{number}.rate": link.rate for number, link in enumerate(scenario.testbed.link)}
    shapers = {f"testbed.shaper.{number}.rate": (shaper.rate,) for number, shaper in enumerate(scenario.testbed.shaper)}
    rates: dict[str, tuple[int, ...]] = {**links, **shapers}
    if not rates or any(link.trace for link in scenario.testbed.link):
        return
    slowest = min(min(pair) for pair in rates.values())
    for times, per in RATE_FACTORS:
        scaled = {key: [rate * times // per for rate in pair] for key, pair in rates.items() if min(pair) == slowest}
        changes = {key: pair[0] if key in shapers else pair for key, pair in scaled.items()}
        yield Condition(f"rate {show(slowest * times // per, RATE)}", changes)


def _delays(scenario: Scenario) -> Iterator[Condition]:
    """Yield the scenario with other delays, all by one factor."""
    links = {f"testbed.link.{number}.delay": link.delay for number, link in enumerate(scenario.testbed.link)}
    delays = {f"testbed.netem.{number}.delay": item.delay for number, item in enumerate(scenario.testbed.netem)}
    for times, per in DELAY_FACTORS if any(map(any, links.values())) or any(delays.values()) else ():
        changes: dict[str, Any] = {
            key: [show(delay * times // per, TIME) for delay in pair] for key, pair in links.items() if any(pair)
        }
        changes |= {key: show(delay * times // per // 1000 * 1000, TIME) for key, delay in delays.items() if delay}
        yield Condition(f"delays times {times / per:g}", changes)
