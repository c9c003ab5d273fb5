# SPDX-License-Identifier: Apache-2.0
"""Recorded pages say when they were made, and none is stale."""

import re
from pathlib import Path

import pytest

from hourglass.contract.kernels import DEFAULT, TESTED_RELEASES
from papers.__main__ import stamped
from tests import debian_programs

from . import recorded

STALE = {
    "papers/paper-a": "its study has changed",  # one flow and four, contrasts; 173 runs of a seed
}
"""Pages that wait for their runs, and why."""


@pytest.mark.parametrize("page", recorded.PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_no_other_recorded_page_is_stale(page: Path) -> None:
    reason = STALE.get(f"{page.parent.name}/{page.stem}", "")
    assert recorded.staleness(page) == reason, "see tests/docs/recorded.py"


def test_the_table_of_debians_programs_is_current() -> None:
    page = debian_programs.PAGE.read_text()
    assert debian_programs.stamp(TESTED_RELEASES[DEFAULT]) in page, "make debian"
    files = debian_programs.files() + debian_programs.files(folder=debian_programs.FOLDER / "failing")
    assert re.findall(r"^\| \[(\S+)\]", page, re.MULTILINE) == [file.stem for file in files]


STUDY = 'name = "small"\nseeds = {seeds}\n[[part]]\nscenario = "testbed.toml"\n[[part]]\nuse = "other.part"\n'
PAGE = "<!-- SPDX -->\n# Study small\n\nMade by `hourglass study small --kernel 6.1` (Linux 6.1, 15 runs).\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current page of a study, which takes a part of another one and names a testbed."""
    monkeypatch.setattr(recorded, "ROOT", tmp_path)
    monkeypatch.setattr(recorded, "STUDIES", tmp_path)
    (tmp_path / "small.toml").write_text(STUDY.format(seeds=1))
    (tmp_path / "other.toml").write_text('scenario = "L100M"\n')
    (tmp_path / "testbed.toml").write_text("[test]\nlength = 1\n")
    (page := tmp_path / "small.md").write_text(PAGE)
    assert recorded.staleness(page) == "has no stamp"
    page.write_text(recorded.stamped(page, "0123456789abcdef"))
    assert recorded.staleness(page) == ""
    return page


def test_a_stamp_is_below_the_title_and_replaces_an_older_one(page: Path) -> None:
    page.write_text(recorded.stamped(page, "fedcba9876543210"))
    lines = page.read_text().splitlines()
    assert lines[1:3] == ["# Study small", ""]
    assert lines[3].startswith("Recorded at commit fedcba98 with Linux 6.1.")
    assert "\n".join([*lines[:2], *lines[4:]]) + "\n" == PAGE


@pytest.mark.parametrize(
    ("name", "text"),
    [("small.toml", STUDY.format(seeds=2)), ("other.toml", 'scenario = "R100M"\n'), ("testbed.toml", "[test]\n")],
)
def test_a_page_is_stale_after_a_change_of_its_files(page: Path, name: str, text: str) -> None:
    (page.parent / name).write_text(f'# a comment\nabout = "a text"\n{(page.parent / name).read_text()}')
    assert recorded.staleness(page) == ""
    (page.parent / name).write_text(text)
    assert recorded.staleness(page) == "its study has changed"


def test_a_page_is_stale_if_its_kernel_is_no_longer_tested(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "TESTED_RELEASES", {"6.1": "6.1.999"})
    assert recorded.staleness(page).endswith("is no longer a tested release")


CURRENT = [page for page in recorded.PAGES if page.parent.name == "papers" and f"papers/{page.stem}" not in STALE]


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: page.stem)
def test_papers_write_the_stamp_of_their_pages(page: Path, tmp_path: Path) -> None:
    stamp = recorded.STAMP.search(page.read_text())
    assert stamp is not None
    (bare := tmp_path / page.name).write_text(recorded.STAMP.sub("", page.read_text()))
    quick = stamp["seeds"] == "1"
    assert stamped(bare, stamp["commit"], recorded.TESTED_RELEASES, quick) == page.read_text()
    assert "seed 1;" in stamped(bare, stamp["commit"], recorded.TESTED_RELEASES, quick=True)
