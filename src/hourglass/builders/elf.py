# SPDX-License-Identifier: Apache-2.0
"""Read from a program's file what it needs to start: its loader, and the names of its libraries.

Nothing is executed, so programs of any machine and C library can be inspected. Source: gABI, chapters 4 and 5 (ELF
header, program headers, dynamic section). Omitted: machines other than x86-64, and search paths inside a program
(DT_RUNPATH). `pyelftools` would read it too; every installation would carry it for these few lines."""

import struct
from dataclasses import dataclass
from pathlib import Path

from hourglass.errors import HourglassError

_HEADER = struct.Struct("<4sBB10xHH4x8xQ8x4xHHH")
"""Magic, class, byte order, type, machine, position of the program headers; sizes of header and entries, number of
entries."""
_SEGMENT = struct.Struct("<IIQQ8xQ16x")
"""Type, flags, position in the file and in memory, length in the file."""
_TAG = struct.Struct("<qQ")

_X86_64 = 62
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_END, _NEEDED, _STRINGS = 0, 1, 5


@dataclass(frozen=True)
class Needs:
    """`loader`: the path of the dynamic loader, "" without one. `libraries`: names, in order."""

    loader: str
    libraries: tuple[str, ...]


def needs(path: Path) -> Needs:
    """Return what a program or a library needs. Raises HourglassError for files other than ELF for x86-64."""
    data = path.read_bytes()
    try:
        return _needs(data)
    except (struct.error, ValueError, IndexError, StopIteration) as error:
        raise HourglassError(f"{path} is not a program or library for x86-64: {error}") from None


def _needs(data: bytes) -> Needs:
    magic, bits, order, _, machine, start, _, size, count = _HEADER.unpack_from(data)
    if (magic, bits, order, machine) != (b"\x7fELF", 2, 1, _X86_64):
        raise ValueError("another kind of file")
    segments = [_SEGMENT.unpack_from(data, start + size * number) for number in range(count)]
    loader = next((_text(data, at) for kind, _, at, _, _ in segments if kind == _INTERPRETER), "")
    dynamic = next(((at, length) for kind, _, at, _, length in segments if kind == _DYNAMIC), None)
    if dynamic is None:
        return Needs(loader, ())
    tags = list(_TAG.iter_unpack(data[dynamic[0] : dynamic[0] + dynamic[1] // _TAG.size * _TAG.size]))
    tags = tags[: next(number for number, (tag, _) in enumerate(tags) if tag == _END)]
    strings = next((address for tag, address in tags if tag == _STRINGS), 0)
    table = next(
        at + strings - address
        for kind, _, at, address, length in segments
        if kind == _LOAD and address <= strings < address + length
    )
    return Needs(loader, tuple(_text(data, table + offset) for tag, offset in tags if tag == _NEEDED))


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
