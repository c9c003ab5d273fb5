# SPDX-License-Identifier: Apache-2.0
"""The tree of the guest's tools: from packages, independent of the machine's release; otherwise the machine's files."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from hourglass.builders import tool_packages
from hourglass.builders.kernel import apt
from hourglass.builders.tool_packages import Tree
from hourglass.errors import GoneError, HourglassError, MissingError
from hourglass.host import directories


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    tool_packages.find.cache_clear()
    yield tmp_path / "cache"
    tool_packages.find.cache_clear()


def package(folder: Path, name: str, files: dict[str, str | Path], depends: str = "") -> Path:
    """Write a Debian package. A text as content makes a link to this path."""
    root = folder / name
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1:2-3+b1\nSource: {name}-source (1:2-3)\nArchitecture: amd64\n"
    control += f"Maintainer: nobody\nDescription: none\n{depends}"
    (root / "DEBIAN/control").write_text(control)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (root / path).symlink_to(content)
        else:
            (root / path).write_bytes(content.read_bytes())
    deb = folder / f"{name}_2_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, deb], check=True, capture_output=True)
    return deb


class FalseArchive:
    """Replaces an archive: packages as files."""

    def __init__(self, debs: list[Path]) -> None:
        self.debs, self.requests = {deb.name.split("_")[0]: deb for deb in debs}, list[list[str]]()

    def __call__(self, release: str, folder: Path, *, updates: bool) -> "FalseArchive":
        assert not updates, "not every machine knows of them"
        folder.mkdir(parents=True)
        return self

    def download(self, packages: list[str]) -> list[Path]:
        self.requests.append(packages)
        return [self.debs[name] for name in packages]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FalseArchive:
    """Return an archive with two tools in the old layout, with separate /lib and /sbin, and their dependencies."""
    machine_libraries = Tree(Path("/")).dependencies([Path("/bin/true")]).files
    libc, loader = machine_libraries["libc.so.6"], machine_libraries["ld-linux-x86-64.so.2"]
    multiarch = "lib/x86_64-linux-gnu"
    debs = [
        package(tmp_path, "one", {"sbin/one": Path("/bin/true"), "usr/share/man/one.1": Path("/etc/passwd")},
                "Pre-Depends: libc6 (>= 2)\nDepends: other | another, further\n"),
        package(tmp_path, "two", {"bin/two": Path("/bin/true"), "usr/sbin/two": "/bin/two"}),
        package(tmp_path, "libc6", {f"{multiarch}/libc.so.6": "libc-2.so", f"{multiarch}/libc-2.so": libc,
                                    f"{multiarch}/ld-2.so": loader,
                                    "lib64/ld-linux-x86-64.so.2": f"/{multiarch}/ld-2.so"}, "Depends: unwanted\n"),
        package(tmp_path, "other", {"usr/share/doc/other/copyright": Path("/etc/passwd")}),
        package(tmp_path, "further", {}),
    ]  # fmt: skip
    monkeypatch.setattr(tool_packages, "ALL_TOOLS", {"one": "one", "two": "two"})
    archive = FalseArchive(debs)
    monkeypatch.setattr(apt, "Archive", archive)
    return archive


def test_only_libraries_that_elf_files_need_are_fetched(cache: Path, archive: FalseArchive) -> None:
    tree = tool_packages.find()
    assert archive.requests == [["one", "two"], ["further", "libc6", "other"]]
    assert [
        (package_.name, package_.version, package_.source, package_.source_version) for package_ in tree.packages
    ] == [(name, "1:2-3+b1", f"{name}-source", "1:2-3") for name in ("libc6", "one", "two")]
    assert tree.folder.is_relative_to(cache)
    assert not (tree.folder / "usr/share/man").exists()
    libraries = {name: tree.path_in_root(path) for name, path in tree.dependencies([tree.program("two")]).files.items()}
    assert libraries == {
        "libc.so.6": "usr/lib/x86_64-linux-gnu/libc.so.6", "ld-linux-x86-64.so.2": "usr/lib64/ld-linux-x86-64.so.2"
    }  # fmt: skip
    assert all((tree.folder / path).resolve().is_relative_to(tree.folder) for path in libraries.values())
    tool_packages.find.cache_clear()
    assert tool_packages.find() == tree
    assert len(archive.requests) == 2, "the tree is cached"


def test_a_library_that_no_package_has_is_named(cache: Path, archive: FalseArchive) -> None:
    archive.debs["libc6"] = archive.debs["other"]
    assert tool_packages.find() == Tree(Path("/"))
    assert "has ld-linux-x86-64.so.2, libc.so.6" in tool_packages.unreachable()


def test_without_an_archive_the_machines_files_are_used_until_the_next_fetch(
    cache: Path, archive: FalseArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(release: str, folder: Path, *, updates: bool) -> None:
        raise HourglassError("no way there")

    monkeypatch.setattr(apt, "Archive", none)
    assert tool_packages.find() == Tree(Path("/"))
    assert tool_packages.unreachable() == "no way there"
    monkeypatch.setattr(apt, "Archive", archive)
    tool_packages.find.cache_clear()
    assert tool_packages.find() == Tree(Path("/"))
    assert archive.requests == []
    assert tool_packages.fetch().packages
    assert tool_packages.unreachable() == ""
    assert sorted(path.suffix for path in (directories.cache() / "trees").iterdir()) == ["", ".lock"]


def test_an_unavailable_later_release_is_refused_and_the_first_falls_back(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later kernel may need newer tools than the machine's. A network failure does not count as an unavailable
    release."""

    def set_message(message: str) -> None:
        def none(release: str, folder: Path, *, updates: bool) -> None:
            raise apt.DownloadError(["ethtool"], [message], f"add Debian's {release}")

        monkeypatch.setattr(apt, "Archive", none)
        tool_packages.find.cache_clear()

    set_message("E: Unable to locate package ethtool")
    with pytest.raises(
        GoneError, match=r"Debian forky no longer has .*: E: Unable .*to fix: copy .*/trees/forky-"
    ) as error:
        tool_packages.find("forky")
    assert error.value.name == "forky"
    assert tool_packages.find() == Tree(Path("/"))
    set_message("Err:1 Could not resolve")
    assert tool_packages.find("forky") == Tree(Path("/"), (), "forky")


def test_a_missing_tool_is_named_with_the_reason(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the guest's hostapd is not in .*; to fix: apt-get install -y hostapd"):
        Tree(tmp_path).program("hostapd")


@pytest.mark.parametrize(
    ("path", "merged"),
    [("/lib/x/./y", "usr/lib/x/y"), ("/usr/lib/../bin/ip", "usr/bin/ip"), ("/bin/ip", "usr/bin/ip"),
     ("/etc/iproute2/group", "etc/iproute2/group"), ("/lib64/../../lib/ld", "usr/lib/ld"), ("/library", "library")],
)  # fmt: skip
def test_paths_of_a_merged_root(path: str, merged: str) -> None:
    assert tool_packages.merged(PurePosixPath(path)) == merged


def test_dependencies_are_read() -> None:
    fields = "libc6 (>= 2.34), libelf1:any (>= 0.131) | other", "debconf (>= 0.5) | debconf-2.0", ""
    assert list(tool_packages.first_alternatives(*fields)) == ["libc6", "libelf1", "debconf"]
