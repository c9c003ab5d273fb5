# SPDX-License-Identifier: Apache-2.0
"""Write the archive that the kernel unpacks as its first root: cpio, format "newc".

Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. A member is a header of 13 eight-digit
hexadecimal numbers, its name and its bytes, each padded to four. All that depends on the host (inode numbers, owners,
times) is fixed, so equal members give equal bytes. Omitted: hard links, check sums."""

import stat
from dataclasses import dataclass

_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class CpioMember:
    """One file: `mode` with its type bits, `content` the bytes or a link's target, `device` major and minor."""

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def folder() -> CpioMember:
    """Return an empty folder."""
    return CpioMember(stat.S_IFDIR | 0o755)


def file(content: bytes, mode: int = 0o644) -> CpioMember:
    """Return a regular file."""
    return CpioMember(stat.S_IFREG | mode, content)


def link(target: str) -> CpioMember:
    """Return a symbolic link."""
    return CpioMember(stat.S_IFLNK | 0o777, target.encode())


def character_device(major: int, minor: int) -> CpioMember:
    """Return a character device node."""
    return CpioMember(stat.S_IFCHR | 0o600, device=(major, minor))


def archive(members: dict[str, CpioMember]) -> bytes:
    """Return the archive of members by path without leading slash, in order of path; parent folders are added."""
    every = {parent: folder() for name in members for parent in parents(name)} | members
    parts = [part for number, name in enumerate(sorted(every), start=1) for part in entry(number, name, every[name])]
    return b"".join([*parts, *entry(0, _TRAILER, CpioMember(0))])


def parents(name: str) -> list[str]:
    """Return the folders above a path: "a/b/c" has "a" and "a/b"."""
    steps = name.split("/")
    return ["/".join(steps[:depth]) for depth in range(1, len(steps))]


def entry(inode: int, name: str, member: CpioMember) -> list[bytes]:
    """Return header, name and bytes of one member, and the zeros between them."""
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(member.mode) else 1
    numbers = (inode, member.mode, 0, 0, links, 0, len(member.content), 0, 0, *member.device, len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return [header, encoded, padding(header + encoded), member.content, padding(member.content)]


def padding(data: bytes) -> bytes:
    """Return the zeros that fill up to a multiple of four."""
    return bytes(-len(data) % 4)
