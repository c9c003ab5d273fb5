# SPDX-License-Identifier: Apache-2.0
"""Run everything on kernels that look for faults: `make soak`, or `python -m tests.soak [KERNEL …]`. It takes a night.

The variant `debug` has lockdep with RCU's rules, KASAN, UBSAN, and checks of timers and lists. The variant `leaks` has
kmemleak. It looks for lost memory after a minute of the guest's time, so its runs end with a minute of silence. Both
run all built-in scenarios, shortened, built-in scenarios with events, examples with programs, and random scenarios
(`tests/fuzz`). A run is clean if the kernel logs no warning and its counts agree (`tests/guest/accounts.py`).

The table has a row per run. Exit status 1: a run is not clean. `make test-all` builds only one of these kernels.
"""

import argparse
import re
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hourglass import plan, runner, scenario
from hourglass.builders.kernel import builder
from hourglass.contract.kernels import KERNELS
from hourglass.engine.virtual import Virtual
from hourglass.errors import HourglassError, InputError, program
from hourglass.resources import SCENARIOS
from hourglass.scenario import Scenario
from tests.fuzz.draw import draw
from tests.fuzz.judge import check_accounts

VARIANTS = {"5.10": ("leaks",), "6.1": ("debug", "leaks"), "6.12": ("debug", "leaks"), "7.3": ("debug", "leaks")}
"""User Mode Linux has KASAN since 6.0."""

BOOT_OPTIONS = {"leaks": ("kmemleak=on", "kmemleak.verbose=1", "ignore_loglevel")}
"""Options of the kernel's command line: it reports leaks at level info, which it does not print by default."""

SETTINGS = {"debug": ("test.length=3", "test.delay=1", "measure.tcp=0"), "leaks": ("test.length=3", "test.delay=70")}
"""debug: the probe asks sockets in a softirq, which lockdep cannot know to be safe (tests/guest/test_debug.py)."""

SHORTENED = {
    "wifi-ax": ("testbed.wifi.0.width=20", "testbed.wifi.0.streams=1"), "LR1000M": ("test.length=1",),
    "mobile": ("test.length=5",), "outage": ("test.length=15",), "rate-steps": ("test.length=22",),
    "lan": ("test.length=6",),
}  # fmt: skip
"""Overrides that make slow scenarios smaller. A built-in's events have to remain within it."""

ONLY_ON = {"wifi-ath9k-htc": ("5.10", "6.1"), "mptcp": ("6.1", "6.12", "7.3")}
"""Scenarios that run on some kernels only."""

MIDDLE: dict[str, list[dict[str, Any]]] = {
    "R100M": [
        {"at": 1.2, "node": "router", "tc": "qdisc replace dev eth1 root fq_codel"},
        {"at": 1.5, "node": "client", "link": "down"},
        {"at": 1.7, "node": "client", "link": "up"},
        {"at": 2.0, "node": "server", "cable": "pull"},
        {"at": 2.3, "node": "server", "cable": "plug"},
    ],
    "wifi-ath9k": [
        {"at": 1.2, "node": "client", "station": "leave"},
        {"at": 1.6, "node": "client", "station": "return"},
        {"at": 2.2, "node": "ap", "ap": "restart"},
    ],
}
"""Events that are added to built-ins."""

PROGRAMS = ("echo", "eyeballs", "mptcp", "nat", "redis", "web", "wireguard")
"""The short examples with programs."""

PROGRAM_SETTINGS = {"debug": ("measure.tcp=0",), "leaks": ("test.name=ping", "test.length=70")}
"""Settings of the examples with programs; kmemleak needs time to look."""

COMPLAINT = re.compile(r"kmemleak: [1-9]\d* new suspected|unreferenced object|UBSAN: |KASAN: |possible .*deadlock")


@dataclass(frozen=True)
class Case:
    """A scenario: its name in the table, its source and overrides."""

    name: str
    source: str | dict[str, Any]
    changes: tuple[str, ...] = ()


def cases(kernel: str, variant: str, random: int) -> Iterator[Case]:
    """Yield the cases of a kernel."""
    for path in sorted(SCENARIOS.glob("*.toml")):
        if kernel in ONLY_ON.get(path.stem, KERNELS):
            yield Case(path.stem, path.stem, (*SETTINGS[variant], *SHORTENED.get(path.stem, ())))
    for name, events in MIDDLE.items():
        data = scenario.load(name, SETTINGS[variant]).model_dump(mode="json") | {"event": events}
        yield Case(f"{name}, events", data)
    for name in PROGRAMS:
        if kernel in ONLY_ON.get(name, KERNELS):
            yield Case(name, str(SCENARIOS / "apps" / f"{name}.toml"), PROGRAM_SETTINGS[variant])
    for number in range(random):
        data = draw(f"soak {number}", kernel)
        if variant == "debug":
            data.setdefault("measure", {})["tcp"] = 0
        else:
            data["test"]["delay"] = 70
        yield Case(f"random {number}", data)


def problem_of(case: Case, kernel: str, engine: Virtual) -> str | None:
    """Return why a run is not clean, or None."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            loaded = scenario.load(case.source, case.changes, kernel=kernel)
            run = runner.make(prepared(loaded, engine), Path(folder) / "run")
            check_accounts(case.source if isinstance(case.source, dict) else {}, run)
        except InputError as error:
            return f"{'refused' if case.name.startswith('random') else 'it is refused'}: {str(error).splitlines()[0]}"
        except (HourglassError, AssertionError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{str(error).splitlines()[0] if str(error) else 'counts do not agree'} ({last.line})"
        console = (run.path / "console.log").read_text(errors="replace")
    complaint = COMPLAINT.search(console)
    if run.info.warnings or complaint:
        return "; ".join([*run.info.warnings[:2], *([_line(console, complaint.start())] if complaint else [])])
    return None


def prepared(loaded: Scenario, engine: Virtual) -> runner.Prepared:
    built_plan = plan.build(loaded, engine.capabilities)
    return runner.Prepared(loaded, built_plan, engine, engine.identity(bool(built_plan.radios)))


def _line(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    return " | ".join(line.strip() for line in text[begin : begin + 2000].splitlines()[:14])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Kernels that look for faults.")
    parser.add_argument("kernels", nargs="*", help="these alone; default: all")
    parser.add_argument("--variant", choices=sorted(SETTINGS), help="this alone")
    parser.add_argument("--random", type=int, default=100, help="random scenarios on each")
    arguments = parser.parse_args()
    rows = []
    for kernel in arguments.kernels or list(KERNELS):
        for variant in VARIANTS[kernel]:
            if arguments.variant in (None, variant):
                rows += soak(kernel, variant, arguments.random)
    print("\nnot clean:" if any(is_fault(problem) for *_, problem in rows) else f"\nall {len(rows)} runs are clean")
    for label, name, problem in rows:
        if is_fault(problem):
            print(f"  {label:12} {name:24} {problem}")
    return int(any(is_fault(problem) for *_, problem in rows))


def is_fault(problem: str | None) -> bool:
    """Tell whether a problem is a fault. A refused random scenario is none."""
    return problem is not None and not problem.startswith("refused: ")


def soak(kernel: str, variant: str, random: int) -> list[tuple[str, str, str | None]]:
    """Make the runs of a kernel. Return a row for each."""
    engine = Virtual(builder.build(kernel, variant=variant), BOOT_OPTIONS.get(variant, ()))
    label, rows = f"{kernel}+{variant}", []
    for case in cases(kernel, variant, random):
        began = time.monotonic()
        rows.append((label, case.name, problem := problem_of(case, kernel, engine)))
        print(f"{label:12} {case.name:24} {time.monotonic() - began:6.1f} s  {problem or 'clean'}", flush=True)
    return rows


if __name__ == "__main__":
    program(main)
