# SPDX-License-Identifier: Apache-2.0
"""`python -m website [--out DIR] [--without-runs]`: builds the documentation site. Warnings are errors.

The site is in DIR/html and works offline. DIR/runs keeps the runs of the gallery for the next build.
"""

import argparse
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from hourglass.errors import program
from website import gallery

ROOT = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    """Build the site and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m website", description="Builds the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/docs", help="folder of the site and the runs")
    parser.add_argument("--without-runs", action="store_true", help="leave out the reports of the gallery")
    options = parser.parse_args(arguments)
    words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(options.out / "doctrees")]
    if not options.without_runs:
        extra = options.out / "extra"
        gallery.build(options.out / "runs", extra / "gallery")
        words += ["-D", f"gallery={extra}", "-D", f"html_extra_path={extra}"]
    status = build_main([*words, str(ROOT / "docs"), str(options.out / "html")])
    if status == 0:
        print(f"the site: {options.out / 'html/index.html'}")
    return int(status)


if __name__ == "__main__":
    program(lambda: main(sys.argv[1:]))
