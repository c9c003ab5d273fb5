# SPDX-License-Identifier: Apache-2.0
"""The symbols of a kernel's program file: where its variables are, and which function an address is in.

Source: gABI, chapter 4 (section headers, symbol table). Read when a guest seems to hang, not before.
"""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_HEADER = struct.Struct("<4s36xQ10xHHH")
"""Magic, where the section headers are; size of one, their number, which of them has names."""
_SECTION = struct.Struct("<4xI16xQQI20x")
"""Type, where it is in the file, how long; which section has its strings."""
_SYMBOL = struct.Struct("<IBBHQQ")
"""Where its name is, kind, visibility, section, address, size."""

_TABLE = 2
_FUNCTION, _UNTYPED = 2, 0


@dataclass(frozen=True)
class Symbols:
    """Addresses by name, and functions by address, in order."""

    addresses: dict[str, int]
    starts: list[int]
    functions: list[tuple[str, int]]
    """Name and size of the function that begins there."""

    def function(self, address: int) -> str | None:
        """The name of the function that an address is in; None outside of all."""
        place = bisect_right(self.starts, address) - 1
        if place < 0:
            return None
        name, size = self.functions[place]
        return name if address < self.starts[place] + size else None


@lru_cache(maxsize=1)
def symbols(program: Path) -> Symbols:
    """Those of a program for x86-64; empty if it has none. Raises OSError."""
    data = program.read_bytes()
    try:
        return _symbols(data)
    except (struct.error, ValueError, IndexError):
        return Symbols({}, [], [])


def _symbols(data: bytes) -> Symbols:
    magic, start, size, count, _ = _HEADER.unpack_from(data)
    if magic != b"\x7fELF":
        raise ValueError
    sections = [_SECTION.unpack_from(data, start + size * number) for number in range(count)]
    table = next((section for section in sections if section[0] == _TABLE), None)
    if table is None:
        return Symbols({}, [], [])
    _, at, length, strings = table
    names_at = sections[strings][1]
    addresses, functions = dict[str, int](), dict[int, tuple[str, int]]()
    for name_at, kind, _, section, address, span in _SYMBOL.iter_unpack(data[at : at + length]):
        if not section or not name_at:
            continue
        begin = names_at + name_at
        name = data[begin : data.index(b"\0", begin)].decode("ascii", "replace")
        addresses.setdefault(name, address)
        if kind & 15 == _FUNCTION and span:
            functions[address] = (name, span)
    starts = sorted(functions)
    return Symbols(addresses, starts, [functions[address] for address in starts])
