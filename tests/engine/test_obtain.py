# SPDX-License-Identifier: Apache-2.0
"""Where a kernel's source comes from when suites move on: the cache, a folder of the user's, what Debian still has."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from hourglass.contract.kernels import KERNELS, NEWEST, TRIED
from hourglass.engine.kernel import apt, hooks, obtain, source, store
from hourglass.engine.kernel.obtain import SourceGone
from hourglass.errors import HourglassError, MissingError


def say(_: str) -> None:
    pass


def archive(place: Path, top: str, sublevel: int, version: str = "7.3") -> Path:
    """A kernel's archive of one Makefile."""
    major, minor = version.split(".")
    text = f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {sublevel}\n".encode()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(place, "w:xz") as tar:
        member = tarfile.TarInfo(f"{top}/Makefile")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return place


def package(folder: Path, name: str, version: str, *, depends: str = "", sublevel: int = 4) -> Path:
    """linux-source-NAME as Debian packs it, or the empty linux-source."""
    root = folder / f"{name}-{version}"
    (root / "DEBIAN").mkdir(parents=True)
    control = (
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody\nDescription: none\n{depends}"
    )
    (root / "DEBIAN/control").write_text(control)
    if not depends:
        archive(root / f"usr/src/{name}.tar.xz", name, sublevel, name.rpartition("-")[2])
    deb = folder / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, deb], check=True, capture_output=True)
    return deb


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and hooks that every tree takes."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(obtain.MIRROR, raising=False)
    monkeypatch.setattr(hooks, "overlay", lambda _: {})


class Suite:
    """In place of Debian: packages by name, or what apt says instead."""

    def __init__(self, debs: list[Path], said: str = "") -> None:
        self.debs, self.said = {deb.name.split("_")[0]: deb for deb in debs}, said

    def __call__(self, release: str, folder: Path) -> "Suite":
        assert release == KERNELS["7.3"]
        return self

    def download(self, packages: list[str]) -> list[Path]:
        if not {*packages} <= self.debs.keys():
            raise HourglassError(f"cannot download; apt says:\n{self.said}\nor add Debian's suite")
        return [self.debs[name] for name in packages]


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlay(_: Path) -> None:
        raise hooks.HookError("tsq", "net/ipv4/tcp.c", "the anchor is not there")

    monkeypatch.setattr(hooks, "overlay", overlay)


def test_newest_is_what_the_suites_package_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = package(tmp_path, "linux-source", "7.4.1-1", depends="Depends: linux-source-7.4 (= 7.4.1-1)\n")
    monkeypatch.setattr(apt, "Archive", Suite([meta, package(tmp_path, "linux-source-7.4", "7.4.1-1")]))
    found = source.packaged(NEWEST, say)
    assert (found.identity, hooks.tree_version(found.tree)) == ("linux-source-7.4 7.4.1-1", (7, 4))
    assert store.known(NEWEST)


@pytest.mark.parametrize("said", ["E: Unable to locate package linux-source-7.3", "Err:1 … 404  Not Found"])
def test_a_source_that_is_gone_names_what_serves_instead(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([], said))
    with pytest.raises(SourceGone, match=rf"not in Debian {KERNELS['7.3']} any more.*7\.3\.4 is .*HOURGLASS_SOURCES"):
        source.packaged("7.3", say)


def test_a_network_that_is_down_is_no_suite_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([], "Err:1 Could not resolve"))
    with pytest.raises(HourglassError) as failed:
        source.packaged("7.3", say)
    assert not isinstance(failed.value, SourceGone)


def test_what_the_cache_has_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    first = source.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([], "E: Unable to locate package"))
    assert source.packaged("7.3", say) == first
    with pytest.raises(SourceGone):
        source.packaged("7.3", say, update=True)
    assert source.packaged("7.3", say) == first, "it stays"


def test_a_point_release_is_taken_if_the_hooks_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    old = source.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.9-1", sublevel=9)]))
    assert source.packaged("7.3", say, update=True).identity == "linux-source-7.3 7.3.9-1"
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path / "again", "linux-source-7.3", "7.3.4-1")]))
    assert source.packaged("7.3", say, update=True) == old


def test_one_that_does_not_take_them_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    old = source.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.9-1", sublevel=9)]))
    refuse(monkeypatch)
    with pytest.raises(
        SourceGone, match=r"7\.3\.9-1 does not take a hook: tsq .*7\.3\.4-1, which the cache has, stays"
    ):
        source.packaged("7.3", say, update=True)
    assert source.packaged("7.3", say) == old


def test_the_release_that_was_tried_has_to_take_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook of ours that is broken is not a suite that moved."""
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    refuse(monkeypatch)
    with pytest.raises(hooks.HookError):
        source.packaged("7.3", say)


def test_a_folder_of_the_users_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    archive(mirror / "linux-7.3.6.tar.xz", "linux-7.3.6", 6)
    monkeypatch.setenv(obtain.MIRROR, str(mirror))
    found = source.packaged("7.3", say)
    assert hooks.release(found.tree) == "7.3.6"
    package(mirror, "linux-source-7.3", "7.3.4-1")
    assert source.packaged("7.3", say, update=True).identity == "linux-source-7.3 7.3.4-1", "as Debian's archive has it"
    monkeypatch.setenv(obtain.MIRROR, str(tmp_path / "none"))
    with pytest.raises(MissingError, match=r"HOURGLASS_SOURCES, .*none, is no folder"):
        source.packaged("6.1", say)


def test_every_kernel_was_tried() -> None:
    assert TRIED.keys() == KERNELS.keys()
    assert all(release.startswith(f"{name}.") for name, release in TRIED.items())
