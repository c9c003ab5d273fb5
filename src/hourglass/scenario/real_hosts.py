# SPDX-License-Identifier: Apache-2.0
"""Which real things play a node and its devices: the host that ssh reaches, and its interfaces."""

import re
from typing import Annotated

from pydantic import PlainValidator

from hourglass.scenario.value_kinds import ValueKind, pattern
from hourglass.scenario.values import DeviceName

_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,14}", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)
_ALLOWED = 'a table of devices and their interfaces, like { eth0 = "enp3s0" }'

HostName = Annotated[
    str,
    *pattern(
        r"(ssh://)?([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9\[][A-Za-z0-9_.:%\[\]-]{0,252}",
        'a destination for ssh, like "user@router", or a name of ~/.ssh/config, without a password',
    ),
]


def _interfaces(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"must be {_ALLOWED}")
    for device, interface in value.items():
        if not _DEVICE.fullmatch(device):
            raise ValueError(f"must be {_ALLOWED}; {device[:80]!r} is not a name of a device")
        if not isinstance(interface, str) or not _INTERFACE.fullmatch(interface) or interface == "lo":
            raise ValueError(f"must be {_ALLOWED}; the interface of {device} must be a name that `ip link` prints")
    duplicates = [interface for interface in value.values() if list(value.values()).count(interface) > 1]
    if duplicates:
        raise ValueError(f"must be interfaces, each only once; {duplicates[0]} occurs twice")
    return {device: value[device] for device in sorted(value)}


Interfaces = Annotated[
    dict[DeviceName, str],
    PlainValidator(_interfaces),
    ValueKind(
        "table",
        schema={"type": "object", "additionalProperties": {"type": "string", "pattern": f"^{_INTERFACE.pattern}$"}},
    ),
]
