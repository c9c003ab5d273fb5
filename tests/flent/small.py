# SPDX-License-Identifier: Apache-2.0
"""Writes a small Flent file: an upload with samples of ss, and two pings, of which one has a gap."""

import gzip
import json
from pathlib import Path
from typing import Any

STEP_S = 0.2
T0 = "1970-01-01T00:16:40Z"
T0_S = 1000
END_S = 150
ENDED_S = 8.0
"""The end of the UDP ping, except for a sample at the end of the test."""
GAP_S = (40.0, 100.0)
"""The gap of the RTT samples."""


def small(path: Path, *, rtt: bool = True, **metadata: Any) -> Path:
    """Write the file, whose test is rrul, without a title; `rtt`: with samples of ss."""
    times_s = [round(step * STEP_S, 3) for step in range(round(END_S / STEP_S))]
    udp_s = [t_s for t_s in times_s if t_s <= ENDED_S or t_s == times_s[-1]]
    rtt_s = [t_s for t_s in times_s if rtt and not GAP_S[0] < t_s < GAP_S[1]]
    raw = {
        "TCP upload BE": [{"t": T0_S + t_s, "val": 8.0, "dur": STEP_S} for t_s in times_s]
        + [{"t": T0_S + t_s, "tcp_rtt": 50.0} for t_s in rtt_s],
        "Ping (ms) ICMP": [{"t": T0_S + t_s, "val": 20.0, "seq": seq} for seq, t_s in enumerate(times_s)],
        "Ping (ms) UDP BE": [{"t": T0_S + t_s, "val": 30.0, "owd_up": 10.0, "owd_down": 20.0} for t_s in udp_s],
    }
    meta = {"NAME": "rrul", "HOST": "far", "T0": T0, "LENGTH": END_S, "TOTAL_LENGTH": END_S, "STEP_SIZE": STEP_S}
    content = {"version": 4, "x_values": times_s, "results": {name: [] for name in raw}, "raw_values": raw,
               "metadata": meta | metadata}  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path
