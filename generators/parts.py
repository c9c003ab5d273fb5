# SPDX-License-Identifier: Apache-2.0
"""Replaces a generated part of a file, between the comments `generated: NAME` and `end`."""

from pathlib import Path

COMMENTS = {".md": "<!-- {} -->", ".css": "/* {} */"}


def with_part(path: Path, part: str, content: str) -> str:
    """Return the file's text with this content as its part. Raises SystemExit if the file lacks the comments."""
    comment = COMMENTS[path.suffix]
    before, begin_mark, remainder = path.read_text().partition(comment.format(f"generated: {part}") + "\n")
    _, end_mark, after = remainder.partition(comment.format("end"))
    if not (begin_mark and end_mark):
        raise SystemExit(f"{path}: lacks the comment 'generated: {part}' or its 'end'; restore both")
    return f"{before}{begin_mark}{content}{end_mark}{after}"
