# SPDX-License-Identifier: Apache-2.0
"""The names of figures as users write them, in bounds and in tests.

A name is that of one figure (`ping.icmp.p99`), or it omits keys: the ping, flow, node or device. `ping.p99` matches the
p99 of every ping, `drops.router.qdisc` the drops at every device of the router. The summary's models define the
possible names; the run defines the keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hourglass.contract.figures import PARTS, Figure, annotation_kind, keys, plain, suffix_of
from hourglass.contract.summary import Summary
from hourglass.errors import InputError, closest

KEY: Final = "*"
"""The placeholder of a key in a template."""


def split(name: str) -> tuple[str, ...]:
    """Return the words of a name."""
    return tuple(name.split("."))


def unit(name: str) -> str:
    """Return the unit of the figure. Raises `InputError` if no run can have such a figure."""
    parts = split(name)
    templates_of_name = [template for template in templates() if covers(parts, template.path, template.keys)]
    if not templates_of_name:
        raise InputError("figure", name, _unknown(name))
    return templates_of_name[0].unit


def matching(name: str, figures: Sequence[Figure]) -> list[Figure]:
    """Return the figure with this exact name, or all figures that match it with keys omitted."""
    exact = [figure for figure in figures if figure.name == name]
    parts = split(name)
    return exact or [figure for figure in figures if covers(parts, figure.path, keys(figure.path))]


def covers(parts: Sequence[str], path: Sequence[str], keyed: Sequence[bool], *, begins: bool = False) -> bool:
    """Return whether the words name the path, where keys may be omitted. `begins`: accept the beginning of a name."""
    if not parts and begins:
        return True
    if not path:
        return not parts
    same = bool(parts) and _same(parts[0], path[0], last=len(path) == 1)
    if same and covers(parts[1:], path[1:], keyed[1:], begins=begins):
        return True
    return keyed[0] and covers(parts, path[1:], keyed[1:], begins=begins)


def _same(part: str, word: str, last: bool) -> bool:
    """Return whether a part of a name matches a word of a path. Only the last word contains its unit."""
    return word == KEY or part == (word if last else plain(word))


@dataclass(frozen=True)
class Template:
    """The path of a figure, with `KEY` for each key."""

    path: tuple[str, ...]
    keys: tuple[bool, ...]

    @property
    def unit(self) -> str:
        return Figure(self.path, None).unit


@cache
def templates() -> tuple[Template, ...]:
    """Return the templates of all possible figures."""
    paths = [path for part in PARTS for path in _below((part,), Summary.model_fields[part].annotation)]
    return tuple(Template(path, tuple(word == KEY for word in path)) for path in paths)


def _below(path: tuple[str, ...], annotation: Any) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the numbers below a path of the summary."""
    kind, inner = annotation_kind(annotation)
    if kind == "keys":
        yield from _below((*path, KEY), inner)
    elif kind == "fields":
        for name, field in inner.model_fields.items():
            yield from _below((*path, name), field.annotation)
    elif kind == "number":
        yield path


def _unknown(name: str) -> str:
    """Return the message for an unknown name, with suggestions."""
    first, *later_parts = split(name)
    first_words = [plain(part) for part in PARTS]
    if first not in first_words:
        paths = {".".join(template.path): template for template in templates()}
        suggestion = next((path for path in paths if later_parts == [] and path.split(".")[-1] == first), None)
        guess = f'Did you mean "{suggestion}"? ' if suggestion else closest(first, first_words)
        return f"unknown figure. {guess}A name begins with one of {', '.join(first_words)}"
    templates_of_part = [template for template in templates() if plain(template.path[0]) == first]
    last_words = list(dict.fromkeys(template.path[-1] for template in templates_of_part if template.path[-1] != KEY))
    readable_names = [".".join([*map(plain, template.path[:-1]), template.path[-1]]) for template in templates_of_part]
    guess = _with_unit(later_parts, last_words) or closest(later_parts[-1] if later_parts else first, last_words)
    example = "" if guess or not readable_names else f"Like {readable_names[0]}. "
    endings = ", ".join(last_words) or "its keys"
    return f"unknown figure. {guess}{example}Names that begin with {first} end in one of {endings}"


def _with_unit(later_parts: Sequence[str], last_words: Sequence[str]) -> str:
    """Return a suggestion for a name that lacks its unit."""
    suggestions = (word for word in last_words if later_parts and suffix_of(word) and plain(word) == later_parts[-1])
    suggestion = next(suggestions, None)
    return f'Did you mean "{suggestion}"? ' if suggestion else ""
