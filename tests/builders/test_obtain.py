# SPDX-License-Identifier: Apache-2.0
"""Kernel sources after a suite moved on: the cache, the user's mirror folder, and Debian's current packages."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from hourglass.builders.kernel import apt, hooks, obtain, registry, source_tree
from hourglass.builders.kernel.obtain import SourceGone
from hourglass.contract.kernels import KERNELS, NEWEST, TESTED_RELEASES
from hourglass.errors import HourglassError, MissingError


def say(_: str) -> None:
    pass


def archive(path: Path, top: str, sublevel: int, version: str = "7.3") -> Path:
    """Write a kernel's archive with one Makefile."""
    major, minor = version.split(".")
    text = f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {sublevel}\n".encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz") as tar:
        member = tarfile.TarInfo(f"{top}/Makefile")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return path


def package(folder: Path, name: str, version: str, *, depends: str = "", sublevel: int = 4) -> Path:
    """Write linux-source-NAME as Debian packs it, or the empty linux-source."""
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
    """Set up an empty cache, and hooks that fit every tree."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(obtain.MIRROR, raising=False)
    monkeypatch.setattr(hooks, "overlay", lambda _: {})


class Suite:
    """Replaces Debian's archive: packages by name, or apt's message."""

    def __init__(self, debs: list[Path], message: str = "") -> None:
        self.debs, self.message = {deb.name.split("_")[0]: deb for deb in debs}, message

    def __call__(self, release: str, folder: Path) -> "Suite":
        assert release == KERNELS["7.3"]
        return self

    def download(self, packages: list[str]) -> list[Path]:
        if not {*packages} <= self.debs.keys():
            raise apt.DownloadError(packages, [self.message], "add Debian's suite")
        return [self.debs[name] for name in packages]


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlay(_: Path) -> None:
        raise hooks.HookError("tsq", "net/ipv4/tcp.c", "the anchor is not there")

    monkeypatch.setattr(hooks, "overlay", overlay)


def test_newest_is_the_dependency_of_the_suites_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = package(tmp_path, "linux-source", "7.4.1-1", depends="Depends: linux-source-7.4 (= 7.4.1-1)\n")
    monkeypatch.setattr(apt, "Archive", Suite([meta, package(tmp_path, "linux-source-7.4", "7.4.1-1")]))
    source = source_tree.packaged(NEWEST, say)
    assert (source.identity, hooks.tree_version(source.tree)) == ("linux-source-7.4 7.4.1-1", (7, 4))
    assert registry.is_kernel(NEWEST)


@pytest.mark.parametrize("message", ["E: Unable to locate package linux-source-7.3", "Err:1 … 404  Not Found"])
def test_an_unavailable_source_names_alternatives(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([], message))
    with pytest.raises(SourceGone, match=rf"Debian {KERNELS['7.3']} no longer has.*7\.3\.4 is .*HOURGLASS_SOURCES"):
        source_tree.packaged("7.3", say)


def test_a_network_failure_is_no_moved_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([], "Err:1 Could not resolve"))
    with pytest.raises(HourglassError) as failed:
        source_tree.packaged("7.3", say)
    assert not isinstance(failed.value, SourceGone)


def test_a_cached_source_is_not_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    first = source_tree.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([], "E: Unable to locate package"))
    assert source_tree.packaged("7.3", say) == first
    with pytest.raises(SourceGone):
        source_tree.packaged("7.3", say, update=True)
    assert source_tree.packaged("7.3", say) == first, "it stays"


def test_a_point_release_is_taken_if_the_hooks_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    old = source_tree.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.9-1", sublevel=9)]))
    assert source_tree.packaged("7.3", say, update=True).identity == "linux-source-7.3 7.3.9-1"
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path / "again", "linux-source-7.3", "7.3.4-1")]))
    assert source_tree.packaged("7.3", say, update=True) == old


def test_a_point_release_that_the_hooks_do_not_fit_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    old = source_tree.packaged("7.3", say)
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.9-1", sublevel=9)]))
    refuse(monkeypatch)
    with pytest.raises(SourceGone, match=r"7\.3\.9-1 does not match a hook: tsq .*7\.3\.4-1 stays in the cache"):
        source_tree.packaged("7.3", say, update=True)
    assert source_tree.packaged("7.3", say) == old


def test_the_hooks_have_to_fit_the_tested_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken hook is a bug of Hourglass, not a moved suite."""
    monkeypatch.setattr(apt, "Archive", Suite([package(tmp_path, "linux-source-7.3", "7.3.4-1")]))
    refuse(monkeypatch)
    with pytest.raises(hooks.HookError):
        source_tree.packaged("7.3", say)


def test_a_mirror_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    archive(mirror / "linux-7.3.6.tar.xz", "linux-7.3.6", 6)
    monkeypatch.setenv(obtain.MIRROR, str(mirror))
    source = source_tree.packaged("7.3", say)
    assert hooks.release(source.tree) == "7.3.6"
    package(mirror, "linux-source-7.3", "7.3.4-1")
    assert source_tree.packaged("7.3", say, update=True).identity == "linux-source-7.3 7.3.4-1", (
        "as Debian's archive has it"
    )
    monkeypatch.setenv(obtain.MIRROR, str(tmp_path / "none"))
    with pytest.raises(MissingError, match=r"HOURGLASS_SOURCES, .*none, is not a folder"):
        source_tree.packaged("6.1", say)


def test_every_kernel_has_a_tested_release() -> None:
    assert TESTED_RELEASES.keys() == KERNELS.keys()
    assert all(release.startswith(f"{name}.") for name, release in TESTED_RELEASES.items())
