# SPDX-License-Identifier: Apache-2.0
"""Prints what runs cost: the fixed part, and wall time per simulated second.

The cost of a simulated second is the difference of a long and a short run over the difference of their lengths, so that
boot and set-up cancel; each is the least of a few runs. Machines differ and are noisy: compare figures of one table.
The peers' figures are quoted, not measured here: four CUBIC flows through the same topology, per loaded second, on a
machine of this class.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hourglass import runner, scenario

PEERS = {"100 Mbit/s, cubic x 4": "ns-3 (optimised) 147", "1 Gbit/s, cubic x 4": "ns-3 (optimised) 1360-1500"}
UNSHAPED = ("testbed.link.0.delay=10ms",)


def wall_s(source: str, settings: Sequence[str], kernel: str, repeat: int) -> float:
    """The least wall time of a run's guest, in s."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeat):
            run = runner.run(scenario.load(source, settings, kernel=kernel), Path(folder) / "run")
            times.append(float(run.info["wall_s"]))
    return min(times)


def per_second_ms(source: str, settings: Sequence[str], kernel: str, lengths: tuple[int, int], repeat: int) -> float:
    """Wall ms per loaded simulated second."""
    short, long = (
        wall_s(source, [*settings, "test.delay=1", f"test.length={length}"], kernel, repeat) for length in lengths
    )
    return 1000 * (long - short) / (lengths[1] - lengths[0])


def cases(quick: bool) -> list[tuple[str, str, tuple[str, ...], str, tuple[int, int]]]:
    """(name, scenario, settings, kernel, lengths in s) of every line of the table."""
    made: list[tuple[str, str, tuple[str, ...], str, tuple[int, int]]] = []
    for rate, name, lengths in (
        ("10mbit", "10 Mbit/s", (5, 25)),
        ("100mbit", "100 Mbit/s", (3, 13)),
        ("1gbit", "1 Gbit/s", (1, 4)),
    ):
        for cc in ("cubic",) if quick else ("cubic", "bbr"):
            settings = (*UNSHAPED, f"testbed.link.1.rate={rate}", f"stack.cc={cc}")
            made.append((f"{name}, {cc} x 4", "LR1000M", settings, "6.1", lengths))
    for kernel in ("6.1",) if quick else ("5.10", "6.1", "6.12"):
        made.append((f"L100M on {kernel}", "L100M", (), kernel, (5, 25)))
    made.append(("L100M, no sampling", "L100M", ("measure.tcp=0", "measure.devices=0"), "6.1", (5, 25)))
    made.append(
        (
            "100 Mbit/s, cubic x 64",
            "LR1000M",
            (*UNSHAPED, "testbed.link.1.rate=100mbit", "test.upload_streams=64"),
            "6.1",
            (3, 8),
        )
    )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer lines, each measured once")
    quick = parser.parse_args().quick
    repeat = 1 if quick else 3
    console = Console()
    idle = ("test.name=ping", "test.length=1")
    fixed = wall_s("LR1000M", idle, "6.1", repeat)
    console.print(f"boot, set-up of three nodes, one idle second: {fixed:.2f} s of wall time")
    table = Table("load", "wall ms per simulated s", "x real time", "peers (quoted)")
    for name, source, settings, kernel, lengths in cases(quick):
        cost = per_second_ms(source, settings, kernel, lengths, repeat)
        table.add_row(name, f"{cost:.0f}", f"{1000 / cost:.0f}", PEERS.get(name, ""))
    console.print(table)


if __name__ == "__main__":
    main()
