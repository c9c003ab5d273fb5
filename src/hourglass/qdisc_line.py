# SPDX-License-Identifier: Apache-2.0
"""A line of tc as a qdisc: its rate, its delay and its length, with tc's defaults.

A shaper counts a packet with what the link layer adds. Three kinds of options say so: `stab` before a qdisc's kind, a
table of sizes (tc-stab(8)); `overhead`, `mpu` and `linklayer` of tbf and of HTB's classes; those of cake.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from hourglass.tc_words import rate_bps, size_bytes, time_us, whole_number

FRAME_BYTES = 1514
"""A full Ethernet frame as a qdisc counts it."""
ETHERNET_HEADER = 14
STAB_OPTIONS = ("linklayer", "overhead", "mpu", "mtu", "tsize")
RATES = {
    "cake": ("bandwidth",),
    "tbf": ("rate",),
    "netem": ("rate",),
    "fq": ("maxrate",),
    "htb class": ("ceil", "rate"),
}
"""The options with a qdisc's rate; the first that a line has counts."""
ABBREVIATED = {
    "netem": ("limit", "latency", "delay", "loss", "drop", "ecn", "reorder", "corrupt", "gap", "duplicate",
              "distribution", "rate", "slot"),
    "tbf": ("limit", "latency", "burst", "buffer", "maxburst", "mtu", "minburst", "mpu", "rate", "peakrate",
            "overhead", "linklayer"),
}  # fmt: skip
"""Options whose beginnings tc reads as the first that begins so."""
AQM_TARGET_US = {"codel": 5000, "fq_codel": 5000, "cake": 5000, "pie": 15000, "fq_pie": 15000}


class Limit(NamedTuple):
    """The longest queue: `size` bytes, or packets."""

    size: int
    in_bytes: bool = False


class _LimitWord(NamedTuple):
    read: Callable[[str], int | None]
    default: int | None
    in_bytes: bool = False


_LIMITS = {
    "pfifo": _LimitWord(size_bytes, 1000), "pfifo_fast": _LimitWord(size_bytes, 1000),
    "netem": _LimitWord(size_bytes, 1000), "bfifo": _LimitWord(size_bytes, None, True),
    "tbf": _LimitWord(size_bytes, None, True), "red": _LimitWord(size_bytes, None, True),
    "codel": _LimitWord(whole_number, 1000), "fq_codel": _LimitWord(whole_number, 10240),
    "pie": _LimitWord(whole_number, 1000), "fq_pie": _LimitWord(whole_number, 10240),
    "fq": _LimitWord(whole_number, 10000), "sfq": _LimitWord(whole_number, 127),
}  # fmt: skip
"""How tc reads a kind's limit, and the default; those of pfifo and pfifo_fast are the device's txqueuelen."""

_CAKE_SIZES: Mapping[str, tuple[int, int, str]] = {
    "ipoa-vcmux": (8, 0, "atm"), "ipoa-llcsnap": (16, 0, "atm"), "bridged-vcmux": (24, 0, "atm"),
    "bridged-llcsnap": (32, 0, "atm"), "pppoa-vcmux": (10, 0, "atm"), "pppoa-llc": (14, 0, "atm"),
    "pppoe-vcmux": (32, 0, "atm"), "pppoe-llcsnap": (40, 0, "atm"), "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"), "ethernet": (38, 84, ""), "ether-vlan": (4, 0, ""), "docsis": (18, 64, "noatm"),
}  # fmt: skip
"""Words of cake for link layers: what each adds to a packet, its shortest packet, and its cells (tc-cake(8))."""
_CAKE_CELLS = ("atm", "noatm", "ptm")


class QdiscLine:
    """A qdisc of a line like "stab linklayer atm overhead -4 tbf rate 840kbit latency 300ms burst 1696", or a class
    ("htb class ceil 1gbit"). `line_bps`: the rate of its device, of which tc takes percentages."""

    def __init__(self, line: str, line_bps: int | None = None) -> None:
        words = line.split()
        self.line_bps = line_bps
        self.stab: dict[str, str] | None = None
        if words and words[0] == "stab":
            count = 1
            while words[count : count + 1] and words[count] in STAB_OPTIONS:
                count += 2
            self.stab = dict(zip(words[1:count:2], words[2:count:2], strict=False))
            words = words[count:]
        length = 2 if words[1:2] == ["class"] else 1
        self.kind, self.words = " ".join(words[:length]), words[length:]

    def option(self, *names: str) -> str:
        """Return the word after an option, given by any of its names; the last one counts, as for tc. "": none."""
        for index in reversed(range(len(self.words) - 1)):
            if self._name(self.words[index]) in names:
                return self.words[index + 1]
        return ""

    def _name(self, word: str) -> str:
        names = ABBREVIATED.get(self.kind, ())
        return word if word in names else next((name for name in names if name.startswith(word)), word)

    @property
    def rate_bps(self) -> int | None:
        """Return the rate in bit/s, of packets with what their link layer adds; None without one."""
        rates = (rate_bps(self.option(word), self.line_bps) for word in RATES.get(self.kind, ()))
        return next((rate for rate in rates if rate), None)

    @property
    def frame_bps(self) -> int | None:
        """Return the rate at which it sends full frames, as a qdisc without these options counts them."""
        return None if self.rate_bps is None else self.rate_bps * FRAME_BYTES // self.counted_bytes(FRAME_BYTES)

    @property
    def delay_us(self) -> int:
        """Return netem's delay."""
        return (time_us(self.option("delay", "latency")) or 0) if self.kind == "netem" else 0

    @property
    def holds_back(self) -> bool:
        """Tell if netem sends packets later than it gets them."""
        slot = time_us(self.option("slot")) if self.kind == "netem" else None
        return self.kind == "netem" and bool(self.delay_us or slot or self.rate_bps)

    @property
    def target_us(self) -> int | None:
        """Return the delay at which an AQM aims; None for other kinds."""
        default = AQM_TARGET_US.get(self.kind)
        return default and (time_us(self.option("target")) or default)

    @cached_property
    def limit(self) -> Limit | None:
        """Return the longest queue; None without a limit."""
        word = _LIMITS.get(self.kind)
        if word is None:
            return None
        text = self.option("limit")
        size = word.read(text) if text else word.default
        if size is None and self.kind == "tbf":
            size = self._bytes_in_latency()
        return None if size is None else Limit(size, word.in_bytes)

    def _bytes_in_latency(self) -> int | None:
        """Return the limit that tc derives from tbf's latency: what comes in that time at its rate, and the burst."""
        latency_us, rate = time_us(self.option("latency")), self.rate_bps
        burst = size_bytes(self.option("burst", "buffer", "maxburst").partition("/")[0])
        if latency_us is None or rate is None or burst is None:
            return None
        return rate // 8 * latency_us // 10**6 + burst

    def counted_bytes(self, size: int) -> int:
        """Return the bytes that the qdisc counts for a packet of `size` bytes with its Ethernet header."""
        if self.stab is not None:
            size = _stab_bytes(self.stab, size)
        if self.kind == "cake":
            return self._cake_bytes(size)
        size = max(size + (whole_number(self.option("overhead")) or 0), size_bytes(self.option("mpu")) or 0)
        return _in_cells(size) if self.option("linklayer") in ("atm", "adsl") else size

    def _cake_bytes(self, size: int) -> int:
        """A packet counts from its IP header on if an overhead is set (sch_cake.c, cake_overhead)."""
        overhead: int | None = None
        shortest, cells = 0, ""
        for word, value in zip(self.words, [*self.words[1:], ""], strict=True):
            if word == "raw":
                overhead, cells = None, "noatm"
            elif word == "conservative":
                overhead, cells = 48, "atm"
            elif word == "overhead":
                overhead = _integer(value)
            elif word == "mpu":
                shortest = _integer(value)
            elif word in _CAKE_CELLS:
                cells = word
            elif word in _CAKE_SIZES:
                added, least, form = _CAKE_SIZES[word]
                overhead, shortest, cells = (overhead or 0) + added, max(shortest, least), form or cells
        size = max(size if overhead is None else size - ETHERNET_HEADER + overhead, shortest)
        return _in_cells(size) if cells == "atm" else size + -(-size // 64) if cells == "ptm" else size


def _integer(word: str) -> int:
    return int(word) if word.lstrip("-").isdecimal() else 0


def _in_cells(size: int) -> int:
    """Return the bytes of ATM cells: 53 for each 48."""
    return -(-size // 48) * 53


def _stab_bytes(stab: Mapping[str, str], size: int) -> int:
    """Return the size from a table as tc makes it (tc_core.c, tc_calc_size_table) and the kernel reads it
    (__qdisc_calculate_pkt_len)."""
    size += _integer(stab.get("overhead", ""))
    atm, shortest = stab.get("linklayer") in ("atm", "adsl"), whole_number(stab.get("mpu", "")) or 0
    if not atm and not shortest:
        return max(size, 1)
    longest, slots = (whole_number(stab.get(name, "")) or default for name, default in (("mtu", 2047), ("tsize", 512)))
    step = 1
    while longest // step > slots - 1:
        step *= 2

    def entry(number: int) -> int:
        rounded = max((number + 1) * step, shortest)
        return _in_cells(rounded) if atm else rounded

    slot = max(size - 1, 0) // step
    return entry(slot) if slot < slots else entry(slots - 1) * (slot // slots) + entry(slot % slots)
