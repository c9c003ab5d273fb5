# SPDX-License-Identifier: Apache-2.0
"""The base of a plan's parts, and the types of single values. The agent's checks are in `plan_values.rs`."""

from dataclasses import dataclass
from ipaddress import ip_address, ip_interface
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PAYLOAD_MAX: Final = 65_507
"""The largest payload of an IPv4 packet with an eight-byte header."""


@dataclass(frozen=True)
class AgentType:
    """The Rust type of a value, and the function that checks it; "" if the type is enough."""

    type: str
    check: str = ""


def _address(text: str) -> str:
    return _canonical(text, str(ip_address(text)))


def _interface(text: str) -> str:
    return _canonical(text, str(ip_interface(text)))


def _canonical(text: str, printed: str) -> str:
    """Return the text if it is the canonical form of the address, without a zone: equal addresses are equal texts."""
    if text != printed or "%" in text:
        raise ValueError(f"{text} is not the canonical form of this address; write {printed}")
    return text


Ns = Annotated[int, Field(ge=0, lt=2**63), AgentType("i64", "ns")]
Positive = Annotated[int, Field(ge=1, lt=2**63), AgentType("i64", "positive")]
Size = Annotated[int, Field(ge=1, lt=2**63), AgentType("u64", "size")]
"""A number of bytes."""
U16 = Annotated[int, Field(ge=0, lt=2**16), AgentType("u16")]
U32 = Annotated[int, Field(ge=0, lt=2**32), AgentType("u32")]
U64 = Annotated[int, Field(ge=0, lt=2**64), AgentType("u64")]
Dscp = Annotated[int, Field(ge=0, lt=64), AgentType("u8", "dscp")]
Ecn = Literal["not_ect", "ect1", "ect0"]
"""The sender's ECN field (RFC 3168, RFC 9331)."""
Bps = Annotated[int, Field(ge=0, lt=2**63), AgentType("i64", "ns")]
Payload = Annotated[int, Field(ge=0, le=PAYLOAD_MAX), AgentType("usize", "payload")]
Address = Annotated[str, AfterValidator(_address), AgentType("IpAddr", "address")]
"""An IP address, without a prefix length."""
Interface = Annotated[str, AfterValidator(_interface), AgentType("String", "interface")]
"""An IP address with its prefix length."""
Mac = Annotated[str, Field(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"), AgentType("String", "mac")]
Handle = Annotated[str, Field(pattern=r"^[0-9a-f]{1,4}:[0-9a-f]{0,4}$"), AgentType("String", "handle")]
"""The handle of a qdisc, `10:`, or of a class, `1:1`."""
FileName = Annotated[str, Field(pattern=r"^[^/]+$"), AgentType("String", "file_name")]


class PlanPart(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Writes(PlanPart):
    """The writes of an application: at the start of its connection and every `interval_ns` after it, the bytes that
    `rate_bps` gives until the next write. Fractions of a byte carry over. Data that finds the socket's buffer full
    waits, and so does the data after it: no byte is lost."""

    rate_bps: Positive
    interval_ns: Positive
