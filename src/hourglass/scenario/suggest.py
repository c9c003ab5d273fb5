# SPDX-License-Identifier: Apache-2.0
"""Did you mean …?"""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: object, names: Iterable[str]) -> str:
    """'Did you mean "cubic"? ' if a name is near the word, else nothing. Case does not count."""
    if not isinstance(word, str) or len(word) > 64:
        return ""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f'Did you mean "{by_lower[near[0]]}"? ' if near else ""
