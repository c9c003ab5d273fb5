# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.docs [--update] [--pictures] [PAGE…]`: plays pages, reports what is stale, or rewrites it.

Run it after every change of an output or a record, and read the difference. PAGE, as `docs/how-to/wifi.md`, plays this
page and those that it needs. `--pictures` replaces the pages' pictures with the new ones. The exit status is 1 if a
piece is stale, or with `--update` if a person must fix it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from .pages import PAGES, ROOT, pieces, required
from .play import Finding, Play

OPTIONS = {"--update", "--pictures"}


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    selected = [ROOT / name for name in arguments if name not in OPTIONS]
    if not set(selected) <= set(PAGES):
        print(__doc__, file=sys.stderr)
        return 2
    needed = {page for name in selected for page in required(name)}
    pages = [page for page in PAGES if page in needed] or PAGES
    with tempfile.TemporaryDirectory(prefix="hourglass-docs-") as name:
        findings = Play(Path(name), pages).all()
        if "--pictures" in arguments:
            _copy(Path(name), pages)
    for finding in findings:
        print(f"{finding.piece.position}: {finding.about}", end="\n\n")
    if "--update" not in arguments:
        return 1 if findings else 0
    for page in {finding.piece.page for finding in findings}:
        _rewrite(page, [finding for finding in findings if finding.piece.page == page and finding.fresh is not None])
    return 1 if any(finding.fresh is None for finding in findings) else 0


def _rewrite(page: Path, findings: list[Finding]) -> None:
    text = page.read_text()
    for finding in sorted(findings, key=lambda finding: finding.piece.start, reverse=True):
        text = text[: finding.piece.start] + str(finding.fresh) + text[finding.piece.end :]
    page.write_text(text)


def _copy(folder: Path, pages: list[Path]) -> None:
    for page in pages:
        for piece in pieces(page):
            if piece.kind == "picture":
                shutil.copyfile(folder / piece.details["from"], page.parent / piece.details["file"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
