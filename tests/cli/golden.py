# SPDX-License-Identifier: Apache-2.0
"""Golden text: the expected tables, for people to read. `UPDATE_GOLDEN=1 pytest tests/cli` writes it."""

import io
import os
from pathlib import Path

from rich.console import Console, RenderableType

FOLDER = Path(__file__).parent / "golden"
WIDTH = 80


def drawn(*parts: RenderableType, width: int = WIDTH) -> str:
    """Return the parts as plain text of 80 columns, without blanks at the lines' ends."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    for part in parts:
        console.print(part)
    text = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def check(name: str, text: str) -> None:
    """Compare `text` with golden/NAME."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
