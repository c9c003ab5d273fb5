# SPDX-License-Identifier: Apache-2.0
"""Expressions over the figures of a run, like `goodput[5:] / capacity[5:]` or `min(flows.goodput_mbps)`.

    figure      ping.icmp.p99            a number of `--json`; others are quoted: "flows.a::1.retransmits"
    measure     jain, queue, timeouts    a measure of a study that needs no parameter (measures.py)
    capacity                             the payload that the paths of the client's flows can carry, Mbit/s
    window      goodput[5:8]             a measure from 5 to 8 s after the load's beginning
    function    min max mean sum         of their arguments; a name that omits keys means all matching figures
    + - * / ( )                          and numbers

If a run lacks a figure, or the expression divides by zero, it has no value.
"""

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hourglass.contract import names
from hourglass.contract.figures import figures
from hourglass.errors import HourglassError, InputError, closest
from hourglass.results.capacity import capacity_mbps
from hourglass.results.recording import Recording
from hourglass.studies.measures import MEASURES, MeasureContext

CAPACITY = "capacity"
WINDOW_KEYS = ("from", "to")
"""The parameters of a measure that has a window."""
FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max, "mean": fmean, "sum": sum}
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}  # fmt: skip
CHARACTERS_MAX = 1000

_PLAIN_MEASURES = [
    name for name, measure in MEASURES.items() if not measure.needs and not measure.compares
]  # fmt: skip


class MissingFigure(Exception):
    """A figure that a run lacks."""


@dataclass(frozen=True)
class Expression:
    """A checked expression."""

    text: str
    tree: ast.expr

    def value(self, run: Recording) -> float | None:
        """Return the value for a run; None if the run lacks a figure. Raises `InputError` if a name matches several
        figures where one is needed."""
        try:
            return float(_value(self.tree, run))
        except (MissingFigure, ZeroDivisionError):
            return None


def parse(text: str, option: str = "expression") -> Expression:
    """Parse and check an expression. Errors name `option`. Raises `InputError`."""
    try:
        tree = ast.parse(text[: CHARACTERS_MAX + 1].strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None or len(text) > CHARACTERS_MAX:
        raise InputError(option, text, "must be figures with + - * / and numbers, like goodput / capacity")
    try:
        _check(tree)
    except InputError as error:
        raise InputError(option, text, f"{error.key} {error.value}: {error.allowed}") from None
    return Expression(ast.unparse(tree), tree)


def _check(node: ast.expr) -> None:
    """Raise `InputError` for everything but the documented forms."""
    match node:
        case ast.Constant(value=bool()):
            raise InputError("the value", node.value, "must be a number")
        case ast.Constant(value=int() | float()):
            return
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            for argument in args:
                _check(argument)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATORS:
            _check(left)
            _check(right)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice(lower=lower, upper=upper, step=None)):
            _check_measure(name)
            if name != CAPACITY and MEASURES[name].keys != WINDOW_KEYS:
                raise InputError("the measure", name, "has no window")
            for end in (lower, upper):
                if not (end is None or (isinstance(end, ast.Constant) and type(end.value) in (int, float))):
                    raise InputError("the window of", name, "must be seconds after the load's beginning, like [5:10]")
        case ast.Name(id=name):
            _check_measure(name)
        case _:
            names.unit(_figure_name(node))


def _check_measure(name: str) -> None:
    if name != CAPACITY and name not in _PLAIN_MEASURES:
        known_names = [CAPACITY, *_PLAIN_MEASURES]
        allowed = f"{closest(name, known_names)}Known here: {', '.join(known_names)}; or a figure of --json"
        raise InputError("the name", name, allowed)


def _figure_name(node: ast.expr) -> str:
    """Return the dotted name of a figure. Raises `InputError`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words, node = [node.attr, *words], node.value
    if not isinstance(node, ast.Name):
        allowed = f"must be figures with + - * /, numbers and {', '.join(FUNCTIONS)}, like goodput / capacity"
        raise InputError("the part", ast.unparse(node), allowed)
    return ".".join([node.id, *words])


def _value(node: ast.expr, run: Recording) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name]([value for argument in args for value in _values(argument, run)])
        case ast.UnaryOp(operand=operand):
            return -_value(operand, run)
        case ast.BinOp(left=left, op=operation, right=right):
            return OPERATORS[type(operation)](_value(left, run), _value(right, run))
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice(lower=lower, upper=upper)):
            window = {key: ast.literal_eval(end) for key, end in zip(WINDOW_KEYS, (lower, upper), strict=True) if end}
            return _measured(name, run, window)
        case ast.Name(id=name):
            return _measured(name, run, {})
    values = list(_values(node, run))
    if len(values) > 1:
        name = _figure_name(node)
        raise InputError("figure", name, f"matches {len(values)} figures; choose one, or write min({name})")
    return values[0]


def _values(node: ast.expr, run: Recording) -> Iterator[float]:
    """Yield the values of an argument: one for each figure that a name matches, otherwise one."""
    if not isinstance(node, ast.Attribute) and not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield _value(node, run)
        return
    matching = names.matching(_figure_name(node), list(figures(run.summary)))
    if not matching or any(figure.value is None for figure in matching):
        raise MissingFigure
    yield from (float(figure.value) for figure in matching if figure.value is not None)


def _measured(name: str, run: Recording, window: dict[str, Any]) -> float:
    context = MeasureContext(run, window)
    if not context.in_load:
        raise MissingFigure
    try:
        value = capacity_mbps(run, context.flows, context.window) if name == CAPACITY else MEASURES[name].of(context)
    except HourglassError:  # a table that this run lacks
        value = None
    if value is None:
        raise MissingFigure
    return value
