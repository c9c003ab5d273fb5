# SPDX-License-Identifier: Apache-2.0
"""A run's figures as attributes, compared with quantities: `run.ping.p99 < 20 * ms`.

`run.ping.icmp.p99` is one figure; what leaves out a key is every figure of that kind, and a comparison holds when it
holds for each. Units may be left out of names: `run.totals.upload`, or `run.upload`, as the totals' own name may be. A
figure that is not known compares with nothing: that raises an AssertionError which says why.
"""

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

from hourglass.contract import names
from hourglass.contract.bounds import fitting
from hourglass.contract.figures import Figure, figures, keys, plain
from hourglass.contract.summary import Summary
from hourglass.errors import InputError, closest
from hourglass.results.checks import judge, judge_stored, why_unknown
from hourglass.results.recording import Recording
from hourglass.results.sections.checks import value as shown
from hourglass.results.sections.checks import verdict
from hourglass.scenario import Scenario
from hourglass.testing.judge import parsed
from hourglass.testing.units import Quantity

Compare = Callable[[Any, Any], bool]
SIGNS: Final[dict[str, Compare]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Run:
    """A run that a test made. `place`: where its directory is found when the test has failed."""

    def __init__(self, recording: Recording, scenario: Scenario, place: Path) -> None:
        self.recording, self.scenario, self.place = recording, scenario, place

    def __repr__(self) -> str:
        return f"<run {self.scenario.name}>"

    @property
    def summary(self) -> Summary:
        """All figures, as `--json` prints them."""
        return self.recording.summary

    @cached_property
    def figures(self) -> list[Figure]:
        return list(figures(self.summary))

    def figure(self, name: str) -> "Measured":
        """The figure of a name as bounds have it, or those of every key left out. Raises `InputError`."""
        __tracebackhide__ = True
        names.unit(name)
        found = names.matching(name, self.figures)
        if not found:
            guess = closest(name, [one.name for one in self.figures])
            raise InputError("figure", name, f"this run has no such figure. {guess}".strip())
        return Measured(self, found)

    def check(self, *bounds: str) -> None:
        """Asserts the scenario's own bounds, and those given: "ping.icmp.p99 < 20ms"."""
        __tracebackhide__ = True
        checks = [*judge_stored(self.scenario.check, self.summary), *judge(parsed(bounds), self.summary)]
        missed = [one for one in checks if not one.ok]
        if not checks:
            raise InputError("check", self.scenario.name, "there is no bound: no [check], and none was given")
        if missed:
            lines = [f"{one.figure} {one.bound}: {shown(one) or '-'}, {verdict(one)}" for one in missed]
            raise AssertionError("\n".join([f"{len(missed)} of {len(checks)} bounds missed", *lines, *self.told()]))

    def told(self) -> list[str]:
        """What this run is, and how to look at it."""
        info = self.recording.info
        return [
            f"run: {self.scenario.name}, Linux {info.kernel.release}, seed {info.seed}, digest {info.digest[:12]}",
            f"look at it: hourglass report {self.place}",
        ]

    def __getattr__(self, word: str) -> Any:
        __tracebackhide__ = True
        if word.startswith("_"):
            raise AttributeError(word)
        return self.at((word,))

    def at(self, words: tuple[str, ...]) -> "Part | Measured":
        """What the words lead to: a part of the figures, or figures. Raises AttributeError."""
        __tracebackhide__ = True
        for path in (words, ("totals", *words)):
            if found := [one for one in self.figures if _leads(path, one)]:
                return Measured(self, found)
            if any(_leads(path, one, begins=True) for one in self.figures):
                return Part(self, path)
        name = ".".join(words)
        guess = closest(name, [one.name for one in self.figures])
        raise AttributeError(f"this run has no figure {name!r}. {guess}It has: {', '.join(self.next(words[:-1]))}")

    def next(self, words: tuple[str, ...]) -> list[str]:
        """The words that may follow."""
        below = [one for one in self.figures if _leads(words, one, begins=True)]
        place = len(words)
        return list(dict.fromkeys(plain(one.path[min(place, len(one.path) - 1)]) for one in below))


def _leads(words: Sequence[str], figure: Figure, *, begins: bool = False) -> bool:
    """Whether words, units left out or not, name a figure."""
    path, keyed = figure.path, keys(figure.path)
    unitless = (*path[:-1], plain(path[-1]))
    return any(names.covers(words, one, keyed, begins=begins) for one in (path, unitless))


class Part:
    """A part of a run's figures: `run.ping`, `run.flows["upload::1"]`."""

    def __init__(self, run: Run, words: tuple[str, ...]) -> None:
        self._run, self._words = run, words

    def __getattr__(self, word: str) -> Any:
        __tracebackhide__ = True
        if word.startswith("_"):
            raise AttributeError(word)
        return self._run.at((*self._words, word))

    def __getitem__(self, key: str) -> Any:
        __tracebackhide__ = True
        try:
            return self._run.at((*self._words, key))
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __repr__(self) -> str:
        return f"<{'.'.join(self._words)}: {', '.join(self._run.next(self._words))}>"

    def __dir__(self) -> list[str]:
        return self._run.next(self._words)


class Measured:
    """A figure of a run, or one for each key that its name left out."""

    def __init__(self, run: Run, members: Sequence[Figure]) -> None:
        self.run, self.members = run, tuple(members)

    @property
    def name(self) -> str:
        """That of the figure, or of all of them."""
        return ", ".join(one.name for one in self.members)

    @property
    def unit(self) -> str:
        return self.members[0].unit

    @property
    def value(self) -> float:
        """The number, in its unit. An AssertionError if it is not known; of several figures, which is none."""
        __tracebackhide__ = True
        if len(self.members) > 1:
            raise ValueError(f"{len(self.members)} figures and not one: {self.name}")
        return self._known(self.members[0])

    def _known(self, figure: Figure) -> float:
        __tracebackhide__ = True
        if figure.value is None:
            reason = why_unknown(figure, self.run.figures)
            raise AssertionError("\n".join([f"{figure.name} is {reason}", *self.run.told()]))
        return figure.value

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return ", ".join(f"{one.name} = {_written(one)}" for one in self.members)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self.name}: compare it with something, like `< 20 * ms`")

    def compared(self, sign: str, other: object) -> list[bool]:
        """Whether the comparison holds, of each figure. TypeError when the units do not fit."""
        __tracebackhide__ = True
        held = []
        for one in self.members:  # no list display: its frame would be part of a test's traceback
            held.append(SIGNS[sign](Fraction(repr(self._known(one))), self._limit(one, other)))
        return held

    def _limit(self, figure: Figure, other: object) -> Fraction:
        """What the figure is compared with, in its unit."""
        __tracebackhide__ = True
        limit = None
        if isinstance(other, Measured):
            limit = Quantity(other.value, other.unit).exactly(figure.unit, figure.name)
        elif isinstance(other, Quantity):
            limit = other.exactly(figure.unit, figure.name)
        elif isinstance(other, int | float) and not isinstance(other, bool) and abs(other) < float("inf"):
            limit = Quantity(other, "").exactly(figure.unit, figure.name)
        if limit is None:
            unit = f"in {figure.unit}" if figure.unit else "a plain number"
            raise TypeError(
                f"{figure.name} is {unit}: {other!r} does not fit; units: {fitting(figure.unit, figure.name)}"
            )
        return limit

    def __lt__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared("<", other))

    def __le__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared("<=", other))

    def __gt__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared(">", other))

    def __ge__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared(">=", other))

    def __eq__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared("==", other))

    def __ne__(self, other: object) -> bool:
        __tracebackhide__ = True
        return all(self.compared("!=", other))

    __hash__ = object.__hash__

    def __mul__(self, times: float) -> Quantity:
        return Quantity(self.value * times, self.unit)

    __rmul__ = __mul__

    def __truediv__(self, by: "float | Quantity | Measured") -> "Quantity | float":
        """By a number; by a quantity of its kind, how many times that it is."""
        if isinstance(by, int | float):
            return Quantity(self.value / by, self.unit)
        return self.value / float(self._limit(self.members[0], by))

    def told(self, sign: str, other: object) -> list[str]:
        """Why `self SIGN other` does not hold, in lines."""
        held = self.compared(sign, other)
        limit = repr(other) if isinstance(other, Quantity | Measured) else f"{other} {self.unit}".strip()
        if len(self.members) == 1:
            (one,) = self.members
            lines = [f"{one.name} is {_written(one)}, not {sign} {limit}"]
        else:
            missed = [one for one, ok in zip(self.members, held, strict=True) if not ok]
            lines = [f"{len(missed)} of {len(held)} figures are not {sign} {limit}"]
            lines += [f"{one.name} is {_written(one)}" for one in missed]
        return lines + self.run.told()


def _written(figure: Figure) -> str:
    return "not known" if figure.value is None else f"{figure.value:.6g} {figure.unit}".strip()


def explained(sign: str, left: object, right: object) -> list[str] | None:
    """Why a comparison with figures does not hold; None of one without."""
    if isinstance(left, Measured) and sign in SIGNS:
        return left.told(sign, right)
    if isinstance(right, Measured) and sign in SIGNS:
        return right.told(MIRRORED.get(sign, sign), left)
    return None
