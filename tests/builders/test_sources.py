# SPDX-License-Identifier: Apache-2.0
"""The sources of a wheel's programs: listed with their digests, fetched, verified."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hourglass.builders import prebuilt, sources
from hourglass.builders.sources import SourcePackage
from hourglass.errors import HourglassError, MissingError

CONTENT = {"ip_6.dsc": b"described", "ip_6.orig.tar.xz": b"packed", "linux-source_6.deb": b"a tree"}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
IP = SourcePackage("bookworm", "iproute2", "1:6", source=True)
LINUX = SourcePackage("bookworm", "linux-source", "6", source=False)


class FalseArchive:
    """Replaces an archive. It has all files that are not in `lacking`."""

    def __init__(self) -> None:
        self.lacking, self.files = set[str](), CONTENT

    def apt(self, *arguments: str, target: Path | None = None) -> Any:
        names = [name for name in self.files if name.startswith("ip" if "iproute2=1:6" in arguments else "linux")]
        assert [argument for argument in arguments if argument != "--print-uris"] in (
            IP.apt_arguments(),
            LINUX.apt_arguments(),
        )
        if "--print-uris" in arguments:
            lines = [f"'http://archive.example.org/{name}' {name} 12 SHA256:{DIGESTS[name]}" for name in names]
            return SimpleNamespace(stdout="\n".join(["Reading package lists...", *lines]), stderr="")
        for name in {*names} - self.lacking:
            assert target is not None
            (target / name).write_bytes(self.files[name])
        return SimpleNamespace(stdout="", stderr="E: Failed to fetch it" if self.lacking else "")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FalseArchive:
    """Return an archive, next to an installed set of two packages."""
    archive = FalseArchive()
    monkeypatch.setattr(sources, "archive", lambda release: archive)
    (tmp_path / "built").mkdir()
    manifest = [IP.described(), LINUX.described()]
    (tmp_path / "built" / sources.FILE).write_text(json.dumps(manifest))
    monkeypatch.setattr(prebuilt, "of_front", lambda: SimpleNamespace(folder=tmp_path / "built"))
    monkeypatch.setattr(prebuilt, "of_kernel", lambda name: None)
    return archive


def test_listed_sources_are_those_of_the_archive(archive: FalseArchive) -> None:
    description = {"release": "bookworm", "package": "iproute2", "version": "1:6", "source": True}
    assert IP.described() == description | {"files": {name: DIGESTS[name] for name in ("ip_6.dsc", "ip_6.orig.tar.xz")}}
    assert "archive.example.org" not in json.dumps(IP.described())
    archive.files = {}
    with pytest.raises(HourglassError, match="iproute2 1:6 of Debian bookworm is not in this machine's archive"):
        IP.described()


def test_all_is_fetched_and_verified(archive: FalseArchive, tmp_path: Path) -> None:
    sources.fetch(tmp_path / "to")
    assert {path.name: path.read_bytes() for path in (tmp_path / "to").iterdir()} == CONTENT


def test_unavailable_sources_are_named_after_the_others_are_fetched(archive: FalseArchive, tmp_path: Path) -> None:
    archive.lacking = {"ip_6.dsc"}
    with pytest.raises(HourglassError, match=r"iproute2 1:6 of .*\n  \| E: Failed to fetch it\nAn archive has"):
        sources.fetch(tmp_path / "to")
    assert (tmp_path / "to/linux-source_6.deb").is_file()


def test_another_file_of_the_name_is_refused(archive: FalseArchive, tmp_path: Path) -> None:
    archive.files = CONTENT | {"linux-source_6.deb": b"another"}
    with pytest.raises(HourglassError, match=r"linux-source_6.deb is not the file that the wheel was built from"):
        sources.fetch(tmp_path / "to")


def test_a_checkout_has_no_list_of_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prebuilt, "of_kernel", lambda name: None)
    with pytest.raises(MissingError, match="contains no prebuilt files"):
        sources.fetch(tmp_path)
