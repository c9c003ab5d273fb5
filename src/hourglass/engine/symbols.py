# SPDX-License-Identifier: Apache-2.0
"""Read the symbols of a kernel's program file: addresses of variables, and the function at an address.

Source: gABI, chapter 4 (section headers, symbol table). It is read only if a guest seems to hang."""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_HEADER = struct.Struct("<4s36xQ10xHHH")
"""Magic, position of the section headers; size of one, their number, the section with their names."""
_SECTION = struct.Struct("<4xI16xQQI20x")
"""Type, position in the file, length; the section with its strings."""
_SYMBOL = struct.Struct("<IBBHQQ")
"""Position of the name, kind, visibility, section, address, size."""

_TABLE = 2
_FUNCTION, _UNTYPED = 2, 0


@dataclass(frozen=True)
class Symbols:
    """Addresses by name, and functions sorted by address."""

    addresses: dict[str, int]
    starts: list[int]
    functions: list[tuple[str, int]]
    """Name and size of the function at each start."""

    def function(self, address: int) -> str | None:
        """Return the name of the function at an address, or None."""
        index = bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        name, size = self.functions[index]
        return name if address < self.starts[index] + size else None


@lru_cache(maxsize=1)
def symbols(program: Path) -> Symbols:
    """Return the symbols of a program for x86-64; empty without a symbol table. Raises OSError."""
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
