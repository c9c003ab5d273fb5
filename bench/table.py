# SPDX-License-Identifier: Apache-2.0
"""The figures, for people and for programs."""

import os
import platform
import subprocess
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cases import CASES, SAMPLED_CASE, WITHOUT_SAMPLES
from bench.measure import AT_ONCE, REPORTED, Costs
from bench.peers import NS3_SLOWER


def figures(costs: Costs) -> dict[str, Any]:
    """Plain data. Times are wall ms; ratios are of runs made side by side."""
    seconds = {case.name: costs.second_ms(case) for case in CASES}
    ns3 = {case.name: cost for case in CASES if (cost := costs.ns3_ms(case)) is not None}
    whole_s = min(costs.whole_s)
    segment_us = {name: median(spent) * 1e6 for name, spent in costs.segment_s.items()}
    return {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release()},
        "commit": commit(),
        "start_ms": min(costs.start_s) * 1e3,
        "command_ms": min(costs.command_s) * 1e3,
        "L100M_ms": {"command": whole_s[0] * 1e3, "guest": whole_s[1] * 1e3},
        "report_ms": min(costs.report_s) * 1e3,
        "ms_per_loaded_second": seconds,
        "ns3_ms_per_loaded_second": ns3,
        "ns3_ratio": {name: cost / seconds[name] for name, cost in ns3.items()},
        "segment_us": segment_us,
        "program_us": {name: median(spent) * 1e6 for name, spent in costs.program_s.items()},
        "native_ratio": segment_us["guest"] / segment_us["native"] if "native" in segment_us else None,
        "peak_mib": costs.peak_mib,
        "measurement_ratio": {
            "command": whole_s[0] / min(costs.bare_s),
            "loaded second": seconds[SAMPLED_CASE] / seconds[WITHOUT_SAMPLES],
        },
        "repetitions": len(costs.start_s),
    }


def pace(data: dict[str, Any], reference: dict[str, Any]) -> float:
    """How many times as long this machine takes as the reference's did: the geometric mean over ns-3's cases."""
    now, then = data["ns3_ms_per_loaded_second"], reference["ns3_ms_per_loaded_second"]
    return geometric_mean([now[name] / then[name] for name in now.keys() & then.keys()])


def changes(data: dict[str, Any], reference: dict[str, Any]) -> dict[str, float]:
    """By case, wall time now as a multiple of what the reference would take on this machine, by ns-3's times."""
    now, then = data["ms_per_loaded_second"], reference["ms_per_loaded_second"]
    factor = pace(data, reference)
    return {name: now[name] / (then[name] * factor) for name in now.keys() & then.keys()}


def show(data: dict[str, Any], reference: dict[str, Any], console: Console) -> None:
    """Prints the tables."""
    table = Table(title="wall ms per second under load", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("Hourglass", "x real time", "at most", "x before", "ns-3", "x ns-3", "MiB"):
        table.add_column(column, justify="right")
    changed = changes(data, reference)
    for case in CASES:
        cost_ms, ns3_ms = data["ms_per_loaded_second"][case.name], data["ns3_ms_per_loaded_second"].get(case.name)
        target = "" if case.target_ms is None else f"{case.target_ms:g}"
        before = f"{changed[case.name]:.2f}" if case.name in changed else ""
        beside = ("", "") if ns3_ms is None else (f"{ns3_ms:,.0f}", f"{ns3_ms / cost_ms:.1f}")
        mib = f"{data['peak_mib'][case.name]:.0f}"
        table.add_row(case.name, f"{cost_ms:,.1f}", f"{1e3 / cost_ms:.2g}", target, before, *beside, mib)
    console.print(table)
    console.print()
    at_least, at_most = NS3_SLOWER
    whole, extra, segment = data["L100M_ms"], data["measurement_ratio"], data["segment_us"]
    native = "not permitted here"
    if data["native_ratio"] is not None:
        native = f"{segment['native']:.1f} us natively: x {data['native_ratio']:.2f} ({segment['native_whole']:.1f} us"
        native += " with TCP's skbs never cut)"
    done = data.get("program_us")  # a bench of before has none
    told = "not measured"
    if done is not None:
        told = f"{done['call']:.1f} us of CPU a system call, {done['clock']:.1f} us a look at a clock, "
        told += f"{done['fault']:.0f} us mmap(), fault and munmap(), "
        told += f"{done['fork'] / 1e3:.2f} ms fork() and exit, {done['exec'] / 1e3:.2f} ms with an exec(); "
        told += f"iperf3 x {done['iperf3'] / done['flow']:.1f} of a built-in flow"
    for name, text in {
        "start": f"{data['start_ms']:.0f} ms: boot, set-up of three nodes, 1 s of pings",
        "command": f"{data['command_ms']:.0f} ms: the same as `hourglass run`, from start to exit",
        "L100M": f"{whole['command']:.0f} ms: `hourglass run L100M`, table and picture; guest {whole['guest']:.0f} ms",
        "report": f"{data['report_ms']:,.0f} ms: `hourglass report` about {REPORTED} such runs",
        "measuring": f"x {extra['command']:.2f}: L100M with all default measurements over none, whole command; "
        f"x {extra['loaded second']:.2f}: a loaded second of {SAMPLED_CASE}",
        "segment": f"{segment['guest']:.1f} us of CPU per data segment over three nodes; {native}",
        "programs": told,
        "ours": f"the least of {data['repetitions'] * AT_ONCE} runs; segments: the median of {data['repetitions']}; "
        "MiB: the guest kernel's most resident memory",
        "before": f"{reference['commit']} on {reference['machine']['processor']}; ns-3 takes "
        f"{pace(data, reference):.2f} times as long here, and so much longer it would take",
        "ns-3": f"its wheel, run here; takes {at_least:g} to {at_most:g} times as long as an optimised build",
    }.items():
        console.print(f"{name:9} {text}", highlight=False, soft_wrap=True)


def processor() -> str:
    """The model name of the first core."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str | None:
    """What `git describe` calls the sources, or None outside a repository."""
    words = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    return found.stdout.strip() or None
