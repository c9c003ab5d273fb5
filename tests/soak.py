# SPDX-License-Identifier: Apache-2.0
"""Everything on kernels that look for faults: `make soak`, or `python -m tests.soak [KERNEL …]`. For a night.

The variant `debug` has lockdep with RCU's rules, KASAN, UBSAN, and checks of timers and lists; `leaks` has kmemleak,
which looks for lost memory after a minute of the guest's time, so its runs end with as long a silence. On these run all
built-in scenarios, shortened; built-ins with something done to them in the middle; examples with programs; and random
ones (tests/fuzz). A run is clean when the kernel complains of nothing and its counts agree (tests/guest/accounts.py).

The table has a row per run; exit status 1: something is not clean. `make test` builds none of these kernels but one.
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
from hourglass.contract.kernels import KERNELS
from hourglass.engine.kernel import build
from hourglass.engine.virtual import Virtual
from hourglass.errors import HourglassError, InputError
from hourglass.resources import SCENARIOS
from hourglass.scenario import Scenario
from tests.fuzz.draw import draw
from tests.fuzz.judge import check_accounts

VARIANTS = {"5.10": ("leaks",), "6.1": ("debug", "leaks"), "6.12": ("debug", "leaks"), "7.3": ("debug", "leaks")}
"""User Mode Linux has KASAN since 6.0."""

WORDS = {"leaks": ("kmemleak=on", "kmemleak.verbose=1", "ignore_loglevel")}
"""On the kernel's command line: it reports leaks as information, which is not shown else."""

SETTINGS = {"debug": ("test.length=3", "test.delay=1", "measure.tcp=0"), "leaks": ("test.length=3", "test.delay=70")}
"""debug: the probe asks sockets in a softirq, which lockdep cannot know to be safe (tests/guest/test_debug.py)."""

OWN = {
    "wifi-ax": ("testbed.wifi.0.width=20", "testbed.wifi.0.streams=1"), "LR1000M": ("test.length=1",),
    "mobile": ("test.length=5",), "outage": ("test.length=15",), "rate-steps": ("test.length=22",),
}  # fmt: skip
"""What is slow is made smaller; what is done in the middle of a built-in has to be within it."""

SOME = {"wifi-ath9k-htc": ("5.10", "6.1"), "mptcp": ("6.1", "6.12", "7.3")}
"""Those of some kernels alone."""

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
"""What is done to built-ins in the middle."""

PROGRAMS = ("echo", "eyeballs", "mptcp", "nat", "redis", "web", "wireguard")
"""Of the examples with programs, those that are short."""

BESIDE = {"debug": ("measure.tcp=0",), "leaks": ("test.name=ping", "test.length=70")}
"""For programs, as SETTINGS; kmemleak has to have time to look."""

COMPLAINT = re.compile(r"kmemleak: [1-9]\d* new suspected|unreferenced object|UBSAN: |KASAN: |possible .*deadlock")


@dataclass(frozen=True)
class Case:
    """A scenario by its name in the table, and as what it is loaded from."""

    name: str
    source: str | dict[str, Any]
    changes: tuple[str, ...] = ()


def cases(kernel: str, variant: str, random: int) -> Iterator[Case]:
    """What is run on a kernel."""
    for path in sorted(SCENARIOS.glob("*.toml")):
        if kernel in SOME.get(path.stem, KERNELS):
            yield Case(path.stem, path.stem, (*SETTINGS[variant], *OWN.get(path.stem, ())))
    for name, events in MIDDLE.items():
        data = scenario.load(name, SETTINGS[variant]).model_dump(mode="json") | {"event": events}
        yield Case(f"{name}, events", data)
    for name in PROGRAMS:
        if kernel in SOME.get(name, KERNELS):
            yield Case(name, str(SCENARIOS / "apps" / f"{name}.toml"), BESIDE[variant])
    for number in range(random):
        data = draw(f"soak {number}", kernel)
        if variant == "debug":
            data.setdefault("measure", {})["tcp"] = 0
        else:
            data["test"]["delay"] = 70
        yield Case(f"random {number}", data)


def wrong(case: Case, kernel: str, engine: Virtual) -> str | None:
    """What is not clean about a run; None: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            wanted = scenario.load(case.source, case.changes, kernel=kernel)
            run = runner.make(prepared(wanted, engine), Path(folder) / "run")
            check_accounts(case.source if isinstance(case.source, dict) else {}, run)
        except InputError as error:
            return f"{'refused' if case.name.startswith('random') else 'it is refused'}: {str(error).splitlines()[0]}"
        except (HourglassError, AssertionError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{str(error).splitlines()[0] if str(error) else 'counts do not agree'} ({last.line})"
        said = (run.path / "console.log").read_text(errors="replace")
    complaint = COMPLAINT.search(said)
    if run.info.warnings or complaint:
        return "; ".join([*run.info.warnings[:2], *([_line(said, complaint.start())] if complaint else [])])
    return None


def prepared(wanted: Scenario, engine: Virtual) -> runner.Prepared:
    made = plan.build(wanted, engine.capabilities)
    return runner.Prepared(wanted, made, engine, engine.identity(bool(made.radios)))


def _line(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    return " | ".join(line.strip() for line in text[begin : begin + 2000].splitlines()[:14])


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.soak", description="Kernels that look for faults.")
    words.add_argument("kernels", nargs="*", help="these alone; default: all")
    words.add_argument("--variant", choices=sorted(SETTINGS), help="this alone")
    words.add_argument("--random", type=int, default=100, help="random scenarios on each")
    asked = words.parse_args()
    rows = []
    for kernel in asked.kernels or list(KERNELS):
        for variant in VARIANTS[kernel]:
            if asked.variant in (None, variant):
                rows += soak(kernel, variant, asked.random)
    print("\nnot clean:" if any(bad(said) for *_, said in rows) else f"\nall {len(rows)} runs are clean")
    for label, name, said in rows:
        if bad(said):
            print(f"  {label:12} {name:24} {said}")
    return int(any(bad(said) for *_, said in rows))


def bad(said: str | None) -> bool:
    """A tool that refuses a random scenario is no fault."""
    return said is not None and not said.startswith("refused: ")


def soak(kernel: str, variant: str, random: int) -> list[tuple[str, str, str | None]]:
    """Makes the runs of one kernel; a row each."""
    engine = Virtual(build.build(kernel, variant=variant), WORDS.get(variant, ()))
    label, rows = f"{kernel}+{variant}", []
    for case in cases(kernel, variant, random):
        began = time.monotonic()
        rows.append((label, case.name, said := wrong(case, kernel, engine)))
        print(f"{label:12} {case.name:24} {time.monotonic() - began:6.1f} s  {said or 'clean'}", flush=True)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
