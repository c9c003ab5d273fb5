# SPDX-License-Identifier: Apache-2.0
"""Errors of the input as one clear line each: the dotted key, the value, what is allowed."""

import reprlib
from collections.abc import Iterable, Sequence

from hourglass.errors import InputError, written


class Abridged(str):
    """Text that replaces a value in a message, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def refusal(key: str, value: object, allowed: str) -> InputError:
    """Return the error for a value of any kind and size, shortened to fit a line."""
    return InputError(key, abridge(value), allowed)


def abridge(value: object) -> Abridged:
    """Return a short printable form of any value; never raises."""
    if isinstance(value, Abridged):
        return value
    if value is None or isinstance(value, bool):
        return Abridged(written(value))
    short = reprlib.Repr()
    short.maxlevel, short.maxdict, short.maxlist, short.maxtuple = 3, 4, 4, 4
    short.maxstring = short.maxother = 80
    try:
        return Abridged(" ".join(short.repr(value).split()))
    except (ValueError, RecursionError):  # an int of thousands of digits
        return Abridged(f"<{type(value).__name__}>")


def dotted(parts: Sequence[object]) -> str:
    """Return the key as users write it: testbed.link.0.rate."""
    texts = [str(part) for part in parts]
    return ".".join(text if text.isprintable() and len(text) <= 64 else abridge(text) for text in texts)


def several(names: Iterable[str]) -> str:
    """Return names for a message, twenty at most."""
    listed = list(names)
    return ", ".join(listed[:20]) + (", …" if len(listed) > 20 else "")


MISTAKES_MAX = 10
"""How many mistakes of one input are reported together."""


def together(mistakes: Sequence[InputError]) -> InputError:
    """Return one error for all mistakes of an input."""
    first, *further = mistakes[:MISTAKES_MAX]
    return InputError(first.key, first.value, first.allowed, further)
