# SPDX-License-Identifier: Apache-2.0
"""Which real things play a node and its devices: the host that ssh reaches, and its interfaces."""

import re
from typing import Annotated

from pydantic import PlainValidator

from hourglass.scenario.kinds import Kind, pattern
from hourglass.scenario.values import DeviceName

_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,14}", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)
_ALLOWED = 'a table of devices and the interfaces that play them, like { eth0 = "enp3s0" }'

HostName = Annotated[
    str,
    *pattern(
        r"(ssh://)?([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9\[][A-Za-z0-9_.:%\[\]-]{0,252}",
        'what ssh takes as a destination, like "user@router", or a name of ~/.ssh/config; never a password',
    ),
]


def _interfaces(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(_ALLOWED)
    for device, interface in value.items():
        if not _DEVICE.fullmatch(device):
            raise ValueError(f"{_ALLOWED}; {device[:80]!r} is no name of a device")
        if not isinstance(interface, str) or not _INTERFACE.fullmatch(interface) or interface == "lo":
            raise ValueError(f"{_ALLOWED}; {device} is played by an interface as `ip link` names it")
    twice = [one for one in value.values() if list(value.values()).count(one) > 1]
    if twice:
        raise ValueError(f"each interface once; {twice[0]} is there twice")
    return {device: value[device] for device in sorted(value)}


Interfaces = Annotated[
    dict[DeviceName, str],
    PlainValidator(_interfaces),
    Kind(
        "table",
        schema={"type": "object", "additionalProperties": {"type": "string", "pattern": f"^{_INTERFACE.pattern}$"}},
    ),
]
