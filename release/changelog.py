# SPDX-License-Identifier: Apache-2.0
"""The CHANGELOG's section of a release: what stood under "Unreleased", and the artefacts with their digests."""

import re
from datetime import date
from pathlib import Path

from hourglass.errors import HourglassError
from hourglass.files import sha256

HEADING = "## Unreleased\n"


def section(text: str, version: str) -> str | None:
    """The section of a version without its heading, or None."""
    found = re.search(rf"^## {re.escape(version)} .*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else None


def released(text: str, version: str, day: date, artefacts: list[Path]) -> str:
    """The CHANGELOG with a new section, and nothing under "Unreleased". Raises HourglassError when there is nothing to
    release, or the version has a section already."""
    if section(text, version) is not None:
        raise HourglassError(
            f"CHANGELOG.md has a section {version} already; to fix: the next one in src/hourglass/__init__.py"
        )
    before, heading, rest = text.partition(HEADING)
    body, older, others = rest.partition("\n## ")
    if not heading or not body.strip():
        raise HourglassError('CHANGELOG.md has nothing under "## Unreleased"')
    lines = [
        HEADING,
        f"## {version} ({day.isoformat()})",
        "",
        body.strip(),
        "",
        "### Artefacts",
        "",
        *listed(artefacts),
    ]
    return before + "\n".join(lines) + "\n" + older + others


def listed(artefacts: list[Path]) -> list[str]:
    """A table of files, sizes and digests."""
    rows = [f"| `{path.name}` | {path.stat().st_size / 1e6:.1f} MB | `{sha256(path)}` |" for path in artefacts]
    return ["| file | size | SHA-256 |", "|---|---|---|", *rows]
