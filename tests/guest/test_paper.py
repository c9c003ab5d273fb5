# SPDX-License-Identifier: Apache-2.0
"""One figure of a paper as the command makes it: runs, picture, verdicts, pages."""

from pathlib import Path

import pytest
from plots.look import assert_drawn

from hourglass.cli import paper

pytestmark = pytest.mark.guest


def test_a_figure_is_run_drawn_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper.run_papers(["A-4"], True, None, tmp_path, None, tmp_path / "pages")
    told = capsys.readouterr().out
    assert told.count("  holds  ") == 3
    assert_drawn(tmp_path / "A-4.png")
    page = (tmp_path / "paper-a.md").read_text()
    assert page.count("| holds |") == 3
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"paper-a.md", "A-4.png"}
    assert "data:image/png;base64" in (tmp_path / "report.html").read_text()
    assert len(list((tmp_path / "runs").glob("*"))) == 4
