# SPDX-License-Identifier: Apache-2.0
"""Vega, Vega-Lite and vega-embed as one script. Putting them together takes seconds, so it is kept, by its version."""

import contextlib
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hourglass.files import replacing


def text(folder: Path | None) -> str:
    """The script, ready to stand in a script element; from `folder` if it is there, and there afterwards."""
    if folder is None:
        return _bundle()
    place = folder / f"vega-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError):
        return place.read_text("utf-8")
    made = _bundle()
    with contextlib.suppress(OSError):  # a cache that cannot be written is none
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(place) as fresh:
            fresh.write_text(made, "utf-8")
    return made


@cache
def _bundle() -> str:
    import vl_convert

    made = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub knows no default
    return re.sub(r"</(?=script)", r"<\\/", made, flags=re.IGNORECASE)
