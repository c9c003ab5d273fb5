# SPDX-License-Identifier: Apache-2.0
"""Write /etc/ld.so.cache, in which the dynamic loader finds a library by its name.

Without it, the loader tries one folder after another, among them `glibc-hwcaps/x86-64-vN` for every level of the CPU. A
program's start would then take a different path through the kernel on each CPU generation. With it, the loader opens a
library at once and ignores the CPU.

Source: glibc 2.36, elf/dl-cache.h (`struct cache_file_new`, format 1.1), elf/dl-cache.c (the order, which the loader's
binary search relies on), elf/stringtable.c (a string that another ends with is that one's tail). The bytes are those of
`ldconfig`. Omitted: the extension that names the ldconfig version, libraries for particular CPUs, and machines other
than x86-64."""

import re
import struct
from collections.abc import Iterable
from pathlib import PurePosixPath

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")
"""Magic, number of entries, bytes of strings, byte order, position of the extensions (0: none)."""
_LITTLE_ENDIAN = 2
_ENTRY = struct.Struct("<iIIIQ")
"""Kind, positions of name and path in the file, oldest kernel version, hwcaps."""
_X86_64 = 0x0303
"""FLAG_X8664_LIB64 | FLAG_ELF_LIBC6."""


def build(libraries: Iterable[str]) -> bytes:
    """Return the cache of these libraries: absolute paths in the root. A library's file has the name that programs ask
    for."""
    paths = {PurePosixPath(path).name: path for path in sorted(libraries)}
    names = sorted(paths, key=_order, reverse=True)
    table, offsets = _strings({*names, *paths.values()})
    start = _HEADER.size + len(names) * _ENTRY.size
    entries = (_ENTRY.pack(_X86_64, start + offsets[name], start + offsets[paths[name]], 0, 0) for name in names)
    header = _HEADER.pack(_MAGIC, len(names), len(table), _LITTLE_ENDIAN, 0)
    return b"".join([header, *entries, table])


def _order(name: str) -> list[tuple[int, int]]:
    """Return the sort key of `_dl_cache_libcmp`: runs of digits as numbers, which follow every other character."""
    return [(1, int(part)) if part.isdecimal() else (0, ord(part)) for part in re.findall(r"[0-9]+|[^0-9]", name)]


def _strings(strings: set[str]) -> tuple[bytes, dict[str, int]]:
    """Return the table of zero-terminated strings, and the offset of each."""
    table, offsets, last = b"", dict[str, int](), ""
    for string in sorted(strings, key=lambda string: string[::-1], reverse=True):
        if last.endswith(string):
            offsets[string] = offsets[last] + len(last) - len(string)
            continue
        offsets[string], last = len(table), string
        table += string.encode() + b"\0"
    return table, offsets
