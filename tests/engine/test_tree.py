# SPDX-License-Identifier: Apache-2.0
"""The tree of the guest's tools: from packages, whatever release the machine is of; else the machine's own."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from hourglass.engine import paths, tree
from hourglass.engine.kernel import apt
from hourglass.engine.tree import Tree
from hourglass.errors import GoneError, HourglassError, MissingError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    tree.find.cache_clear()
    yield tmp_path / "cache"
    tree.find.cache_clear()


def package(folder: Path, name: str, files: dict[str, str | Path], depends: str = "") -> Path:
    """A Debian package. A file that is text is a link to it."""
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


class Shelf:
    """In place of an archive: packages that lie there."""

    def __init__(self, debs: list[Path]) -> None:
        self.debs, self.asked = {deb.name.split("_")[0]: deb for deb in debs}, list[list[str]]()

    def __call__(self, release: str, folder: Path, *, updates: bool) -> "Shelf":
        assert not updates, "not every machine knows of them"
        folder.mkdir(parents=True)
        return self

    def download(self, packages: list[str]) -> list[Path]:
        self.asked.append(packages)
        return [self.debs[name] for name in packages]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Two tools of two packages in the old layout, with /lib and /sbin of their own, and what they depend on."""
    own = Tree(Path("/")).needed([Path("/bin/true")]).files
    libc, loader = own["libc.so.6"], own["ld-linux-x86-64.so.2"]
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
    monkeypatch.setattr(tree, "TOOLS", {"one": "one"})
    monkeypatch.setattr(tree, "WIFI_TOOLS", {"two": "two"})
    made = Shelf(debs)
    monkeypatch.setattr(apt, "Archive", made)
    return made


def test_what_elf_files_ask_for_is_fetched_and_nothing_behind_it(cache: Path, shelf: Shelf) -> None:
    found = tree.find()
    assert shelf.asked == [["one", "two"], ["further", "libc6", "other"]]
    assert [(one.name, one.version, one.source, one.source_version) for one in found.packages] == [
        (name, "1:2-3+b1", f"{name}-source", "1:2-3") for name in ("libc6", "one", "two")
    ]
    assert found.folder.is_relative_to(cache)
    assert not (found.folder / "usr/share/man").exists()
    libraries = {name: found.place(path) for name, path in found.needed([found.program("two")]).files.items()}
    assert libraries == {
        "libc.so.6": "usr/lib/x86_64-linux-gnu/libc.so.6", "ld-linux-x86-64.so.2": "usr/lib64/ld-linux-x86-64.so.2"
    }  # fmt: skip
    assert all((found.folder / path).resolve().is_relative_to(found.folder) for path in libraries.values())
    tree.find.cache_clear()
    assert tree.find() == found
    assert len(shelf.asked) == 2, "it is kept"


def test_a_library_that_no_package_has_is_named(cache: Path, shelf: Shelf) -> None:
    shelf.debs["libc6"] = shelf.debs["other"]
    assert tree.find() == Tree(Path("/"))
    assert "has ld-linux-x86-64.so.2, libc.so.6" in tree.unreachable()


def test_without_an_archive_the_machines_own_files_serve_until_it_is_asked_again(
    cache: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(release: str, folder: Path, *, updates: bool) -> None:
        raise HourglassError("no way there")

    monkeypatch.setattr(apt, "Archive", none)
    assert tree.find() == Tree(Path("/"))
    assert tree.unreachable() == "no way there"
    monkeypatch.setattr(apt, "Archive", shelf)
    tree.find.cache_clear()
    assert tree.find() == Tree(Path("/"))
    assert shelf.asked == []
    assert tree.fetch().packages
    assert tree.unreachable() == ""
    assert sorted(path.suffix for path in (paths.cache() / "trees").iterdir()) == ["", ".lock"]


def test_a_later_release_that_is_gone_is_refused_and_the_first_ones_gives_way(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's own tools are not known to be those that a later kernel needs; a network that is down is no such
    thing."""

    def says(words: str) -> None:
        def none(release: str, folder: Path, *, updates: bool) -> None:
            raise HourglassError(f"cannot download ethtool; apt says:\n{words}\nor add Debian's {release}")

        monkeypatch.setattr(apt, "Archive", none)
        tree.find.cache_clear()

    says("E: Unable to locate package ethtool")
    with pytest.raises(
        GoneError, match=r"not in Debian forky any more: E: Unable .*to fix: copy .*/trees/forky-"
    ) as gone:
        tree.find("forky")
    assert gone.value.name == "forky"
    assert tree.find() == Tree(Path("/"))
    says("Err:1 Could not resolve")
    assert tree.find("forky") == Tree(Path("/"), (), "forky")


def test_a_tool_that_is_nowhere_is_named_with_the_reason(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the guest's hostapd is not in .*; to fix: apt-get install -y hostapd"):
        Tree(tmp_path).program("hostapd")


@pytest.mark.parametrize(
    ("path", "place"),
    [("/lib/x/./y", "usr/lib/x/y"), ("/usr/lib/../bin/ip", "usr/bin/ip"), ("/bin/ip", "usr/bin/ip"),
     ("/etc/iproute2/group", "etc/iproute2/group"), ("/lib64/../../lib/ld", "usr/lib/ld"), ("/library", "library")],
)  # fmt: skip
def test_places_of_a_merged_root(path: str, place: str) -> None:
    assert tree.merged(PurePosixPath(path)) == place


def test_dependencies_are_read() -> None:
    fields = "libc6 (>= 2.34), libelf1:any (>= 0.131) | other", "debconf (>= 0.5) | debconf-2.0", ""
    assert list(tree.first_alternatives(*fields)) == ["libc6", "libelf1", "debconf"]
