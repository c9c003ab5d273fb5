# SPDX-License-Identifier: Apache-2.0
"""Two sets of capabilities: all there are, and those of veth pairs on a kernel that others use too."""

from hourglass.contract.capabilities import Capabilities

ALL = Capabilities(
    nic="wire", own_kernel=True, virtual_time=True, radios=True, programs=True, captures=True, layers=True
)
VETH = Capabilities(
    nic="veth", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
)  # fmt: skip
