# SPDX-License-Identifier: Apache-2.0
"""The step that tells a daemon something."""

from typing import Literal

from hourglass.contract.plan_values import Ns, Part


class TellStep(Part):
    """A line for the control socket, at `socket`, of a daemon of the node's, which has to answer OK and then to say
    `says` on its output."""

    do: Literal["tell"]
    node: str
    tool: Literal["hostapd"]
    socket: str
    line: str
    says: str
    timeout_ns: Ns
    origin: str | None
