# SPDX-License-Identifier: Apache-2.0
"""Fences with a file's name (`toml file=fetch.toml`): the name becomes the caption of the listing."""

import re
from typing import Any

NAMED = re.compile(r"^(?P<indent> *)```(?P<language>\w+) file=(?P<name>\S+)$", re.MULTILINE)


def add_captions(_app: Any, _page: str, source: list[str]) -> None:
    """Turn each named fence of a page into a listing with a caption, in place."""
    source[0] = NAMED.sub(r"\g<indent>```{code-block} \g<language>\n\g<indent>:caption: \g<name>", source[0])
