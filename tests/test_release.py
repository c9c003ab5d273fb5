# SPDX-License-Identifier: Apache-2.0
"""A release: the CHANGELOG's section, the source distribution, the checks in bare roots."""

import hashlib
import io
import subprocess
import tarfile
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hourglass import __version__
from hourglass.builders import prebuilt
from hourglass.errors import HourglassError
from release import changelog, check, sdist, wheel, wheels
from release.bare_roots import BARE_ROOTS

TEXT = """# Changelog

Words.

## Unreleased

### Added

- A thing.

## 0.1.0

The first.
"""
EXPECTED = """# Changelog

Words.

## Unreleased

## 0.2.0 (2026-11-22)

### Added

- A thing.

### Artefacts

| file | size | SHA-256 |
|---|---|---|
| `a.whl` | 0.0 MB | `{digest}` |

## 0.1.0

The first.
"""
DAY = date(2026, 11, 22)


@pytest.fixture
def artefact(tmp_path: Path) -> Path:
    path = tmp_path / "a.whl"
    path.write_bytes(b"a wheel")
    return path


def test_unreleased_changes_become_the_section(artefact: Path) -> None:
    digest = hashlib.sha256(b"a wheel").hexdigest()
    assert changelog.released(TEXT, "0.2.0", DAY, [artefact]) == EXPECTED.format(digest=digest)


def test_a_version_is_released_once_and_never_empty(artefact: Path) -> None:
    new_text = changelog.released(TEXT, "0.2.0", DAY, [artefact])
    with pytest.raises(HourglassError, match=r"has artefacts of 0\.2\.0"):
        changelog.released(new_text, "0.2.0", DAY, [artefact])
    with pytest.raises(HourglassError, match="nothing under"):
        changelog.released(new_text, "0.3.0", DAY, [artefact])
    assert changelog.section(new_text, "0.2") is None
    assert "- A thing." in (changelog.section(new_text, "0.2.0") or "")


def test_a_written_section_gets_the_artefacts(artefact: Path) -> None:
    written = TEXT.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 (2026-11-22)\n")
    digest = hashlib.sha256(b"a wheel").hexdigest()
    assert changelog.released(written, "0.2.0", DAY, [artefact]) == EXPECTED.format(digest=digest)


def test_the_projects_own_changelog_can_be_released(artefact: Path) -> None:
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    body = "- A new thing."
    text = text.replace(changelog.HEADING, f"{changelog.HEADING}\n{body}\n", 1)
    for version, sections in (("999.0.0", 1), (__version__, 0)):
        new_text = changelog.released(text, version, DAY, [artefact])
        section = changelog.section(new_text, version) or ""
        assert (body in section, changelog.ARTEFACTS in section) == (bool(sections), True)
        assert new_text.count("\n## ") == text.count("\n## ") + sections


def tar_of(files: dict[str, bytes], mtime: int, owner: str, mode: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = len(content), mtime, owner, mode
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_a_source_distribution_has_no_traces_of_day_owner_and_order() -> None:
    files = {"a/b": b"one", "a/a": b"two"}
    first = sdist.normal(tar_of(files, 5, "me", 0o664), 1_700_000_000)
    second = sdist.normal(tar_of(dict(reversed(files.items())), 6, "you", 0o640), 1_700_000_000)
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert [(m.name, m.mtime, m.mode, m.uname) for m in tar] == [
            ("a/a", 1_700_000_000, 0o644, ""),
            ("a/b", 1_700_000_000, 0o644, ""),
        ]
        member = tar.extractfile("a/b")
        assert member is not None
        assert member.read() == b"one"


def root_test(**changed: Any) -> check.RootTest:
    """Return a successful test in a root, with the given changes."""
    output = {
        "run": ["all   95.9", "digest   0123456789ab"],
        "inspect": [f"0123456789ab{'0' * 52}  records.arrows", f" {check.PNG}", "1000 run.png"],
        "golden": ["digest   aabbccddeeff"],
    }
    seconds = {"install": 12.0, "run": 6.0}
    return check.RootTest(BARE_ROOTS[0], "absent", seconds | changed.pop("seconds", {}), output | changed, status=0)


GOLDEN = {"aabbccddeeff0011"}


def test_a_correct_installation_has_no_problem() -> None:
    assert root_test().problems("0123456789ab", GOLDEN) == []
    assert root_test().wall_seconds == 18.0


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"seconds": {"run": 49.0}}, "61 s, the limit is 60 s"),
        ({"run": ["digest   0123456789ab"]}, "no table"),
        ({"inspect": [f"0123456789ab{'0' * 52}"]}, "no picture"),
        ({"run": ["all 1", "digest   ffffffffffff"]}, "printed digest ffffffffffff"),
        ({"run": ["all 1"]}, "printed digest missing"),
        ({"golden": ["digest   ffff"]}, "golden run: ffff"),
        ({"golden": []}, "golden run: no digest"),
    ],
)
def test_errors_in_a_root_are_named(changed: dict[str, Any], problem: str) -> None:
    problems = root_test(**changed).problems("0123456789ab", GOLDEN)
    assert any(line.startswith(problem) for line in problems), problems


def test_a_failed_command_in_a_root_is_quoted() -> None:
    failed = root_test(report=["no charts"])
    failed.status = 3
    assert failed.problems("", set()) == ["report: exit status 3", "no charts"]


def test_the_wheels_of_a_root_are_those_that_its_pip_takes() -> None:
    tags = {root.name: root.platforms for root in BARE_ROOTS}
    assert "musllinux_1_2_x86_64" in tags["alpine-like"]
    assert not any("many" in tag for tag in tags["alpine-like"])
    assert "manylinux2014_x86_64" in tags["debian-12"]


def test_requirements_of_a_wheel_exclude_extras(tmp_path: Path) -> None:
    metadata = 'Name: a\nRequires-Dist: rich>=13\nRequires-Dist: numpy>=1.26\nRequires-Dist: dask; extra == "dask"\n'
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a-1.dist-info/METADATA", metadata)
    assert wheels.needed(tmp_path / "a.whl") == ["numpy>=1.26", "rich>=13"]


def test_the_commit_of_a_release_is_that_before_its_changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a release could not be repeated from the commit that has its section."""

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    monkeypatch.setattr(prebuilt, "of_front", lambda: None)
    monkeypatch.setattr(prebuilt.resources, "DATA", tmp_path / "src/hourglass/data")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    git("init", "-q")
    for name, text in (("code", "1"), ("CHANGELOG.md", "2")):
        (tmp_path / name).write_text(text)
        git("add", name)
        git("commit", "-qm", name, f"--date=2026-01-0{text}T00:00:00Z")
    first = git("log", "-1", "--format=%h %ct", "--abbrev=12", "HEAD^").split()
    (tmp_path / "CHANGELOG.md").write_text("3")
    assert [prebuilt.commit(), str(wheel.commit_time(tmp_path))] == first
    (tmp_path / "code").write_text("4")
    assert prebuilt.commit() == f"{first[0]}+changes"
