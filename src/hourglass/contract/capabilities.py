# SPDX-License-Identifier: Apache-2.0
"""What an engine can do. A plan is made for capabilities, never for an engine."""

from dataclasses import dataclass
from typing import Final, Literal

VIRTUAL: Final = "virtual"
"""The engine that is meant when none is named."""


@dataclass(frozen=True)
class Capabilities:
    """What whoever executes a plan can be asked for."""

    nic: Literal["wire", "veth", "real"]
    """What a link is made of: our driver's NICs, with rate, delay and impairments; a veth pair, with none; or a cable
    that is there, between machines that are the nodes: what its keys say of it describes it."""
    own_kernel: bool
    """The kernel is there for this run alone: settings of the whole kernel, beside those of a namespace, may be
    written."""
    virtual_time: bool
    """Time stands still while code runs: equal plans give equal records."""
    radios: bool
    """Wi-Fi cells."""
    programs: bool
    """Any programs, from roots of their own."""
    captures: bool
    """Frames as they are on the cable or in the air."""
    layers: bool
    """Where each packet spends its time: the tables that the packet probe fills."""
