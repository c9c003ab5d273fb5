# SPDX-License-Identifier: Apache-2.0
"""Kernel trees by revision and patch, with a repository of three small files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hourglass.builders.kernel import source_tree, tree_spec
from hourglass.errors import InputError, MissingError

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\n"
PATCH = """--- a/net/x.c
+++ b/net/x.c
@@ -1 +1 @@
-int beta = 717;
+int beta = 512;
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of two commits, the first tagged v1, next to an empty cache."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "linux"
    (folder / "net").mkdir(parents=True)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / ".gitignore").write_text("*.o\n")
    (folder / "net/x.c").write_text("int beta = 717;\n")
    run(folder, "init", "-q")
    commit(folder, "one")
    run(folder, "tag", "v1")
    (folder / "net/x.c").write_text("int beta = 600;\n")
    commit(folder, "two")
    return folder


def run(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)


def commit(folder: Path, subject: str) -> None:
    run(folder, "add", "-A")
    run(folder, "commit", "-qm", subject)


def file_and_identity(argument: str) -> tuple[str, str]:
    """Return the file of a tree, and the tree's identity."""
    with tree_spec.open_tree(argument, "mine", lambda _, __: None) as source:
        return (source.tree / "net/x.c").read_text(), source.identity


def state(folder: Path) -> list[tuple[str, bytes]]:
    """Return all files of a repository, including git's."""
    return sorted((str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def test_a_folder_without_git_has_no_revisions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a git repository"):
        tree_spec.commit(tmp_path, "v1")


def test_a_folder_is_used_with_its_changes_and_its_repository_stays_unchanged(repository: Path) -> None:
    clean = file_and_identity(str(repository))
    assert clean[1] == f"tree {source_tree.git(repository, 'rev-parse', 'HEAD^{tree}').strip()}"
    (repository / "net/x.c").write_text("int beta = 601;\n")
    (repository / "net/new.c").write_text("int new;\n")
    (repository / "net/x.o").write_text("built")
    before = state(repository)
    changed = file_and_identity(str(repository))
    assert changed[0] == "int beta = 601;\n"
    assert changed[1] != clean[1]
    (repository / "net/x.o").write_text("built again")
    assert file_and_identity(str(repository)) == changed
    (repository / "net/x.o").write_text("built")
    assert state(repository) == before
    commit(repository, "three")
    assert file_and_identity(str(repository)) == changed, "what is committed is the same as what was not yet"


def test_revisions_share_a_checkout_and_store_their_argument(repository: Path) -> None:
    before = state(repository)
    with tree_spec.open_tree(f"{repository}@v1", "mine", lambda _, __: None) as older:
        first, tree = (older.tree / "net/x.c").read_text(), older.tree
        assert older.spec == f"{repository}@{tree_spec.commit(repository, 'v1')}"
        (tree / "net/left.c").write_text("left by a run that was killed")
    with tree_spec.open_tree(f"{repository}@HEAD", "mine", lambda _, __: None) as newer:
        assert (newer.tree, newer.slot) == (tree, older.slot)
        assert not (tree / "net/left.c").exists()
        assert (first, (tree / "net/x.c").read_text()) == ("int beta = 717;\n", "int beta = 600;\n")
    assert state(repository) == before


def test_the_checkout_of_a_removed_repository_is_removed(repository: Path, tmp_path: Path) -> None:
    def checkouts() -> set[str]:
        return {path.name for path in (tmp_path / "cache/checkouts").glob("*@")}

    moved = tmp_path / "moved"
    shutil.copytree(repository, moved)
    for folder in (repository, moved):
        with tree_spec.open_tree(f"{folder}@v1", "mine", lambda _, __: None):
            pass
    assert checkouts() == {tree_spec.slot(repository), tree_spec.slot(moved)}
    repository.rename(tmp_path / "elsewhere")
    with tree_spec.open_tree(f"{tmp_path / 'elsewhere'}@v1", "mine", lambda _, __: None):
        pass
    assert checkouts() == {tree_spec.slot(moved), tree_spec.slot(tmp_path / "elsewhere")}


def test_a_patch_is_applied_or_refused_with_its_reason(repository: Path) -> None:
    patch = repository.parent / "half.patch"
    patch.write_text(PATCH)
    argument = f"{repository}@v1+{patch}"
    assert file_and_identity(argument)[0] == "int beta = 512;\n"
    assert tree_spec.default_name(argument) == "linux.v1.half"
    with pytest.raises(InputError, match=r"patch = '.*half.patch': does not apply: Hunk #1 FAILED"):
        file_and_identity(f"{repository}@HEAD+{patch}")
    with pytest.raises(InputError, match="must be a patch for a listed kernel, or for DIR@REVISION"):
        file_and_identity(f"{repository}+{patch}")


def test_a_machine_without_patch_is_reported(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_spec, "TOOLS", {"no-such-patch": "patch"})
    with pytest.raises(MissingError, match="patches are applied by patch; to fix: apt-get install -y patch"):
        tree_spec.apply(repository.parent / "half.patch", repository)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nowhere", "kernel = 'nowhere': "),
        ("nowhere@v1", "kernel = 'nowhere@v1': "),
        ("6.1+nowhere.patch", "patch = 'nowhere.patch': no such file"),
        ("{linux}@v2", "lacks this revision"),
        ("{linux}@--help", "lacks this revision"),
    ],
)
def test_an_invalid_tree_is_refused(repository: Path, argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("+", r"\+")):
        file_and_identity(argument.format(linux=repository))


@pytest.mark.parametrize(
    ("argument", "name"), [("6.1+a/b.patch", "6.1.b"), ("{linux}@v1", "linux.v1"), ("{linux}@HEAD~1", "linux.HEAD-1")]
)
def test_names(repository: Path, argument: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert tree_spec.default_name(argument.format(linux=repository)) == name
