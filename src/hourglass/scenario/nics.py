# SPDX-License-Identifier: Apache-2.0
"""NIC profiles: a chip and its Linux driver, as defaults of a link's keys. The scenario's defaults, the reference and
the tests all use this table. A key in the scenario overrides the profile.

Sources are files of Linux 6.1 with the line, below drivers/net/ethernet/, unless another is named. Lengths of buffers
are those of x86-64, including room for the headers of lower layers (64 B) and skb_shared_info (320 B).
"""

import re
from dataclasses import dataclass, field

QUARTER = 0
"""A value of `tx_wake`: a quarter of the ring, plus one."""
STANDARD_MTU = 1500
GIGABIT = 10**9
COPPER_NS = 2 * 10**9
"""Time until a copper link carries: the partner's break_link_timer of 1.2 to 1.5 s, and link_fail_inhibit_timer of
0.75 to 1 s (IEEE 802.3, 28.3.2 and table 28-9)."""
_COPPER = (COPPER_NS, "IEEE 802.3, clause 28: negotiation on copper")
_OFF = "net/core/dev.c: 0 unless the driver sets it"
_ONE_QUEUE = {"queues": (1, "the chip's only one")}
_NO_COALESCING = {"gro_usecs": (0, _OFF), "defer_irqs": (0, _OFF)}
_NO_SCHEDULES = {"launch_time": (0, "the chip has one queue"), "gates": (0, "the chip has one queue")}
_SOFTWARE = "r8169_main.c:5551 of 6.12, netdev_sw_irq_coalesce_default_on(); Linux 6.1 has no coalescing"
_SAFE = "r8169_main.c:5762 of 7.3, for RTL8168h and later"
SWITCH = "switch"
"""The profile of a switch's ports."""
Value = int | str | bool


@dataclass(frozen=True)
class Profile:
    """A chip with its driver."""

    title: str
    rate_max: int
    """The chip's highest line rate in bit/s."""
    values: dict[str, tuple[Value, str]]
    """Key of a link → its default and its source."""
    since: dict[str, tuple[tuple[int, int], Value, str]] = field(default_factory=dict)
    """Key → the first later kernel with another default, that default and its source."""
    jumbo: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The same for an MTU above 1500."""
    unknown: str = ""
    """Values without a source, and their replacement."""
    queues_max: int = 1
    """The chip's queues in each direction, as its driver uses them."""


PROFILES: dict[str, Profile] = {
    "tg3": Profile(
        "Broadcom NetXtreme at Gigabit without RSS, like the papers' BCM5761",
        GIGABIT,
        {
            **_ONE_QUEUE,
            "tx_ring": (511, "broadcom/tg3.c:154, TG3_DEF_TX_RING_PENDING"),
            "rx_ring": (200, "broadcom/tg3.c:140, TG3_DEF_RX_RING_PENDING"),
            "vectors": (1, "tg3.c:16387: MSI-X begins with 57765_PLUS; tg3.c:7165, tg3_poll_work() serves both"),
            "moderation": ("delay", "tg3.c:9434, host coalescing: ticks or frames"),
            "rx_usecs": (20, "tg3.h, LOW_RXCOL_TICKS_CLRTCKS"),
            "rx_frames": (5, "tg3.h, LOW_RXMAX_FRAMES"),
            "tx_usecs": (72, "tg3.h, LOW_TXCOL_TICKS_CLRTCKS"),
            "tx_frames": (53, "tg3.h, LOW_TXMAX_FRAMES"),
            "tx_wake": (QUARTER, "tg3.c:207, TG3_TX_WAKEUP_THRESH"),
            "tx_context": (0, "tg3.c:8029: flags of the data's descriptors"),
            "bql_headers": (0, "tg3.c:8130: the skb's length"),
            "tx_fifo": (7808, "BCM5718 Programmer's Guide 5718-PG108-R, 0x4420 and 0x444C: 61 TXMBUFs of 128 B"),
            "rx_copy": (256, "tg3.c:193, TG3_RX_COPY_THRESHOLD"),
            "rx_buffer": (1984, "tg3.c:6706, tg3_alloc_rx_data(): 1536 B and 64 B for the chip"),
            "rx_large": (16384, "the same for TG3_RX_JMB_DMA_SZ, 9046 B, by kmalloc()"),
            "sg": (True, "tg3.c:17777, tg3_init_one()"),
            "tso": (True, "tg3.c:17791, since TSO_VER 2"),
            "phc": (0, "tg3.c:17913: PTP_CAPABLE are the 5719, 5720 and 5762"),
            **_NO_SCHEDULES,
            **_NO_COALESCING,
            "link_up": _COPPER,
        },
        unknown="The FIFO has the size of the family's BCM5718, since the BCM5761's guide is not public.",
    ),
    "igb": Profile(
        "Intel I210 at Gigabit, up to four queues in each direction; one or two have separate vectors",
        GIGABIT,
        {
            "queues": (1, "one per CPU, up to 4: igb_main.c, igb_get_max_rss_queues()"),
            "tx_ring": (256, "intel/igb/igb.h:35, IGB_DEFAULT_TXD"),
            "rx_ring": (256, "intel/igb/igb.h:40, IGB_DEFAULT_RXD"),
            "vectors": (2, "igb_main.c:3973: queues are paired only where there are many CPUs"),
            "moderation": ("igb", "igb_main.c:5707, igb_update_ring_itr(), IGB_DEFAULT_ITR 3"),
            "rx_usecs": (162, "igb.h:29, IGB_START_ITR: the first interval"),
            "rx_frames": (0, "the chip does not count frames"),
            "tx_usecs": (162, "igb.h:29, IGB_START_ITR: the first interval"),
            "tx_frames": (0, "the chip does not count frames"),
            "tx_wake": (42, "igb_main.c:8345, TX_WAKE_THRESHOLD"),
            "tx_context": (1, "igb_main.c:6019, igb_tso(); :6065, igb_tx_csum()"),
            "bql_headers": (1, "igb_main.c:6008, igb_tso()"),
            "tx_fifo": (20480, "e1000_defines.h:341, I210_TXPBSIZE_DEFAULT: 20 KB"),
            "rx_copy": (0, "igb_main.c:8513, igb_build_skb() copies nothing"),
            "rx_buffer": (2048, "igb_main.c:8519: half a page"),
            "rx_large": (0, "frames take several buffers"),
            "sg": (True, "igb_main.c:3298, igb_probe()"),
            "tso": (True, "igb_main.c:3299"),
            "phc": (1, "igb_ptp.c:1385, igb_ptp_init()"),
            "launch_time": (32, "igb_main.c:5924, igb_tx_ctxtdesc(): tv_nsec / 32"),
            "gates": (0, "igb_main.c:2862, igb_setup_tc(): no taprio"),
            **_NO_COALESCING,
            "link_up": _COPPER,
        },
        jumbo={"rx_buffer": (4096, "igb_main.c:4784, large buffers: half of two pages")},
        queues_max=4,
    ),
    "igc": Profile(
        "Intel I225 and I226 up to 2.5 Gbit/s, up to four queues in each direction; one or two have separate vectors",
        5 * GIGABIT // 2,
        {
            "queues": (1, "one per CPU, up to 4: igc_main.c:4077, igc_get_max_rss_queues()"),
            "tx_ring": (256, "intel/igc/igc.h:361, IGC_DEFAULT_TXD"),
            "rx_ring": (256, "intel/igc/igc.h:366, IGC_DEFAULT_RXD"),
            "vectors": (2, "igc_main.c:4069: queues are paired only where there are many CPUs"),
            "moderation": ("igb", "igc_main.c:4390, igc_update_ring_itr(), IGC_DEFAULT_ITR 3: igb's code"),
            "rx_usecs": (162, "igc.h:349, IGC_START_ITR: the first interval"),
            "rx_frames": (0, "the chip does not count frames"),
            "tx_usecs": (162, "igc.h:349, IGC_START_ITR: the first interval"),
            "tx_frames": (0, "the chip does not count frames"),
            "tx_wake": (42, "igc_main.c:3041, TX_WAKE_THRESHOLD"),
            "tx_context": (1, "igc_main.c:1531, igc_tso(); :1219, igc_tx_csum()"),
            "bql_headers": (1, "igc_main.c:1520, igc_tso()"),
            "tx_fifo": (20480, "igc_defines.h:397, I225_TXPBSIZE_DEFAULT: 20 KB"),
            "rx_copy": (256, "igc_main.c:1950, igc_construct_skb(), IGC_RX_HDR_LEN"),
            "rx_buffer": (2048, "igc_main.c:1859: half a page"),
            "rx_large": (0, "frames take several buffers, since large ones are only for XDP (igc_main.c:649)"),
            "sg": (True, "igc_main.c:6593, igc_probe()"),
            "tso": (True, "igc_main.c:6594"),
            "phc": (1, "igc_ptp.c:1003, igc_ptp_init()"),
            "launch_time": (1, "igc_main.c:1076, igc_tx_launchtime(): ns after the start of the cycle"),
            "gates": (1, "igc_main.c:6300, igc_setup_tc(): taprio"),
            **_NO_COALESCING,
            "link_up": _COPPER,
        },
        unknown="The driver copies headers into an skb of 1 KB (igc_construct_skb()). So it charges 1,280 B for a frame"
        " up to 256 B, and 1,024 B more for a longer one that is not merged.",
        queues_max=4,
    ),
    "ixgbe": Profile(
        "Intel 82599 at 10 Gbit/s, up to 16 queues in each direction, each pair on one vector",
        10 * GIGABIT,
        {
            "queues": (1, "one per CPU, up to 16: ixgbe.h, IXGBE_MAX_RSS_INDICES"),
            "tx_ring": (512, "intel/ixgbe/ixgbe.h:40, IXGBE_DEFAULT_TXD"),
            "rx_ring": (512, "intel/ixgbe/ixgbe.h:46, IXGBE_DEFAULT_RXD"),
            "vectors": (1, "ixgbe_lib.c: a vector serves a receive and a transmit queue"),
            "moderation": ("ixgbe", "ixgbe_main.c:2525, ixgbe_update_itr(); :6477, both settings 1"),
            "rx_usecs": (50, "ixgbe_lib.c:903, IXGBE_20K_ITR: the first interval"),
            "rx_frames": (0, "the chip does not count frames"),
            "tx_usecs": (50, "ixgbe_lib.c:903, IXGBE_20K_ITR: the first interval"),
            "tx_frames": (0, "the chip does not count frames"),
            "tx_wake": (42, "ixgbe_main.c, TX_WAKE_THRESHOLD"),
            "tx_context": (1, "ixgbe_main.c:8155, ixgbe_tso(); :8208, ixgbe_tx_csum()"),
            "bql_headers": (1, "ixgbe_main.c:8141, ixgbe_tso()"),
            "tx_fifo": (163840, "ixgbe_type.h:1463, IXGBE_TXPBSIZE_MAX: 160 KB"),
            "rx_copy": (0, "ixgbe_main.c:2150, ixgbe_build_skb() copies nothing"),
            "rx_buffer": (2048, "ixgbe_main.c:2157: half a page"),
            "rx_large": (0, "frames take several buffers"),
            "sg": (True, "ixgbe_main.c:11008, ixgbe_probe()"),
            "tso": (True, "ixgbe_main.c:11009"),
            "phc": (1, "ixgbe_ptp.c:1446, ixgbe_ptp_create_clock()"),
            "launch_time": (0, "ixgbe_main.c:9804, __ixgbe_setup_tc(): no etf"),
            "gates": (0, "the same: no taprio"),
            **_NO_COALESCING,
            "link_up": (0, "SFP+: no negotiation"),
        },
        jumbo={"rx_buffer": (4096, "ixgbe_main.c:4312, IXGBE_RX_3K_BUFFER: half of two pages")},
        queues_max=16,
    ),
    "r8169": Profile(
        "Realtek RTL8168h at Gigabit: no moderation, every frame is copied",
        GIGABIT,
        {
            **_ONE_QUEUE,
            "tx_ring": (256, "realtek/r8169_main.c:67, NUM_TX_DESC"),
            "rx_ring": (256, "realtek/r8169_main.c:68, NUM_RX_DESC"),
            "vectors": (1, "r8169_main.c:4679, rtl8169_poll() serves both"),
            "moderation": ("delay", "r8169_main.c:1849, IntrMitigate: timer and frames"),
            "rx_usecs": (0, "r8169_main.c:3808, IntrMitigate 0"),
            "rx_frames": (0, "r8169_main.c:3808, IntrMitigate 0"),
            "tx_usecs": (0, "r8169_main.c:3808, IntrMitigate 0"),
            "tx_frames": (0, "r8169_main.c:3808, IntrMitigate 0"),
            "tx_wake": (36, "r8169_main.c:4266: room for one more chain"),
            "tx_context": (0, "r8169_main.c:4247: flags of the data's descriptors"),
            "bql_headers": (0, "r8169_main.c:4340: the skb's length"),
            "tx_fifo": (0, "unknown"),
            "rx_copy": (256, "r8169_main.c:4581: all are copied"),
            "rx_buffer": (0, "r8169_main.c:4581, napi_alloc_skb() of the frame's own length"),
            "rx_large": (0, "as above"),
            "sg": (False, "r8169_main.c:5426, rtl_init_one(): off (5.10: line 5501; 6.12: 5531)"),
            "tso": (False, "r8169_main.c:5426, as above"),
            "phc": (0, "r8169_main.c: the driver registers none"),
            **_NO_SCHEDULES,
            **_NO_COALESCING,
            "link_up": _COPPER,
        },
        since={
            "gro_usecs": ((6, 2), 20, _SOFTWARE),
            "defer_irqs": ((6, 2), 1, _SOFTWARE),
            "sg": ((6, 14), True, _SAFE),
            "tso": ((6, 14), True, _SAFE),
        },
        unknown="The FIFO's size is unknown and not modelled.",
    ),
    SWITCH: Profile(
        "A port of a switch: each frame is forwarded when its last bit has arrived",
        1000 * GIGABIT,
        {
            **_ONE_QUEUE,
            "tx_ring": (511, "a model: BQL's limit comes first"),
            "rx_ring": (200, "a model: each frame is taken at once"),
            "vectors": (1, "a model: a chip forwards without interrupts"),
            "moderation": ("delay", "as above"),
            "rx_usecs": (0, "as above: no delay"),
            "rx_frames": (0, "as above"),
            "tx_usecs": (0, "as above"),
            "tx_frames": (0, "as above"),
            "tx_wake": (QUARTER, "a model: BQL's limit comes first"),
            "tx_context": (0, "a model: frames are whole"),
            "bql_headers": (0, "the frame's length"),
            "tx_fifo": (0, "a model: the port's queue is its qdisc"),
            "rx_copy": (256, "no socket holds frames here"),
            "rx_buffer": (1984, "as above"),
            "rx_large": (16384, "as above"),
            "sg": (True, "a model: frames are whole"),
            "tso": (True, "a model: frames are whole"),
            "phc": (0, "a model: a port has no clock"),
            **_NO_SCHEDULES,
            **_NO_COALESCING,
            "link_up": _COPPER,
        },
        unknown="A chip's time to forward a frame and its shared memory are not modelled.",
    ),
}

DEFAULT = "tg3"

MODERATIONS = ("delay", "interval", "igb", "ixgbe")
ADAPTIVE = ("igb", "ixgbe")

PAIRED_FROM = 2
"""More queues than these share vectors: the driver has one for both directions of a queue."""

TIMED = ("launch_time", "gates")
"""Keys that need a clock and several queues."""

KEYS = tuple(PROFILES[DEFAULT].values)
"""Keys of a link that a profile decides."""


def default(rate_bps: int) -> str:
    """Return the NIC of a link that names none: the papers' at Gigabit and below, else the fastest."""
    return DEFAULT if rate_bps <= PROFILES[DEFAULT].rate_max else "ixgbe"


def defaults(nic: str, mtu: int, written: dict[str, Value], kernel: str = "") -> dict[str, Value]:
    """Return the values of a link's keys, of which some are `written`: key → value. `kernel`: a kernel's name; one
    without a number is newer than all.

    An interval in the scenario is not adapted unless `moderation` requests it, as with `ethtool -C`. TSO needs
    scatter-gather: a written value of one decides the other. Gates and launch times need a clock. igb and
    igc pair more than two queues, because an I210 has five vectors (igb_main.c, igb_set_flag_queue_pairs(); igc_main.c,
    igc_set_flag_queue_pairs()).
    """
    profile = PROFILES[nic]
    values = {key: value for key, (value, _) in profile.values.items()}
    number = re.match(r"(\d+)\.(\d+)", kernel)
    values |= {
        key: value
        for key, (release, value, _) in profile.since.items()
        if number is None or (int(number[1]), int(number[2])) >= release
    }
    if mtu > STANDARD_MTU:
        values |= {key: value for key, (value, _) in profile.jumbo.items()}
    queues = int(written.get("queues", 1))
    if queues > PAIRED_FROM:
        values["vectors"] = 1
    if queues == 1 or written.get("phc") == 0:
        values |= dict.fromkeys(TIMED, 0)
    if values["moderation"] in ADAPTIVE and written.keys() & {"rx_usecs", "tx_usecs"}:
        values["moderation"] = "interval"
    if written.get("tso"):
        values["sg"] = True
    elif written.get("sg") is False:
        values["tso"] = False
    values |= written
    if "tx_wake" not in written and values["tx_wake"] == QUARTER:
        values["tx_wake"] = int(values["tx_ring"]) // 4 + 1
    return values
