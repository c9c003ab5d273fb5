# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.docs [--update]`: plays the pages; says what is stale, or writes it anew.

Run it after whatever changes an output or a record, and read the difference. With `--pictures` the pages' pictures are
replaced by those drawn. What it cannot write (a command that fails) it says; the exit status is then 1.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from .pages import PAGES, pieces
from .play import Finding, Play


def main(words: list[str]) -> int:
    if set(words) - {"--update", "--pictures"}:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hourglass-docs-") as name:
        findings = Play(Path(name)).all()
        if "--pictures" in words:
            _copy(Path(name))
    for finding in findings:
        print(f"{finding.piece.place}: {finding.about}", end="\n\n")
    if "--update" not in words:
        return 1 if findings else 0
    for page in PAGES:
        _rewrite(page, [one for one in findings if one.piece.page == page and one.fresh is not None])
    return 1 if any(finding.fresh is None for finding in findings) else 0


def _rewrite(page: Path, findings: list[Finding]) -> None:
    text = page.read_text()
    for one in sorted(findings, key=lambda one: one.piece.match.start(one.group), reverse=True):
        start, end = one.piece.match.span(one.group)
        text = text[:start] + str(one.fresh) + text[end:]
    page.write_text(text)


def _copy(folder: Path) -> None:
    for page in PAGES:
        for piece in pieces(page):
            if piece.kind == "picture":
                shutil.copyfile(folder / piece.match["drawn"], page.parent / piece.match["picture"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
