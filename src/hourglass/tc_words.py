# SPDX-License-Identifier: Apache-2.0
"""Read the words of a tc line as numbers (tc(8), "PARAMETERS")."""

import re

_NUMBER = re.compile(r"([0-9.]+)([a-zA-Z]*)")
_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12,
          "bps": 8, "kbps": 8 * 10**3, "mbps": 8 * 10**6, "gbps": 8 * 10**9,
          "kibit": 2**10, "mibit": 2**20, "gibit": 2**30}  # fmt: skip
_SIZES = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
_TIMES = {"": 1, "us": 1, "usec": 1, "usecs": 1, "ms": 1000, "msec": 1000, "msecs": 1000, "s": 10**6, "sec": 10**6,
          "secs": 10**6}  # fmt: skip


def word_after(line: str, name: str) -> str:
    """Return the word after `name` in a tc line; "" without one."""
    words = line.split()
    return words[words.index(name) + 1] if name in words[:-1] else ""


def rate_bps(word: str) -> int | None:
    """Return a rate in tc's notation, in bit/s."""
    return _quantity(word, _RATES | {"": 1})


def size_bytes(word: str) -> int | None:
    """Return a size in tc's notation, in bytes."""
    return _quantity(word, _SIZES)


def time_us(word: str) -> int | None:
    """Return a time in tc's notation, in µs."""
    return _quantity(word, _TIMES)


def _quantity(word: str, units: dict[str, int]) -> int | None:
    match = _NUMBER.fullmatch(word)
    factor = units.get(match[2].lower()) if match else None
    return int(float(match[1]) * factor) if match and factor else None
