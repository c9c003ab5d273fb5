# SPDX-License-Identifier: Apache-2.0
"""`python -m hourglass.contract [--check]`, at the root of a checkout: writes the generated files by `generators/`.

With `--check` it writes nothing. It lists the stale files and exits with status 1 if there are any.
"""

import runpy
from pathlib import Path

if not Path("generators/__main__.py").is_file():
    raise SystemExit("usage, at the root of a checkout: python -m hourglass.contract [--check]")
runpy.run_module("generators", run_name="__main__")
