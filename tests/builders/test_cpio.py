# SPDX-License-Identifier: Apache-2.0
"""The archive writer, checked with a reader that follows the format's description alone."""

import stat

from hourglass.builders import cpio


def read(data: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """Return mode, content and device by name, in the archive's order. Headers and padding are checked."""
    members: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
    position = 0
    while True:
        assert position % 4 == 0
        assert data[position : position + 6] == b"070701"
        fields = [int(data[position + 6 + 8 * i : position + 14 + 8 * i], 16) for i in range(13)]
        _, mode, owner, group, _, changed, size, _, _, major, minor, name_size, check = fields
        assert (owner, group, changed, check) == (0, 0, 0, 0)
        name = data[position + 110 : position + 110 + name_size]
        assert name.endswith(b"\0")
        start = (position + 110 + name_size + 3) // 4 * 4
        if name == b"TRAILER!!!\0":
            assert start == len(data)
            return members
        members[name[:-1].decode()] = (mode, data[start : start + size], (major, minor))
        position = (start + size + 3) // 4 * 4


def test_members_are_in_order_with_their_folders() -> None:
    data = cpio.archive(
        {
            "usr/sbin/tc": cpio.file(b"12345", 0o755),
            "dev/console": cpio.character_device(5, 1),
            "sbin": cpio.link("usr/sbin"),
            "proc": cpio.folder(),
        }
    )
    members = read(data)
    assert list(members) == ["dev", "dev/console", "proc", "sbin", "usr", "usr/sbin", "usr/sbin/tc"]
    assert members["usr/sbin/tc"] == (stat.S_IFREG | 0o755, b"12345", (0, 0))
    assert members["dev/console"] == (stat.S_IFCHR | 0o600, b"", (5, 1))
    assert members["sbin"] == (stat.S_IFLNK | 0o777, b"usr/sbin", (0, 0))
    assert stat.S_ISDIR(members["usr"][0])


def test_equal_members_give_equal_bytes_in_any_order() -> None:
    first, second = cpio.file(b"1"), cpio.file(b"22")
    assert cpio.archive({"a/b": first, "c": second}) == cpio.archive({"c": second, "a/b": first})
