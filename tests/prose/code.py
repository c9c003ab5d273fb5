# SPDX-License-Identifier: Apache-2.0
"""The prose of code: comments, docstrings and the texts that users read."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

NATIVE_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
"""Comments and strings of Rust, C, JavaScript and CSS."""
_BREAK = re.compile(r"\s*\n\s*(?:\*|//[/!]?|#)?\s*")
"""The end of a line inside a comment, and the sign with which the next line begins."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield comments and strings of a file, each on one line, with the line of the file where it begins. Files
    without a grammar here, such as TOML, are all text."""
    text = path.read_text()
    if path.suffix == ".py":
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        parts = [(token.start[0], token.string) for token in tokens if token.type in kinds]
    elif path.suffix in {".rs", ".c", ".h", ".js", ".css"}:
        parts = [(text.count("\n", 0, match.start()) + 1, match[0]) for match in NATIVE_TEXT.finditer(text)]
    else:
        parts = list(enumerate(text.splitlines(), 1))
    for line, part in parts:
        yield line, _BREAK.sub(" ", part).strip("\"'#/* ")
