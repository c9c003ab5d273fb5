# SPDX-License-Identifier: Apache-2.0
"""The command line: parses, calls, prints. Holds no arithmetic and no knowledge of scenarios or kernels.

`app` declares the commands, one file of the same name does each; `tables` lays out what they print, `progress` shows
what goes on, `errors` maps every error to one clear line and an exit status. Imports are made inside the commands, so
that `hourglass --help` does not wait for them.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence

from hourglass.cli.errors import guarded


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its status. Without arguments, as the program `hourglass` does with its own."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for some in every package: 30 ms
    if arguments is not None:
        sys.exit(guarded(list(arguments)))
    look_seldom_for_cycles()
    ended: list[int] = []
    atexit.register(leave, ended)  # the first that is registered is the last that is called
    ended.append(guarded(sys.argv[1:]))
    sys.exit(ended[0])


def look_seldom_for_cycles() -> None:
    """Nearly nothing of a command's is in cycles of references, for which each import would look: 0.1 s."""
    gc.set_threshold(500_000)


def leave(ended: list[int]) -> None:
    """Ends the process with its status without taking apart what was imported, which takes 0.15 s."""
    if ended:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # it was closed before we began
                stream.flush()
        os._exit(ended[0])
