# SPDX-License-Identifier: Apache-2.0
"""Sets of capabilities: all, those of veth pairs on a shared kernel, and those of remote machines."""

from dataclasses import replace

from hourglass.contract.capabilities import Capabilities

ALL = Capabilities(
    nic="wire", own_kernel=True, virtual_time=True, radios=True, programs=True, captures=True, layers=True
)
VETH = Capabilities(
    nic="veth", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
)  # fmt: skip
REAL = replace(VETH, nic="real")
