# SPDX-License-Identifier: Apache-2.0
"""Numbers, sizes, rates and times as tc reads them (iproute2, lib/utils_math.c and lib/utils.c; tc(8), "PARAMETERS").

tc reads a number with C's strtod, so that 1e3, 0x10 and .5 are numbers, and cuts off what its unit cannot hold. A word
that tc refuses gives None.
"""

import math
import re

_NUMBER = re.compile(
    r"(?P<hex>[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)|"
    r"(?P<decimal>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)",
    re.ASCII,
)
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_RATES = {"": 1} | {f"{prefix}bit": factor for prefix, factor in _PREFIXES.items()}
_RATES |= {f"{prefix}bps": 8 * factor for prefix, factor in _PREFIXES.items()}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30}
_SIZES: dict[str, float] = {"": 1, "b": 1}
_SIZES |= _BINARY | {f"{prefix}b": factor for prefix, factor in _BINARY.items()}
_SIZES |= {f"{prefix}bit": factor / 8 for prefix, factor in _BINARY.items()}
_TIMES = {"": 1, "us": 1, "usec": 1, "usecs": 1, "ms": 1000, "msec": 1000, "msecs": 1000, "s": 10**6, "sec": 10**6,
          "secs": 10**6}  # fmt: skip
_UNSIGNED = 2**32
_PERCENT = re.compile(r"(?P<share>[0-9.]+)%")


def rate_bps(word: str, line_bps: int | None = None) -> int | None:
    """Return a rate in bit/s, in whole bytes per second. `line_bps`: the device's, for a rate in percent of it."""
    if percent := _PERCENT.fullmatch(word):
        share = _quantity(percent["share"], {"": 1})
        return None if share is None or line_bps is None else int(share * line_bps / 100 // 8) * 8
    bits = _quantity(word, _RATES)
    return None if bits is None else int(bits // 8) * 8


def size_bytes(word: str) -> int | None:
    """Return a size in bytes. tc reads netem's limit so too, and that of pfifo, which count packets."""
    size = _quantity(word, _SIZES)
    return int(size) if size is not None and size < _UNSIGNED else None


def time_us(word: str) -> int | None:
    """Return a time in µs."""
    time = _quantity(word, _TIMES)
    return int(time) if time is not None and time < _UNSIGNED else None


def whole_number(word: str) -> int | None:
    """Return a whole number. As in C, it is octal after 0, and hexadecimal after 0x."""
    try:
        number = int(word, 16 if word[:2].lower() == "0x" else 8 if word[:1] == "0" else 10)
    except ValueError:
        return None
    return number if 0 <= number < _UNSIGNED and "_" not in word else None


def _quantity(word: str, units: dict[str, float] | dict[str, int]) -> float | None:
    word = word.lower()
    match = _NUMBER.match(word)
    if not match:
        return None
    try:
        number = float.fromhex(match["hex"]) if match["hex"] else float(match["decimal"])
    except OverflowError:
        return None
    factor = units.get(word[match.end() :])
    quantity = number * factor if factor else math.inf
    return quantity if 0 <= quantity < math.inf else None
