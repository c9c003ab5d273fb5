# SPDX-License-Identifier: Apache-2.0
"""What the parts of a plan are made of: their base, and the types of single values. The agent's `plan_values.rs` is
the other end."""

from ipaddress import ip_address, ip_interface
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PAYLOAD_MAX: Final = 65_507
"""The largest payload of an IPv4 packet with an eight-byte header."""


def _address(text: str) -> str:
    return _canonical(text, str(ip_address(text)))


def _interface(text: str) -> str:
    return _canonical(text, str(ip_interface(text)))


def _canonical(text: str, printed: str) -> str:
    """Equal addresses are equal texts, and they lie in no zone."""
    if text != printed or "%" in text:
        raise ValueError(f"{text} is not how this address is written")
    return text


Ns = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[int, Field(ge=1, lt=2**63)]
U16 = Annotated[int, Field(ge=0, lt=2**16)]
U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**64)]
Dscp = Annotated[int, Field(ge=0, lt=64)]
Ecn = Literal["not_ect", "ect1", "ect0"]
"""What a sender writes into the ECN field (RFC 3168, RFC 9331)."""
Bps = Annotated[int, Field(ge=0, lt=2**63)]
Payload = Annotated[int, Field(ge=0, le=PAYLOAD_MAX)]
Address = Annotated[str, AfterValidator(_address)]
"""An IP address, without a prefix length."""
Interface = Annotated[str, AfterValidator(_interface)]
"""An IP address with its prefix length."""
FileName = Annotated[str, Field(pattern=r"^[^/]+$")]


class Part(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Writes(Part):
    """What an application writes: at its connection's beginning, and at each `interval_ns` after it, what `rate_bps`
    comes to up to the next, in whole bytes of the sum of all. What the socket has no room for waits, and what follows
    it: no byte is left out."""

    rate_bps: Positive
    interval_ns: Positive
