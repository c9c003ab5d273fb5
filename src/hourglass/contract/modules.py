# SPDX-License-Identifier: Apache-2.0
"""What of a user's own is compiled into a guest's kernel: a scenario names it, the engine builds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """C sources, and what a congestion control or qdisc in them is called. `files`: (name, text); `parameters`:
    (name, value) as on the kernel's command line, which decide nothing of the build; `flags`: for the compiler."""

    name: str
    files: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
