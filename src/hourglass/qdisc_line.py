# SPDX-License-Identifier: Apache-2.0
"""Parse a qdisc's tc line: its rate, delay and limit, with tc's defaults.

A shaper can add the bytes of the link layer to each packet's size. Three groups of options set them: `stab` before the
qdisc's kind, a table of sizes (tc-stab(8)); `overhead`, `mpu` and `linklayer` of tbf and of HTB's classes; and cake's.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from hourglass.tc_words import rate_bps, size_bytes, time_us, whole_number

FRAME_BYTES = 1514
"""A full Ethernet frame as a qdisc counts it."""
ETHERNET_HEADER_BYTES = 14
DEFAULT_QDISC = "pfifo_fast"
"""The kernel's default qdisc of a new device with one queue, and of each queue below mq."""
STAB_OPTIONS = ("linklayer", "overhead", "mpu", "mtu", "tsize")
RATE_OPTIONS = {
    "cake": ("bandwidth",),
    "cake_mq": ("bandwidth",),
    "tbf": ("rate",),
    "netem": ("rate",),
    "fq": ("maxrate",),
    "htb class": ("ceil", "rate"),
}
"""The options that set a qdisc's rate. If a line has several, the first in this order counts."""
CAKES = ("cake", "cake_mq")
SHAPERS = (*CAKES, "tbf", "netem")
"""The kinds whose rate is that of all packets together."""
ABBREVIATED_OPTIONS = {
    "netem": ("limit", "latency", "delay", "loss", "drop", "ecn", "reorder", "corrupt", "gap", "duplicate",
              "distribution", "rate", "slot"),
    "tbf": ("limit", "latency", "burst", "buffer", "maxburst", "mtu", "minburst", "mpu", "rate", "peakrate",
            "overhead", "linklayer"),
}  # fmt: skip
"""Options that tc lets you abbreviate: an abbreviation is the first of these options that begins with it."""
AQM_TARGET_US = {"codel": 5000, "fq_codel": 5000, "cake": 5000, "cake_mq": 5000, "pie": 15000, "fq_pie": 15000}


class Limit(NamedTuple):
    """The maximum length of a queue: `size` in bytes if `in_bytes`, otherwise in packets."""

    size: int
    in_bytes: bool = False


class _LimitOption(NamedTuple):
    read: Callable[[str], int | None]
    default: int | None
    in_bytes: bool = False


_LIMITS = {
    "pfifo": _LimitOption(size_bytes, 1000), "pfifo_fast": _LimitOption(size_bytes, 1000),
    "netem": _LimitOption(size_bytes, 1000), "bfifo": _LimitOption(size_bytes, None, True),
    "tbf": _LimitOption(size_bytes, None, True), "red": _LimitOption(size_bytes, None, True),
    "codel": _LimitOption(whole_number, 1000), "fq_codel": _LimitOption(whole_number, 10240),
    "pie": _LimitOption(whole_number, 1000), "fq_pie": _LimitOption(whole_number, 10240),
    "fq": _LimitOption(whole_number, 10000), "sfq": _LimitOption(whole_number, 127),
}  # fmt: skip
"""The parser and the default of each kind's limit. pfifo's and pfifo_fast's default is the device's txqueuelen."""

_CAKE_LINK_LAYERS: Mapping[str, tuple[int, int, str]] = {
    "ipoa-vcmux": (8, 0, "atm"), "ipoa-llcsnap": (16, 0, "atm"), "bridged-vcmux": (24, 0, "atm"),
    "bridged-llcsnap": (32, 0, "atm"), "pppoa-vcmux": (10, 0, "atm"), "pppoa-llc": (14, 0, "atm"),
    "pppoe-vcmux": (32, 0, "atm"), "pppoe-llcsnap": (40, 0, "atm"), "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"), "ethernet": (38, 84, ""), "ether-vlan": (4, 0, ""), "docsis": (18, 64, "noatm"),
}  # fmt: skip
"""cake's keywords for link layers: (bytes added to a packet, minimum size, cells), from tc-cake(8)."""
_CAKE_CELLS = ("atm", "noatm", "ptm")


class QdiscLine:
    """A qdisc, from a line like "stab linklayer atm overhead -4 tbf rate 840kbit latency 300ms burst 1696", or a class
    ("htb class ceil 1gbit"). `device_bps`: the device's rate, for rates in percent.

    "mq fq limit 100" is the fq of each queue of a NIC, "mq" their default. The device then has no rate and no limit.
    """

    def __init__(self, line: str, device_bps: int | None = None) -> None:
        words = line.split()
        self.of_each_queue = words[:1] == ["mq"]
        if self.of_each_queue:
            words = words[1:] or [DEFAULT_QDISC]
        self.device_bps = device_bps
        self.stab: dict[str, str] | None = None
        if words and words[0] == "stab":
            end = 1
            while words[end : end + 1] and words[end] in STAB_OPTIONS:
                end += 2
            self.stab = dict(zip(words[1:end:2], words[2:end:2], strict=False))
            words = words[end:]
        kind_length = 2 if words[1:2] == ["class"] else 1
        self.kind, self.words = " ".join(words[:kind_length]), words[kind_length:]

    def option(self, *names: str) -> str:
        """Return the word after the last option with one of these names, as tc does; "" if the line has none."""
        for index in reversed(range(len(self.words) - 1)):
            if self._full_name(self.words[index]) in names:
                return self.words[index + 1]
        return ""

    def _full_name(self, word: str) -> str:
        names = ABBREVIATED_OPTIONS.get(self.kind, ())
        return word if word in names else next((name for name in names if name.startswith(word)), word)

    @property
    def rate_bps(self) -> int | None:
        """Return the configured rate in bit/s, which includes the bytes of the link layer; None without a rate."""
        if self.of_each_queue:
            return None
        rates = (rate_bps(self.option(word), self.device_bps) for word in RATE_OPTIONS.get(self.kind, ()))
        return next((rate for rate in rates if rate), None)

    @property
    def fixed_bps(self) -> int | None:
        """Return the configured rate of all packets together; None if it is one of each flow, or follows the line."""
        follows_line = "autorate-ingress" in self.words
        return self.rate_bps if self.kind in SHAPERS and not follows_line else None

    @property
    def burst_bytes(self) -> int | None:
        """Return the bytes that tbf lets pass at once; None for other kinds."""
        return size_bytes(self.option("burst", "buffer", "maxburst").partition("/")[0])

    @property
    def frame_bps(self) -> int | None:
        """Return the rate of full Ethernet frames, without the bytes of the link layer; None without a rate."""
        return None if self.rate_bps is None else self.rate_bps * FRAME_BYTES // self.counted_bytes(FRAME_BYTES)

    @property
    def delay_us(self) -> int:
        """Return netem's delay; 0 for other kinds."""
        return (time_us(self.option("delay", "latency")) or 0) if self.kind == "netem" else 0

    @property
    def delays_packets(self) -> bool:
        """Return whether the qdisc is a netem that delays packets."""
        slot = time_us(self.option("slot")) if self.kind == "netem" else None
        return self.kind == "netem" and bool(self.delay_us or slot or self.rate_bps)

    @property
    def target_us(self) -> int | None:
        """Return the target delay of an AQM; None for other kinds."""
        default = AQM_TARGET_US.get(self.kind)
        return default and (time_us(self.option("target")) or default)

    @cached_property
    def limit(self) -> Limit | None:
        """Return the limit of the queue; None without a limit."""
        option = _LIMITS.get(self.kind)
        if option is None or self.of_each_queue:
            return None
        text = self.option("limit")
        size = option.read(text) if text else option.default
        if size is None and self.kind == "tbf":
            size = self._bytes_in_latency()
        return None if size is None else Limit(size, option.in_bytes)

    def _bytes_in_latency(self) -> int | None:
        """Return the limit that tc derives from tbf's latency: the bytes that leave in this time, plus the burst."""
        latency_us, rate, burst = time_us(self.option("latency")), self.rate_bps, self.burst_bytes
        if latency_us is None or rate is None or burst is None:
            return None
        return rate // 8 * latency_us // 10**6 + burst

    def counted_bytes(self, size: int) -> int:
        """Return the bytes that the qdisc counts for a packet of `size` bytes with its Ethernet header."""
        if self.stab is not None:
            size = _stab_bytes(self.stab, size)
        if self.kind in CAKES:
            return self._cake_bytes(size)
        size = max(size + (whole_number(self.option("overhead")) or 0), size_bytes(self.option("mpu")) or 0)
        return _in_cells(size) if self.option("linklayer") in ("atm", "adsl") else size

    def _cake_bytes(self, size: int) -> int:
        """Return the bytes that cake counts. An overhead replaces the Ethernet header (sch_cake.c, cake_overhead)."""
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
            elif word in _CAKE_LINK_LAYERS:
                added, minimum, layer_cells = _CAKE_LINK_LAYERS[word]
                overhead, shortest, cells = (overhead or 0) + added, max(shortest, minimum), layer_cells or cells
        size = max(size if overhead is None else size - ETHERNET_HEADER_BYTES + overhead, shortest)
        return _in_cells(size) if cells == "atm" else size + -(-size // 64) if cells == "ptm" else size


def _integer(word: str) -> int:
    return int(word) if word.lstrip("-").isdecimal() else 0


def _in_cells(size: int) -> int:
    """Return the bytes of the ATM cells that carry `size` bytes: 53 for every 48."""
    return -(-size // 48) * 53


def _stab_bytes(stab: Mapping[str, str], size: int) -> int:
    """Return the size that the kernel reads (__qdisc_calculate_pkt_len) from the table that tc computes (tc_core.c,
    tc_calc_size_table)."""
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
