# SPDX-License-Identifier: Apache-2.0
"""The names of figures as people write them, in bounds and in tests.

A name is that of one figure (`ping.icmp.p99`), or leaves out keys: which ping, flow, node or device. `ping.p99` is the
p99 of every ping, `drops.router.qdisc` the drops of every device of the router. Which names there can be follows from
the summary's models; which keys there are, from the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hourglass.contract.figures import PARTS, Figure, held, keys, plain, suffix_of
from hourglass.contract.summary import Summary
from hourglass.errors import InputError, closest

KEY: Final = "*"
"""In a template, where a key stands."""


def split(name: str) -> tuple[str, ...]:
    """The words of a name."""
    return tuple(name.split("."))


def unit(name: str) -> str:
    """The unit of a figure of this name. Raises `InputError` when no run can have such a figure."""
    asked = split(name)
    found = [one for one in templates() if covers(asked, one.path, one.keys)]
    if not found:
        raise InputError("figure", name, _unknown(name))
    return found[0].unit


def matching(name: str, figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a name: the one that has it, or those of every key left out; none if the run has none."""
    exact = [one for one in figures if one.name == name]
    asked = split(name)
    return exact or [one for one in figures if covers(asked, one.path, keys(one.path))]


def covers(asked: Sequence[str], path: Sequence[str], keyed: Sequence[bool], *, begins: bool = False) -> bool:
    """Whether the words name the path, of which keys may be left out. `begins`: they are a beginning of such a name."""
    if not asked and begins:
        return True
    if not path:
        return not asked
    same = bool(asked) and _same(asked[0], path[0], last=len(path) == 1)
    if same and covers(asked[1:], path[1:], keyed[1:], begins=begins):
        return True
    return keyed[0] and covers(asked, path[1:], keyed[1:], begins=begins)


def _same(asked: str, word: str, last: bool) -> bool:
    """Any word stands for a template's key. A unit is part of the last word alone."""
    return word == KEY or asked == (word if last else plain(word))


@dataclass(frozen=True)
class Template:
    """The path of a figure with `KEY` for each key."""

    path: tuple[str, ...]
    keys: tuple[bool, ...]

    @property
    def unit(self) -> str:
        return Figure(self.path, None).unit


@cache
def templates() -> tuple[Template, ...]:
    """All figures a summary may have."""
    paths = [path for part in PARTS for path in _below((part,), Summary.model_fields[part].annotation)]
    return tuple(Template(path, tuple(word == KEY for word in path)) for path in paths)


def _below(path: tuple[str, ...], annotation: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the numbers below a place of the summary."""
    kind, inner = held(annotation)
    if kind == "keys":
        yield from _below((*path, KEY), inner)
    elif kind == "fields":
        for name, field in inner.model_fields.items():
            yield from _below((*path, name), field.annotation)
    elif kind == "number":
        yield path


def _unknown(name: str) -> str:
    """What there is instead."""
    first, *rest = split(name)
    parts = [plain(part) for part in PARTS]
    if first not in parts:
        ends = {".".join(one.path): one for one in templates()}
        meant = next((path for path in ends if rest == [] and path.split(".")[-1] == first), None)
        guess = f'Did you mean "{meant}"? ' if meant else closest(first, parts)
        return f"no figure's name. {guess}A name begins with one of {', '.join(parts)}"
    of_part = [one for one in templates() if plain(one.path[0]) == first]
    lasts = list(dict.fromkeys(one.path[-1] for one in of_part if one.path[-1] != KEY))
    written = [".".join([*map(plain, one.path[:-1]), one.path[-1]]) for one in of_part]
    guess = _with_unit(rest, lasts) or closest(rest[-1] if rest else first, lasts)
    example = "" if guess or not written else f"Like {written[0]}. "
    return f"no figure's name. {guess}{example}What begins with {first} ends in one of {', '.join(lasts) or 'its keys'}"


def _with_unit(rest: Sequence[str], lasts: Sequence[str]) -> str:
    """A name whose unit is missing."""
    meant = next((word for word in lasts if rest and suffix_of(word) and plain(word) == rest[-1]), None)
    return f'Did you mean "{meant}"? ' if meant else ""
