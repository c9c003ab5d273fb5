# SPDX-License-Identifier: Apache-2.0
"""Write the CHANGELOG's section of a release: the text of "Unreleased", and the artefacts with their digests."""

import re
from datetime import date
from pathlib import Path

from hourglass.errors import HourglassError
from hourglass.files import sha256

HEADING = "## Unreleased\n"
ARTEFACTS = "### Artefacts"


def section(text: str, version: str) -> str | None:
    """Return the section of a version without its heading, or None."""
    match = re.search(rf"^## {re.escape(version)} .*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else None


def released(text: str, version: str, day: date, artefacts: list[Path]) -> str:
    """Return the CHANGELOG with the artefacts in the version's section. Without this section, "Unreleased" becomes it.
    Raises HourglassError if the section is empty, or has artefacts already."""
    if section(text, version) is None:
        text = text.replace(HEADING, f"{HEADING}\n## {version} ({day.isoformat()})\n", 1)
    body = section(text, version) or ""
    if not body.strip():
        raise HourglassError('CHANGELOG.md has nothing under "## Unreleased"')
    if ARTEFACTS in body:
        raise HourglassError(
            f"CHANGELOG.md has artefacts of {version}; to fix: set the next version in src/hourglass/__init__.py"
        )
    return text.replace(body, "\n".join([body.rstrip(), "", ARTEFACTS, "", *listed(artefacts), "", ""]), 1)


def listed(artefacts: list[Path]) -> list[str]:
    """Return a table of files, sizes and digests."""
    rows = [f"| `{path.name}` | {path.stat().st_size / 1e6:.1f} MB | `{sha256(path)}` |" for path in artefacts]
    return ["| file | size | SHA-256 |", "|---|---|---|", *rows]
