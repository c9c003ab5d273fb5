# SPDX-License-Identifier: Apache-2.0
"""Writes /etc/ld.so.cache, where the dynamic loader looks a library up by its name.

Without it the loader tries folder after folder, among them `glibc-hwcaps/x86-64-vN` for every level that the CPU has,
so that the start of a program takes a different path through the kernel on each generation of CPU. With it a library is
opened at once, and nothing that the CPU says is asked.

Source: glibc 2.36, elf/dl-cache.h (`struct cache_file_new`, format 1.1), elf/dl-cache.c (the order, which the loader's
binary search relies on), elf/stringtable.c (a string that another ends with is that one's tail). The bytes are those
of `ldconfig`. Left out: the extension that names the ldconfig that wrote the file, libraries for particular CPUs, and
other machines than x86-64.
"""

import re
import struct
from collections.abc import Iterable
from pathlib import PurePosixPath

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")
"""Magic, number of entries, bytes of strings, byte order, where the extensions begin (0: there are none)."""
_LITTLE_ENDIAN = 2
_ENTRY = struct.Struct("<iIIIQ")
"""Kind, where the name and where the path stands in the file, least version of the kernel, hwcaps."""
_X86_64 = 0x0303
"""FLAG_X8664_LIB64 | FLAG_ELF_LIBC6."""


def build(libraries: Iterable[str]) -> bytes:
    """The cache of these libraries, absolute paths in the root; a library's file is named as programs ask for it."""
    paths = {PurePosixPath(path).name: path for path in sorted(libraries)}
    names = sorted(paths, key=_order, reverse=True)
    table, places = _strings({*names, *paths.values()})
    start = _HEADER.size + len(names) * _ENTRY.size
    entries = (_ENTRY.pack(_X86_64, start + places[name], start + places[paths[name]], 0, 0) for name in names)
    header = _HEADER.pack(_MAGIC, len(names), len(table), _LITTLE_ENDIAN, 0)
    return b"".join([header, *entries, table])


def _order(name: str) -> list[tuple[int, int]]:
    """As `_dl_cache_libcmp` compares: runs of digits as numbers, which come after every other character."""
    return [(1, int(part)) if part.isdecimal() else (0, ord(part)) for part in re.findall(r"[0-9]+|[^0-9]", name)]


def _strings(strings: set[str]) -> tuple[bytes, dict[str, int]]:
    """The table of strings, each ended by a zero, and where in it each begins."""
    table, places, last = b"", dict[str, int](), ""
    for string in sorted(strings, key=lambda string: string[::-1], reverse=True):
        if last.endswith(string):
            places[string] = places[last] + len(last) - len(string)
            continue
        places[string], last = len(table), string
        table += string.encode() + b"\0"
    return table, places
