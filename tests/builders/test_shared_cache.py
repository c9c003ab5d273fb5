# SPDX-License-Identifier: Apache-2.0
"""Two processes share the cache. Each test forces one order of their steps; a thread is the second process."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from hourglass.builders import agent, root, tool_packages
from hourglass.builders.kernel import builder
from hourglass.host import directories

CONTENT = b"an archive"
LONG_AGO = 1_000_000_000
PAUSE_S = 0.3
"""The time in which the second process would end its step without a lock."""


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Set up an empty cache. Return the function that returns the root of a key."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    monkeypatch.setattr(root, "key", lambda _, release, __: release)
    monkeypatch.setattr(root, "_archive", lambda *_: CONTENT)
    monkeypatch.setattr(root.prebuilt, "root", lambda *_: None)
    return lambda key: root.image(release=key)


def delete_before_the_mark(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete an entry, like another process, directly before its time of use is set for the first time."""
    mark = os.utime

    def late(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(os, "utime", mark)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        mark(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "utime", late)


def test_an_existing_root_is_not_replaced(image: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both processes miss the root. The sandbox of the first one's guest allows the file that exists at that time."""
    inodes: list[int] = []
    ended = Event()

    def second() -> None:
        inodes.append(image("key").stat().st_ino)
        ended.set()

    thread = Thread(target=second)

    def archive(*_: object) -> bytes:
        monkeypatch.setattr(root, "_archive", lambda *_: CONTENT)
        thread.start()
        ended.wait(PAUSE_S)
        return CONTENT

    monkeypatch.setattr(root, "_archive", archive)
    path = image("key")
    thread.join()
    assert inodes == [path.stat().st_ino]


def test_a_root_deleted_before_its_use_is_built_again(
    image: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not become an empty file."""
    delete_before_the_mark(image("key"), monkeypatch)
    assert image("key").read_bytes() == CONTENT


def test_a_root_that_was_just_used_stays(image: Callable[[str], Path]) -> None:
    """A guest opens it later than `image` returns it."""
    paths = [image(f"key{number}") for number in range(root.CACHED_MAX + 2)]
    assert all(path.is_file() for path in paths)


def test_a_root_is_not_deleted_after_a_late_use(image: Callable[[str], Path]) -> None:
    """The second process uses a root after the first saw that it is old and before it deletes it."""
    path = image("key")
    os.utime(path, (LONG_AGO, LONG_AGO))
    thread = Thread(target=image, args=("key",))

    def entries() -> Iterator[Path]:
        yield path
        thread.start()
        thread.join(PAUSE_S)
        yield path.with_name("missing")
        yield path.parent  # newer

    directories.keep_newest(entries(), 1)
    thread.join()
    assert path.read_bytes() == CONTENT


def test_the_content_of_a_root_has_the_agent_of_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process builds the agent between the computation of the key and the build of the archive."""
    tool_packages.find()
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    monkeypatch.setattr(root.prebuilt, "root", lambda *_: None)
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        path.write_text(path.name)
    agents = iter([old] * 3)
    monkeypatch.setattr(agent, "binary", lambda: next(agents, new))
    try:
        root._agent.cache_clear()
        root._archive.cache_clear()
        root.key()
        root._archive.cache_clear()  # a process that reads the key from the cache has no archive yet
        path = root.image()
        assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    finally:
        root._agent.cache_clear()
        root._archive.cache_clear()


def test_a_kernel_deleted_before_its_use_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No empty file prevents the next build."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    folder = tmp_path / "kernels" / "0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"release": "6.1.0", "hz": 1000}')
    delete_before_the_mark(folder, monkeypatch)
    assert builder.load(folder.name, "6.1") is None
    assert not folder.exists()
