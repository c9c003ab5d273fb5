# SPDX-License-Identifier: Apache-2.0
"""The command line: parses, calls, prints. Holds no arithmetic and no knowledge of scenarios or kernels.

`app` declares the commands, one file of the same name does each; `tables` lays out what they print, `progress` shows
what goes on, `errors` maps every error to one clear line and an exit status. Imports are made inside the commands, so
that `hourglass --help` does not wait for them.
"""

import os
import sys
from collections.abc import Sequence

from hourglass.cli.errors import guarded


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of `hourglass`: runs the command and exits with its status."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for some in every package: 30 ms
    sys.exit(guarded(list(sys.argv[1:] if arguments is None else arguments)))
