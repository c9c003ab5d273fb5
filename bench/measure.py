# SPDX-License-Identifier: Apache-2.0
"""One run and what it cost; the least of several; the cost of a second."""

import contextlib
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import hourglass.plan as plans
from bench import peers, programs
from bench.cases import CASES, FRAMES, NATIVE, START, WHOLE, Case
from hourglass.engine.kernel import store
from hourglass.engine.native import Native
from hourglass.engine.virtual import Virtual
from hourglass.errors import MissingError
from hourglass.scenario import Scenario

KERNELS = sorted({case.kernel for case in CASES})

Say = Callable[[str], None]


@dataclass
class Costs:
    """What was measured, each as often as repeated: wall seconds by case and length, CPU seconds per segment."""

    command_s: list[float] = field(default_factory=list)
    whole_s: list[tuple[float, float]] = field(default_factory=list)
    """The main job: the whole command, and the guest's part of it."""
    bare_s: list[float] = field(default_factory=list)
    """The main job with nothing measured."""
    report_s: list[float] = field(default_factory=list)
    """`hourglass report` about `REPORTED` runs of the main job."""
    start_s: list[float] = field(default_factory=list)
    wall_s: dict[tuple[str, float], list[float]] = field(default_factory=dict)
    ns3_s: dict[tuple[str, float], list[float]] = field(default_factory=dict)
    segment_s: dict[str, list[float]] = field(default_factory=dict)
    """CPU seconds per data segment delivered: see `segments_s`."""
    program_s: dict[str, list[float]] = field(default_factory=dict)
    """CPU seconds of what programs do: see `programs_s`."""
    peak_mib: dict[str, float] = field(default_factory=dict)

    def second_ms(self, case: Case) -> float:
        """Wall ms per loaded second."""
        return slope_ms(self.wall_s, case.name, case.short_s, case.long_s)

    def ns3_ms(self, case: Case) -> float | None:
        """The same of ns-3, where it was run."""
        return slope_ms(self.ns3_s, case.name, *case.ns3_s) if case.ns3 else None


def slope_ms(measured: dict[tuple[str, float], list[float]], name: str, short_s: float, long_s: float) -> float:
    """Least wall ms per second between two lengths."""
    short, long = (min(measured[name, length]) for length in (short_s, long_s))
    return (long - short) / (long_s - short_s) * 1e3


def measure(repetitions: int, say: Say) -> Costs:
    """All cases, `repetitions` times over."""
    costs = Costs()
    for kernel in KERNELS:
        say(f"kernel {kernel}")
        store.ensure(kernel, tuned=True)
    say("ns-3")
    peers.ns3_python()
    for number in range(1, repetitions + 1):
        say(f"{number}/{repetitions}: start")
        costs.command_s.append(command_s(*PINGS)[0])
        costs.start_s.append(run(START.scenario(START.short_s))[0])
        say(f"{number}/{repetitions}: {WHOLE.name}")
        costs.whole_s.append(command_s())
        costs.bare_s.append(command_s(*(word for name in BARE for word in ("--set", f"measure.{name}=0")))[0])
        say(f"{number}/{repetitions}: report of {REPORTED} runs")
        costs.report_s.append(report_s())
        for case in CASES:
            say(f"{number}/{repetitions}: {case.name}")
            for length_s in (case.short_s, case.long_s) * AT_ONCE:
                wall_s, peak_mib = run(case.scenario(length_s))
                costs.wall_s.setdefault((case.name, length_s), []).append(wall_s)
                costs.peak_mib[case.name] = max(peak_mib, costs.peak_mib.get(case.name, 0))
            for length_s in case.ns3_s if case.ns3 else ():
                say(f"{number}/{repetitions}: {case.name} in ns-3")
                wall_s, _ = peers.ns3_s(*case.ns3, length_s)
                costs.ns3_s.setdefault((case.name, length_s), []).append(wall_s)
        say(f"{number}/{repetitions}: this machine's kernel")
        for name, spent_s in segments_s().items():
            costs.segment_s.setdefault(name, []).append(spent_s)
        say(f"{number}/{repetitions}: programs")
        for name, spent_s in programs_s().items():
            costs.program_s.setdefault(name, []).append(spent_s)
    return costs


PINGS = ("--no-picture", "--json", "--set", "test.name=ping", "--set", "test.length=1")
AT_ONCE = 3
"""How often a case is run where ns-3, which takes so much longer, is run once."""
REPORTED = 200
BARE = ("tcp", "devices", "packets")


def segments_s() -> dict[str, float]:
    """CPU seconds per data segment delivered, of the seconds between the case's lengths: by the guest; where permitted
    by this machine's kernel, packet by packet and with what TCP hands down left whole."""
    ends = (NATIVE.short_s, NATIVE.long_s)
    found = {"guest": slope(lambda length_s: guest_cpu_s(NATIVE.scenario(length_s)), ends)}
    with contextlib.suppress(MissingError):
        machine, packets = Native.ready(), replace(NATIVE, settings=(*NATIVE.settings, *FRAMES))
        found["native"] = slope(lambda length_s: peers.native_cpu_s(machine, packets.scenario(length_s)), ends)
        found["native_whole"] = slope(lambda length_s: peers.native_cpu_s(machine, NATIVE.scenario(length_s)), ends)
    return found


def programs_s() -> dict[str, float]:
    """CPU seconds of the guest for each of `programs.COUNTS`, once, and for a second of "iperf3" and of "flow"."""
    with tempfile.TemporaryDirectory() as directory:
        root = programs.root(Path(directory))
        found = {
            what: program_s(partial(programs.repeated, root, what), counts) for what, counts in programs.COUNTS.items()
        }
    found["iperf3"] = program_s(programs.iperf3, programs.LENGTHS_S)
    found["flow"] = program_s(programs.flow, programs.LENGTHS_S)
    return found


def program_s(made: Callable[[int], Scenario], ends: tuple[int, int]) -> float:
    """CPU seconds of the guest per unit of what `made` makes a scenario of."""
    return slope(lambda units: (guest_cpu_s(made(units))[0], units), ends)


def slope(cost: Callable[[Any], tuple[float, float]], ends: tuple[float, float]) -> float:
    """CPU seconds per unit between two ends; `cost` gives CPU seconds and units of an end."""
    (less, few), (more, many) = (cost(end) for end in ends)
    return (more - less) / (many - few)


def guest_cpu_s(scenario: Scenario) -> tuple[float, int]:
    """CPU seconds of a guest, and the data segments that it delivered."""
    plan, guest = plans.build(scenario, Virtual.capabilities), Virtual(store.ensure(scenario.kernel))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as directory:
        guest.run(plan, Path(directory))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return spent, peers.segments(Path(directory))


def run(scenario: Scenario) -> tuple[float, float]:
    """Wall seconds from the guest's start to the records' digest, and the most MiB the guest's kernel had."""
    peak_kib = 0

    def look(_: float, __: float) -> None:
        nonlocal peak_kib
        peak_kib = max([peak_kib, *(resident_kib(child) for child in children())])

    plan, guest = plans.build(scenario, Virtual.capabilities), Virtual(store.ensure(scenario.kernel))
    with tempfile.TemporaryDirectory() as directory:
        outcome = guest.run(plan, Path(directory), progress=look)
    return outcome.wall_s, peak_kib / 1024


def children() -> list[int]:
    """Our child processes."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def resident_kib(pid: int) -> int:
    """The most memory a process had resident; 0 when it is gone."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1])
    return 0


def command_s(*further: str) -> tuple[float, float]:
    """Wall seconds of `hourglass run L100M` from the shell's point of view, and of the guest in it."""
    with tempfile.TemporaryDirectory() as directory:
        spent = shell_s("run", "L100M", "--kernel", START.kernel, *further, "--out", f"{directory}/run")
        return spent, json.loads((Path(directory) / "run" / "run.json").read_text())["wall_s"]


def report_s() -> float:
    """Wall seconds of `hourglass report` about so many runs."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "run"
        shell_s("run", "L100M", "--kernel", START.kernel, "--no-picture", "--out", str(place))
        runs = [Path(directory) / f"run{number}" for number in range(REPORTED)]
        for link in runs:
            link.symlink_to(place)
        return shell_s("report", *map(str, runs), "--out", f"{directory}/report.html")


def shell_s(*words: str) -> float:
    """Wall seconds of `hourglass` with these words."""
    begun = time.monotonic()
    subprocess.run([Path(sys.executable).with_name("hourglass"), *words], check=True, capture_output=True)
    return time.monotonic() - begun
