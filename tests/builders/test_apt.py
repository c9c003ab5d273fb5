# SPDX-License-Identifier: Apache-2.0
"""Another release's package sources, from a machine's own."""

import subprocess
from pathlib import Path

import pytest

from hourglass.builders.kernel import apt
from hourglass.errors import MissingError

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /etc/apt/keyrings/mirror.gpg

Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://third.example.org/node
Suites: nodistro
Components: main

Types: deb
URIs: http://third.example.org/cloud
Suites: cloud-bookworm
Components: main

Enabled: no
Types: deb
URIs: http://off.example.org/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
# deb http://off.example.org/debian bookworm main
deb [arch=amd64 signed-by=/etc/apt/keyrings/mirror.gpg] http://mirror.example.org/debian bookworm main contrib
deb http://mirror.example.org/debian-security bookworm-security main
deb-src http://mirror.example.org/debian bookworm main
deb http://third.example.org/tool stable main
"""

EXPECTED = """\
Types: deb
URIs: http://mirror.example.org/debian
Suites: {suites}
Components: main
Signed-By: /etc/apt/keyrings/mirror.gpg

Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bullseye-security
Components: main
"""


@pytest.mark.parametrize(
    ("name", "text", "suites"),
    [("debian.sources", DEB822, "bullseye bullseye-updates"), ("sources.list", ONE_LINE, "bullseye")],
)
def test_suites_are_replaced_and_third_parties_left_out(name: str, text: str, suites: str) -> None:
    assert apt.derive([(name, text)], "bookworm", "bullseye") == EXPECTED.format(suites=suites)


def test_a_machine_of_the_same_release_keeps_its_sources() -> None:
    assert "Suites: bookworm bookworm-updates\n" in apt.derive([("d.sources", DEB822)], "bookworm", "bookworm")


def test_a_release_without_updates_is_the_same_for_every_machine() -> None:
    assert "Suites: bullseye\n" in apt.derive([("d.sources", DEB822)], "bookworm", "bullseye", updates=False)
    assert "security" not in apt.derive([("d.sources", DEB822)], "bookworm", "bullseye", updates=False)


def test_nothing_is_derived_for_another_distribution() -> None:
    assert apt.derive([("d.sources", DEB822)], "noble", "bookworm") == ""


def test_an_embedded_key_survives() -> None:
    key = "Types: deb\nURIs: http://m.example.org/d\nSuites: trixie\nSigned-By:\n -----BEGIN-----\n .\n xyz\n"
    derived = apt.derive([("d.sources", key)], "trixie", "bookworm")
    assert derived.endswith("Signed-By: \n -----BEGIN-----\n .\n xyz\n")


def test_an_index_that_cannot_be_read_does_not_mean_that_a_package_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "update": (100, "E: Release file for http://m.example.org/d is expired (invalid since 19d).\n"),
        "download": (100, "E: Unable to locate package iw\n"),
    }

    def answer(archive: apt.Archive, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], answers[arguments[0]][0], "", answers[arguments[0]][1])

    monkeypatch.setattr(apt.Archive, "apt", answer)
    monkeypatch.setattr(apt, "machine_sources", lambda: [("debian.sources", DEB822)])
    monkeypatch.setattr(apt, "release_field", {"ID": "debian", "VERSION_CODENAME": "bookworm"}.__getitem__)
    with pytest.raises(apt.DownloadError, match="is expired") as expired:
        apt.Archive("trixie", tmp_path).download(["iw"])
    assert not expired.value.gone
    answers["update"] = (0, "")
    with pytest.raises(apt.DownloadError, match="Unable to locate package iw"):
        apt.Archive("trixie", tmp_path).download(["iw"])


def test_another_distribution_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "release_field", {"ID": "ubuntu", "VERSION_CODENAME": "noble"}.__getitem__)
    with pytest.raises(
        MissingError, match="but /etc/os-release has ID=ubuntu; to fix: run Hourglass in a container of Debian"
    ):
        apt.Archive("bookworm", tmp_path)
    assert not list(tmp_path.iterdir())
