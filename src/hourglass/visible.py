# SPDX-License-Identifier: Apache-2.0
"""Make untrusted text safe for a terminal: characters that move the cursor, set the title or hide text become
escapes."""

import re

_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_DIRECTION = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that change the order of the text, and line ends that only some programs recognise."""

_HIDDEN = re.compile(f"[{_CONTROL}{_DIRECTION}\ud800-\udfff]")
_STYLE = re.compile(r"(\x1b\[(?:[0-4]|3[1-7]|9[0-7])?(?:;(?:[0-4]|3[1-7]|9[0-7]))*m)")
"""Colours and weights as `rich` writes them, without those that hide text."""


def visible(text: str) -> str:
    """Return the text with its control characters as `\\x1b`. Tabs and line ends stay."""
    return _HIDDEN.sub(_escaped, text)


def styled(text: str) -> str:
    """Return the same for text with Hourglass's colours, which stay."""
    return "".join(part if number % 2 else visible(part) for number, part in enumerate(_STYLE.split(text)))


def visible_json(text: str) -> str:
    """Return the same JSON values with their control characters as `\\u001b`."""
    return _HIDDEN.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)


def _escaped(letter: "re.Match[str]") -> str:
    code = ord(letter[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
