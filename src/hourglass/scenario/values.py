# SPDX-License-Identifier: Apache-2.0
"""The types of single values: how each is checked, how it is written back, and what the reference says of it.

Quantities are integers in base units (ns, bit/s, ppb, bytes) in the object and text with a suffix in its dump; times
whose key says seconds are numbers of seconds in both. A check that fails raises ValueError: what is allowed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_interface
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainSerializer, PlainValidator

from hourglass.errors import closest
from hourglass.scenario.units import RATE as RATE_QUANTITY
from hourglass.scenario.units import SHARE, SIZE, TIME, Bounds, parse_seconds, show
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, QDISCS

HOUR_NS = 3600 * 10**9
LINE_RATE = Bounds(RATE_QUANTITY, 1, 10**12)
SHAPER_RATE = Bounds(RATE_QUANTITY, 1000, 10**12)
SHAPER_BURST = Bounds(SIZE, 1600, 10**9)
STEP_RATE = Bounds(RATE_QUANTITY, 1, 10**12, zero=True)
DELAY = Bounds(TIME, 0, HOUR_NS)
INTERVAL = Bounds(TIME, 10**5, HOUR_NS, zero=True)
SHARES = Bounds(SHARE, 0, 10**9)
TSQ_TIME = Bounds(TIME, 1, 10 * 10**9)
TSQ_SIZE = Bounds(SIZE, 1, 2**31 - 1)
DAY_S = Fraction(86400)


@dataclass(frozen=True)
class Kind:
    """For the reference: what one writes, and the unit of the integer behind it."""

    type: str
    unit: str = ""


def sequence(value: object, what: str) -> list[Any]:
    """The value if it is a list, else ValueError."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"a list of {what}")
    return list(value)


def pattern(regex: str, allowed: str) -> PlainValidator:
    """Text that matches the whole pattern."""
    compiled = re.compile(regex, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(allowed)
        return value

    return PlainValidator(check)


def one_of(names: tuple[str, ...], what: str) -> Callable[[object], str]:
    """A check for one of the names, that suggests the nearest."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{closest(value, names)}{what} is one of {', '.join(names)}")
        return value

    return check


def integer(low: int, high: int, what: str) -> PlainValidator:
    """A whole number in [low, high]."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number{f' of {what}' if what else ''} from {low} to {high}")
        return value

    return PlainValidator(check)


def _single(bounds: Bounds) -> tuple[PlainValidator, PlainSerializer]:
    return PlainValidator(bounds.parse), PlainSerializer(lambda number: show(number, bounds.quantity), return_type=str)


def _both(bounds: Bounds) -> tuple[PlainValidator, PlainSerializer]:
    """One value for both directions of a link, or [a to b, b to a]."""

    def check(value: object) -> tuple[int, int]:
        values = list(value) if isinstance(value, list | tuple) else [value, value]
        try:
            there, back = (bounds.parse(one) for one in values)
        except ValueError:
            raise ValueError(f"{bounds.allowed()}; or a list of two, for the two directions") from None
        return there, back

    def write(pair: tuple[int, int]) -> str | list[str]:
        there, back = (show(number, bounds.quantity) for number in pair)
        return there if there == back else [there, back]

    return PlainValidator(check), PlainSerializer(write)


def _seconds(low: Fraction) -> PlainValidator:
    return PlainValidator(lambda value: parse_seconds(value, low, DAY_S))


Number = int | float
LIST = PlainSerializer(list)
"""Tuples are dumped as lists, in every mode."""

Seconds = Annotated[Number, _seconds(Fraction(0)), Kind("number", "s")]
PositiveSeconds = Annotated[Number, _seconds(Fraction(1, 1000)), Kind("number", "s")]

Rates = Annotated[tuple[int, int], *_both(LINE_RATE), Kind("rate, or [a to b, b to a]", "bit/s")]
Delays = Annotated[tuple[int, int], *_both(DELAY), Kind("time, or [a to b, b to a]", "ns")]
Shares = Annotated[tuple[int, int], *_both(SHARES), Kind("percentage, or [a to b, b to a]", "ppb")]
Delay = Annotated[int, *_single(DELAY), Kind("time", "ns")]
ShaperRate = Annotated[int, *_single(SHAPER_RATE), Kind("rate", "bit/s")]
ShaperBurst = Annotated[int, *_single(SHAPER_BURST), Kind("size", "B")]
Interval = Annotated[int, *_single(INTERVAL), Kind("time, 0 = off", "ns")]

ScenarioName = Annotated[
    str,
    pattern(
        r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}",
        "1 to 64 letters, digits and . _ + -, beginning with a letter or digit; it names the run's folder",
    ),
    Kind("text"),
]
KernelName = Annotated[
    str,
    pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", 'a kernel\'s name in quotes, like "6.1": letters, digits and . _ -'),
    Kind("text"),
]
NodeName = Annotated[
    str,
    pattern(r"[A-Za-z][A-Za-z0-9_-]{0,31}", "1 to 32 letters, digits, _ and -, beginning with a letter"),
    Kind("text"),
]


def _description(value: object) -> str:
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise ValueError("one line of text of at most 200 characters, without control characters")
    return value


Description = Annotated[str, PlainValidator(_description), Kind("text")]


class Place(NamedTuple):
    """A device of a node."""

    node: str
    device: str

    def __str__(self) -> str:
        return f"{self.node}:{self.device}"


_PLACE = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,31}):([A-Za-z][A-Za-z0-9_-]{0,14})", re.ASCII)
_RESERVED_DEVICES = ("lo", "all", "default")


def _place(value: object) -> Place:
    if isinstance(value, Place):
        value = str(value)
    match = _PLACE.fullmatch(value) if isinstance(value, str) else None
    if not match or match[2] in _RESERVED_DEVICES:
        raise ValueError(
            'a node and its device like "client:eth0"; a device\'s name has 1 to 15 letters, digits, _ and -, begins'
            " with a letter and is not lo, all or default"
        )
    return Place(match[1], match[2])


def _ends(value: object) -> tuple[Place, Place]:
    ends = sequence(value, "two ends")
    if len(ends) != 2:
        raise ValueError('a list of two ends, like ["client:eth0", "router:eth0"]')
    return _place(ends[0]), _place(ends[1])


End = Annotated[Place, PlainValidator(_place), PlainSerializer(str, return_type=str), Kind("NODE:DEVICE")]
Ends = Annotated[
    tuple[Place, Place],
    PlainValidator(_ends),
    PlainSerializer(lambda ends: [str(end) for end in ends]),
    Kind("[NODE:DEVICE, NODE:DEVICE]"),
]


def _places(value: object) -> tuple[Place, ...]:
    places = [_place(one) for one in sequence(value, 'devices, like ["client:eth0"]')]
    twice = next((one for index, one in enumerate(places) if one in places[:index]), None)
    if twice is not None:
        raise ValueError(f"each device once; {twice} is there twice")
    return tuple(places)


Places = Annotated[
    tuple[Place, ...],
    PlainValidator(_places),
    PlainSerializer(lambda places: [str(one) for one in places]),
    Kind("[NODE:DEVICE, …]"),
]


def _packets(value: object) -> int | str:
    if value == "all":
        return "all"
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**6:
        raise ValueError('a whole number of packets per second from 0 (none) to 1000000, or "all"')
    return value


Packets = Annotated[int | str, PlainValidator(_packets), Kind('integer or "all"', "1/s")]


def _addresses(value: object) -> tuple[str, str]:
    try:
        pair = sequence(value, "two addresses")
        one, two = (
            str(ip_interface(text)) for text in pair if isinstance(text, str) and "/" in text and "%" not in text
        )
        if len(pair) != 2:
            raise ValueError
    except ValueError:
        raise ValueError('two addresses with prefix lengths, like ["192.168.1.1/24", "192.168.1.2/24"]') from None
    return one, two


Addresses = Annotated[tuple[str, str], PlainValidator(_addresses), LIST, Kind("[ADDRESS/LENGTH, ADDRESS/LENGTH]")]

Backend = Annotated[
    Literal["load", "socket"],
    PlainValidator(one_of(("load", "socket"), "What takes the data")),
    Kind('"load" or "socket"'),
]
Cc = Annotated[str, PlainValidator(one_of(CONGESTION_CONTROLS, "A congestion control")), Kind("name")]


def _ccs(value: object) -> tuple[str, ...]:
    check = one_of(CONGESTION_CONTROLS, "A congestion control")
    return tuple(check(one) for one in ([value] if isinstance(value, str) else sequence(value, "congestion controls")))


Ccs = Annotated[tuple[str, ...], PlainValidator(_ccs), LIST, Kind("name, or list of names")]

_TC = re.compile(r"[A-Za-z0-9_.:,/%+=-]+(?: [A-Za-z0-9_.:,/%+=-]+)*", re.ASCII)


def _qdisc(value: object) -> str:
    """A qdisc's kind or its tc line. Quotes, backslashes and # would change how tc reads its batch."""
    text = " ".join(value.split(" ")).strip() if isinstance(value, str) else ""
    text = re.sub(" +", " ", text)
    if len(text) > 1000 or not _TC.fullmatch(text):
        raise ValueError(
            'a qdisc\'s kind or its whole tc line, like "fq_codel target 2ms": words of letters, digits'
            " and _ . : , / % + = -"
        )
    one_of(QDISCS, "The first word, a qdisc's kind,")(text.split(" ")[0])
    return text


Qdisc = Annotated[str, PlainValidator(_qdisc), Kind("kind or tc line")]


class Tsq(NamedTuple):
    """How much one socket may have below TCP: the kernel's rule, no limit, `amount` ns of data or `amount` bytes."""

    mode: str
    amount: int = 0


def _tsq(value: object) -> Tsq:
    if isinstance(value, str) and value in ("default", "off"):
        return Tsq(value)
    for mode, bounds in (("time", TSQ_TIME), ("size", TSQ_SIZE)):
        try:
            return Tsq(mode, bounds.parse(value))
        except ValueError:
            continue
    raise ValueError(
        '"default" (the kernel\'s rule), "off" (no limit), a time like "3ms" (of data at the pacing rate, up to 10s) or'
        ' a size like "64KiB" (up to 2 GiB - 1)'
    )


def _show_tsq(tsq: Tsq) -> str:
    return tsq.mode if tsq.mode in ("default", "off") else show(tsq.amount, TIME if tsq.mode == "time" else SIZE)


TsqLimit = Annotated[
    Tsq, PlainValidator(_tsq), PlainSerializer(_show_tsq, return_type=str), Kind('"default", "off", time or size')
]


def _gso(value: object) -> int:
    try:
        return 0 if value == "default" else TSQ_TIME.parse(value)
    except ValueError:
        raise ValueError(
            '"default" (the kernel\'s autosizing) or a time like "1ms": how much data at the pacing rate an skb holds,'
            " up to 10s"
        ) from None


Gso = Annotated[
    int,
    PlainValidator(_gso),
    PlainSerializer(lambda ns: show(ns, TIME) if ns else "default", return_type=str),
    Kind('"default" or time', "ns"),
]
