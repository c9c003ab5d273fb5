# SPDX-License-Identifier: Apache-2.0
"""Vega, Vega-Lite and vega-embed as one script.

A released wheel brings it. Elsewhere vl-convert-python, 90 MB for all that it can, puts it together, which takes
seconds: so it is kept, by its version. `python -m hourglass.report.library FILE` writes it where a wheel is made.
"""

import contextlib
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hourglass.errors import MissingError, installing
from hourglass.files import replacing
from hourglass.resources import CHARTS

MAKER = "vl-convert-python"
"""Who makes the script of its own copy."""


def source() -> str:
    """Where the script comes from. Raises MissingError."""
    return "brought by the wheel" if CHARTS.is_file() else f"made by {MAKER} {_version()}"


def text(folder: Path | None) -> str:
    """The script, ready to stand in a script element: the wheel's, else that in `folder`, where it is kept. Raises
    MissingError."""
    with contextlib.suppress(FileNotFoundError):
        return CHARTS.read_text("utf-8")
    if folder is None:
        return _bundle()
    place = folder / f"vega-{_version()}.js"
    with contextlib.suppress(OSError):
        return place.read_text("utf-8")
    made = _bundle()
    with contextlib.suppress(OSError):  # a cache that cannot be written is none
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(place) as fresh:
            fresh.write_text(made, "utf-8")
    return made


def _version() -> str:
    try:
        return version(MAKER)
    except PackageNotFoundError:
        raise MissingError(f"reports draw with Vega, which {MAKER} brings", installing(MAKER)) from None


@cache
def _bundle() -> str:
    _version()
    import vl_convert

    made = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub knows no default
    return re.sub(r"</(?=script)", r"<\\/", made, flags=re.IGNORECASE)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(_bundle(), "utf-8")
