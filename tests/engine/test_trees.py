# SPDX-License-Identifier: Apache-2.0
"""Kernel trees by revision and patch, with a repository of three small files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hourglass.engine.kernel import source, trees
from hourglass.errors import InputError

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\n"
PATCH = """--- a/net/x.c
+++ b/net/x.c
@@ -1 +1 @@
-int beta = 717;
+int beta = 512;
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two commits, the first tagged v1; the cache is the test's own."""
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


def run(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def commit(folder: Path, subject: str) -> None:
    run(folder, "add", "-A")
    run(folder, "commit", "-qm", subject)


def beta(words: str) -> tuple[str, str]:
    """What the file of a tree holds, and the tree's identity."""
    with trees.given(words, "mine", lambda _, __: None) as found:
        return (found.tree / "net/x.c").read_text(), found.identity


def state(folder: Path) -> list[tuple[str, bytes]]:
    """All of a repository, git's own files too."""
    return sorted((str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_as_its_files_are_and_its_repository_stays_as_it_is(repository: Path) -> None:
    clean = beta(str(repository))
    assert clean[1] == f"tree {source.git(repository, 'rev-parse', 'HEAD^{tree}').strip()}"
    (repository / "net/x.c").write_text("int beta = 601;\n")
    (repository / "net/new.c").write_text("int new;\n")
    (repository / "net/x.o").write_text("built")
    before = state(repository)
    changed = beta(str(repository))
    assert changed[0] == "int beta = 601;\n"
    assert changed[1] != clean[1]
    (repository / "net/x.o").write_text("built again")
    assert beta(str(repository)) == changed
    (repository / "net/x.o").write_text("built")
    assert state(repository) == before
    commit(repository, "three")
    assert beta(str(repository)) == changed, "what is committed is the same as what was not yet"


def test_revisions_share_a_checkout_and_know_their_words(repository: Path) -> None:
    before = state(repository)
    with trees.given(f"{repository}@v1", "mine", lambda _, __: None) as one:
        first, place = (one.tree / "net/x.c").read_text(), one.tree
        assert one.asked == f"{repository}@{trees.commit(repository, 'v1')}"
        (place / "net/left.c").write_text("left by a run that was killed")
    with trees.given(f"{repository}@HEAD", "mine", lambda _, __: None) as two:
        assert (two.tree, two.slot) == (place, one.slot)
        assert not (place / "net/left.c").exists()
        assert (first, (place / "net/x.c").read_text()) == ("int beta = 717;\n", "int beta = 600;\n")
    assert state(repository) == before


def test_a_checkout_goes_when_its_repository_has_gone(repository: Path, tmp_path: Path) -> None:
    def checkouts() -> set[str]:
        return {place.name for place in (tmp_path / "cache/checkouts").glob("*@")}

    moved = tmp_path / "moved"
    shutil.copytree(repository, moved)
    for folder in (repository, moved):
        with trees.given(f"{folder}@v1", "mine", lambda _, __: None):
            pass
    assert checkouts() == {trees.slot(repository), trees.slot(moved)}
    repository.rename(tmp_path / "elsewhere")
    with trees.given(f"{tmp_path / 'elsewhere'}@v1", "mine", lambda _, __: None):
        pass
    assert checkouts() == {trees.slot(moved), trees.slot(tmp_path / "elsewhere")}


def test_a_patch_is_applied_or_refused_with_its_reason(repository: Path) -> None:
    patch = repository.parent / "half.patch"
    patch.write_text(PATCH)
    words = f"{repository}@v1+{patch}"
    assert beta(words)[0] == "int beta = 512;\n"
    assert trees.names(words) == "linux.v1.half"
    with pytest.raises(InputError, match=r"patch = '.*half.patch': does not apply: Hunk #1 FAILED"):
        beta(f"{repository}@HEAD+{patch}")
    with pytest.raises(InputError, match="a patch is for a kernel of the list, or for DIR@REVISION"):
        beta(f"{repository}+{patch}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere", "kernel = 'nowhere': "),
        ("nowhere@v1", "kernel = 'nowhere@v1': "),
        ("6.1+nowhere.patch", "patch = 'nowhere.patch': there is no such file"),
        ("{linux}@v2", "knows no such revision"),
        ("{linux}@--help", "knows no such revision"),
    ],
)
def test_what_is_no_tree_is_refused(repository: Path, words: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("+", r"\+")):
        beta(words.format(linux=repository))


@pytest.mark.parametrize(
    ("words", "name"), [("6.1+a/b.patch", "6.1.b"), ("{linux}@v1", "linux.v1"), ("{linux}@HEAD~1", "linux.HEAD-1")]
)
def test_names(repository: Path, words: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert trees.names(words.format(linux=repository)) == name
