# SPDX-License-Identifier: Apache-2.0
"""The keys of a Flent file that Hourglass reads or writes. It ignores other keys."""

from itertools import chain
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, ValidationError

NEWEST = 4
"""The version of the format that Hourglass writes. It reads this one and all older ones."""


class FlentPart(BaseModel):
    """A part of a file."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, allow_inf_nan=False)

    def to_data(self) -> dict[str, Any]:
        """Return the keys that were set, as plain data."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Point(FlentPart):
    """A sample `val` at `t`, s since 1970, in the unit of the series. Delays are in ms.

    In a TCP series, `val` is the mean over `dur`, s. For packets, `seq` is the number, and `lost` ones have no value.
    `size`: bytes of a packet; only D-ITG reports it. `bytes`: of a fetch; only Hourglass writes it. `tcp_…`: as
    reported by ss, in packets, ms and Mbit/s."""

    t: float
    val: float | None = None
    dur: float | None = None
    seq: int | None = None
    lost: bool = False
    owd_up: float | None = None
    owd_down: float | None = None
    ipdv_up: float | None = None
    ipdv_down: float | None = None
    size: int | None = None
    bytes: int | None = None
    tcp_cwnd: float | None = None
    tcp_rtt: float | None = None
    tcp_rtt_var: float | None = None
    tcp_pacing_rate: float | None = None
    tcp_delivery_rate: float | None = None


def _with_times(points: Any) -> Any:
    """Return the points that have a time. Flent ignores others."""
    if not isinstance(points, list):
        return points
    return [point for point in points if not isinstance(point, dict) or "t" in point]


Points = Annotated[list[Point], BeforeValidator(_with_times)]


class UppercaseKeys(FlentPart):
    """A table whose keys are in capitals."""

    model_config = ConfigDict(alias_generator=str.upper, populate_by_name=True)


class SeriesMeta(UppercaseKeys):
    """The metadata of a series. Other keys pass through unchanged."""

    model_config = ConfigDict(extra="allow")

    cong_control: str = ""
    tcp_retransmit: int | None = None
    computed_late: bool = False
    mean_value: float | None = None
    units: str | list[str] = ""
    raw_values: Points = Field(default_factory=list)
    """The points in files of version 1."""

    @property
    def command(self) -> str:
        """The command of the series' tool; "" if the file has none."""
        return str((self.model_extra or {}).get("COMMAND", ""))

    @property
    def is_remote(self) -> bool:
        """Return whether the tool ran on another machine, by ssh."""
        return "REMOTE_HOST" in (self.model_extra or {}) or self.command.startswith("ssh ")


class FlentQdisc(FlentPart):
    """A line of `tc qdisc show`. `params`: the words after the parent, in pairs."""

    name: str = ""
    id: str = ""
    parent: str = ""
    params: dict[str, str] = Field(default_factory=dict)

    @property
    def line(self) -> str:
        """The kind and its parameters in tc's words."""
        return " ".join((self.name, *chain.from_iterable(self.params.items())))


class Egress(FlentPart):
    """The client's device towards the server."""

    qdiscs: list[FlentQdisc] = Field(default_factory=list)


def _readable(value: Any) -> Any:
    """Return the device, or None if it has another form: no figure depends on it."""
    try:
        return Egress.model_validate(value)
    except ValidationError:
        return None


class Metadata(UppercaseKeys):
    """The metadata of the test. Lengths are in s."""

    name: str = ""
    title: str = ""
    note: str | None = None
    host: str = ""
    hosts: tuple[str, ...] = ()
    local_host: str = ""
    time: str = ""
    t0: str = ""
    length: float = 0
    total_length: float = 0
    step_size: float = 0
    test_parameters: dict[str, str] = Field(default_factory=dict)
    kernel_release: str = ""
    failed_runners: int = 0
    egress_info: Annotated[Egress | None, BeforeValidator(_readable)] = None
    hourglass: Any = None
    """The origin of a file that Hourglass exported."""
    series_meta: dict[str, SeriesMeta] = Field(default_factory=dict)


class Document(FlentPart):
    """A file. `results` has a value for each of `x_values`, s; `raw_values` has the original samples."""

    version: int = 1
    x_values: list[float] = Field(default_factory=list)
    results: dict[str, list[float | None]] = Field(default_factory=dict)
    raw_values: dict[str, Points] = Field(default_factory=dict)
    metadata: SerializeAsAny[Metadata]
