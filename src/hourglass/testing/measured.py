# SPDX-License-Identifier: Apache-2.0
"""Provide a run's figures as attributes, to compare with quantities: `run.ping.p99 < 20 * ms`.

`run.ping.icmp.p99` is one figure. A name that leaves out a key is every figure of that kind, and a comparison is true
if it is true for each. Names work without units: `run.totals.upload`, or `run.upload`, as totals need no prefix. A
comparison with an unknown figure raises an AssertionError that says why.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

from hourglass.contract import names
from hourglass.contract.bounds import fitting, read_all
from hourglass.contract.figures import Figure, figures, keys, plain
from hourglass.contract.summary import CheckVerdict, Summary
from hourglass.errors import InputError, closest
from hourglass.results.check_verdicts import judge, judge_stored, unknown_reason
from hourglass.results.recording import Recording
from hourglass.results.sections.check_sections import value as value_text
from hourglass.results.sections.check_sections import verdict
from hourglass.scenario import Scenario
from hourglass.testing.units import Quantity

Compare = Callable[[Any, Any], bool]
SIGNS: Final[dict[str, Compare]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Run:
    """The run of a test. `directory`: its path after the test has failed."""

    def __init__(self, recording: Recording, scenario: Scenario, directory: Path) -> None:
        self.recording, self.scenario, self.directory = recording, scenario, directory

    def __repr__(self) -> str:
        return f"<run {self.scenario.name}>"

    @property
    def summary(self) -> Summary:
        """Return all figures, as `--json` prints them."""
        return self.recording.summary

    @cached_property
    def figures(self) -> list[Figure]:
        return list(figures(self.summary))

    def figure(self, name: str) -> "Measured":
        """Return the figure of a name in the notation of bounds, or those of every key left out. Raises
        `InputError`."""
        __tracebackhide__ = True
        names.unit(name)
        members = names.matching(name, self.figures)
        if not members:
            guess = closest(name, [figure.name for figure in self.figures])
            raise InputError("figure", name, f"this run lacks this figure. {guess}".strip())
        return Measured(self, members)

    def check(self, *bounds: str) -> None:
        """Assert the programs' `expect`, the scenario's `[check]`, and your bounds: "ping.icmp.p99 < 20ms"."""
        __tracebackhide__ = True
        stored = judge_stored(self.scenario.check, self.summary)
        requested = read_all(bounds)
        programs = self._programs(bound.name for bound in requested)
        checks = [*programs, *stored, *judge(requested, self.summary)]
        if not checks:
            raise InputError("check", self.scenario.name, "has no bound: no [check], no program, and no argument")
        self._assert(checks)

    def check_programs(self) -> None:
        """Assert that each program ended as its `expect` says."""
        __tracebackhide__ = True
        self._assert(self._programs())

    def _programs(self, bounds: Iterable[str] = ()) -> list[CheckVerdict]:
        """Judge the programs. `bounds`: figures with bounds, in addition to the scenario's."""
        figures_with_bounds = {*self.scenario.check, *bounds}
        return [program.check(figures_with_bounds) for program in self.recording.apps.values()]

    def _assert(self, checks: Sequence[CheckVerdict]) -> None:
        __tracebackhide__ = True
        missed = [check for check in checks if not check.ok]
        if missed:
            lines = [f"{check.figure} {check.bound}: {value_text(check) or '-'}, {verdict(check)}" for check in missed]
            raise AssertionError(
                "\n".join([f"{len(missed)} of {len(checks)} bounds missed", *lines, *self.description()])
            )

    def description(self) -> list[str]:
        """Return lines that identify this run, with the command that shows it."""
        info = self.recording.info
        return [
            f"run: {self.scenario.name}, Linux {info.kernel.release}, seed {info.seed}, digest {info.digest[:12]}",
            f"look at it: hourglass report {self.directory}",
        ]

    def __getattr__(self, word: str) -> Any:
        __tracebackhide__ = True
        if word.startswith("_"):
            raise AttributeError(word)
        return self.at((word,))

    def at(self, attributes: tuple[str, ...]) -> "FigureGroup | Measured":
        """Return the figures at a path of attributes, or the group of figures below it. Raises AttributeError."""
        __tracebackhide__ = True
        for path in (attributes, ("totals", *attributes)):
            if members := [figure for figure in self.figures if _leads_to(path, figure)]:
                return Measured(self, members)
            if any(_leads_to(path, figure, begins=True) for figure in self.figures):
                return FigureGroup(self, path)
        name = ".".join(attributes)
        guess = closest(name, [figure.name for figure in self.figures])
        options = ", ".join(self.next(attributes[:-1]))
        raise AttributeError(f"this run has no figure {name!r}. {guess}It has: {options}")

    def next(self, attributes: tuple[str, ...]) -> list[str]:
        """Return the attributes that may follow."""
        below = [figure for figure in self.figures if _leads_to(attributes, figure, begins=True)]
        depth = len(attributes)
        return list(dict.fromkeys(plain(figure.path[min(depth, len(figure.path) - 1)]) for figure in below))


def _leads_to(attributes: Sequence[str], figure: Figure, *, begins: bool = False) -> bool:
    """Return whether attributes, with or without units, name a figure."""
    path, keyed = figure.path, keys(figure.path)
    unitless = (*path[:-1], plain(path[-1]))
    return any(names.covers(attributes, form, keyed, begins=begins) for form in (path, unitless))


class FigureGroup:
    """A group of a run's figures: `run.ping`, `run.flows["upload::1"]`."""

    def __init__(self, run: Run, attributes: tuple[str, ...]) -> None:
        self._run, self._attributes = run, attributes

    def __getattr__(self, word: str) -> Any:
        __tracebackhide__ = True
        if word.startswith("_"):
            raise AttributeError(word)
        return self._run.at((*self._attributes, word))

    def __getitem__(self, key: str) -> Any:
        __tracebackhide__ = True
        try:
            return self._run.at((*self._attributes, key))
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __repr__(self) -> str:
        return f"<{'.'.join(self._attributes)}: {', '.join(self._run.next(self._attributes))}>"

    def __dir__(self) -> list[str]:
        return self._run.next(self._attributes)


class Measured:
    """A figure of a run, or one for each key that its name omits."""

    def __init__(self, run: Run, members: Sequence[Figure]) -> None:
        self.run, self.members = run, tuple(members)

    @property
    def name(self) -> str:
        """Return the name of the figure, or of all of them."""
        return ", ".join(figure.name for figure in self.members)

    @property
    def unit(self) -> str:
        return self.members[0].unit

    @property
    def value(self) -> float:
        """Return the number, in its unit. Raises AssertionError if it is unknown, ValueError for several figures."""
        __tracebackhide__ = True
        if len(self.members) > 1:
            raise ValueError(f"{len(self.members)} figures; name one of them: {self.name}")
        return self._number(self.members[0])

    def _number(self, figure: Figure) -> float:
        __tracebackhide__ = True
        if figure.value is None:
            reason = unknown_reason(figure, self.run.figures)
            raise AssertionError("\n".join([f"{figure.name} is {reason}", *self.run.description()]))
        return figure.value

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return ", ".join(f"{figure.name} = {_value_text(figure)}" for figure in self.members)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self.name} is not a truth value; compare it, like `< 20 * ms`")

    def compared(self, sign: str, other: object) -> list[bool]:
        """Return the result of the comparison for each figure. Raises TypeError if the units do not fit."""
        __tracebackhide__ = True
        results = []
        for figure in self.members:  # no comprehension: its frame would be part of a test's traceback
            results.append(SIGNS[sign](Fraction(repr(self._number(figure))), self._limit(figure, other)))
        return results

    def _limit(self, figure: Figure, other: object) -> Fraction:
        """Return the other side of a comparison in the figure's unit."""
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
        """Divide by a number, or by a quantity of the same kind, which gives a ratio."""
        if isinstance(by, int | float):
            return Quantity(self.value / by, self.unit)
        return self.value / float(self._limit(self.members[0], by))

    def failure(self, sign: str, other: object) -> list[str]:
        """Return lines that say why `self SIGN other` is false."""
        results = self.compared(sign, other)
        limit = repr(other) if isinstance(other, Quantity | Measured) else f"{other} {self.unit}".strip()
        if len(self.members) == 1:
            (figure,) = self.members
            lines = [f"{figure.name} is {_value_text(figure)}, not {sign} {limit}"]
        else:
            missed = [figure for figure, ok in zip(self.members, results, strict=True) if not ok]
            lines = [f"{len(missed)} of {len(results)} figures are not {sign} {limit}"]
            lines += [f"{figure.name} is {_value_text(figure)}" for figure in missed]
        return lines + self.run.description()


def _value_text(figure: Figure) -> str:
    return "not known" if figure.value is None else f"{figure.value:.6g} {figure.unit}".strip()


def explained(sign: str, left: object, right: object) -> list[str] | None:
    """Return lines that say why a comparison with figures is false; None without figures."""
    if isinstance(left, Measured) and sign in SIGNS:
        return left.failure(sign, right)
    if isinstance(right, Measured) and sign in SIGNS:
        return right.failure(MIRRORED.get(sign, sign), left)
    return None
