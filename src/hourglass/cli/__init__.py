# SPDX-License-Identifier: Apache-2.0
"""Implement the command line: parse, call, print. This package has no arithmetic and knows nothing of scenarios or
kernels.

`commands` lists the commands. The module of each declares it and carries it out; it is imported when the command is
called, so `hourglass --help` is fast. `tables` lays out the output, `progress` shows the progress, `exit_status` maps
every error to a clear line and an exit status.
"""

import atexit
import os
import sys
from collections.abc import Sequence

from hourglass.cli.exit_status import guarded
from hourglass.cli.startup import collect_cycles_rarely


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status. Without arguments, use those of the program `hourglass`."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # the search for plugins takes 30 ms
    if arguments is not None:
        sys.exit(guarded(list(arguments)))
    collect_cycles_rarely()
    ended: list[int] = []
    atexit.register(leave, ended)  # registered first, so called last
    ended.append(guarded(sys.argv[1:]))
    sys.exit(ended[0])


def leave(ended: list[int]) -> None:
    """End the process with its status, without the teardown of modules, which takes 0.15 s."""
    if ended:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # None if it was closed before the start
                stream.flush()
        os._exit(ended[0])
