# SPDX-License-Identifier: Apache-2.0
"""The sources of what a wheel brings: listed with their digests, fetched, verified."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hourglass.engine import prebuilt, sources
from hourglass.engine.sources import Wanted
from hourglass.errors import HourglassError, MissingError

CONTENT = {"ip_6.dsc": b"described", "ip_6.orig.tar.xz": b"packed", "linux-source_6.deb": b"a tree"}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
IP = Wanted("bookworm", "iproute2", "1:6", source=True)
LINUX = Wanted("bookworm", "linux-source", "6", source=False)


class Shelf:
    """In place of an archive. It has what is not `lacking`."""

    def __init__(self) -> None:
        self.lacking, self.files = set[str](), CONTENT

    def apt(self, *words: str, place: Path | None = None) -> Any:
        names = [name for name in self.files if name.startswith("ip" if "iproute2=1:6" in words else "linux")]
        assert [word for word in words if word != "--print-uris"] in (IP.words(), LINUX.words())
        if "--print-uris" in words:
            lines = [f"'http://archive.example.org/{name}' {name} 12 SHA256:{DIGESTS[name]}" for name in names]
            return SimpleNamespace(stdout="\n".join(["Reading package lists...", *lines]), stderr="")
        for name in {*names} - self.lacking:
            assert place is not None
            (place / name).write_bytes(self.files[name])
        return SimpleNamespace(stdout="", stderr="E: Failed to fetch it" if self.lacking else "")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """An archive, and an installed set of two packages."""
    made = Shelf()
    monkeypatch.setattr(sources, "archive", lambda release: made)
    (tmp_path / "built").mkdir()
    listed = [IP.described(), LINUX.described()]
    (tmp_path / "built" / sources.FILE).write_text(json.dumps(listed))
    monkeypatch.setattr(prebuilt, "of_front", lambda: SimpleNamespace(folder=tmp_path / "built"))
    monkeypatch.setattr(prebuilt, "of_kernel", lambda name: None)
    return made


def test_what_is_listed_is_what_the_archive_says(shelf: Shelf) -> None:
    about = {"release": "bookworm", "package": "iproute2", "version": "1:6", "source": True}
    assert IP.described() == about | {"files": {name: DIGESTS[name] for name in ("ip_6.dsc", "ip_6.orig.tar.xz")}}
    assert "archive.example.org" not in json.dumps(IP.described())
    shelf.files = {}
    with pytest.raises(HourglassError, match="iproute2 1:6 of Debian bookworm is not in this machine's archive"):
        IP.described()


def test_all_is_fetched_and_verified(shelf: Shelf, tmp_path: Path) -> None:
    sources.fetch(tmp_path / "to")
    assert {path.name: path.read_bytes() for path in (tmp_path / "to").iterdir()} == CONTENT


def test_what_cannot_be_had_is_named_after_the_rest(shelf: Shelf, tmp_path: Path) -> None:
    shelf.lacking = {"ip_6.dsc"}
    with pytest.raises(HourglassError, match=r"iproute2 1:6 of .*\n  \| E: Failed to fetch it\nAn archive has"):
        sources.fetch(tmp_path / "to")
    assert (tmp_path / "to/linux-source_6.deb").is_file()


def test_another_file_of_the_name_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    shelf.files = CONTENT | {"linux-source_6.deb": b"another"}
    with pytest.raises(HourglassError, match=r"linux-source_6.deb is not the file that the wheel was made of"):
        sources.fetch(tmp_path / "to")


def test_a_checkout_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prebuilt, "of_kernel", lambda name: None)
    with pytest.raises(MissingError, match="brings nothing built"):
        sources.fetch(tmp_path)
