# SPDX-License-Identifier: Apache-2.0
"""The capabilities of an engine. A plan depends on capabilities, never on an engine."""

from dataclasses import dataclass
from typing import Final, Literal

VIRTUAL: Final = "virtual"
"""The default engine."""


@dataclass(frozen=True)
class Capabilities:
    """The abilities that a plan may rely on."""

    nic: Literal["wire", "veth", "real"]
    """The kind of a link: NICs of the `wire` driver, with rate, delay and impairments; a veth pair, without them; or a
    real cable between real machines, which the link's keys describe."""
    own_kernel: bool
    """The kernel serves this run only, so the plan may also write settings of the whole kernel."""
    virtual_time: bool
    """Time stands still while code runs: equal plans give equal records."""
    radios: bool
    """Wi-Fi cells."""
    programs: bool
    """Programs from custom root file systems."""
    captures: bool
    """Captures of frames on the cable or in the air."""
    layers: bool
    """The time of each packet by layer: the tables of the packet probe."""
