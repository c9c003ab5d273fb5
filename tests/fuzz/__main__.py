# SPDX-License-Identifier: Apache-2.0
"""`make fuzz N=1000 SEED=1`: the runs of N random scenarios, over all kernels, as many at a time as there are CPUs.

What was done is noted in runs/fuzz/SEED.done, so that a fuzz that was interrupted goes on where it was. A finding is
shrunk and written to runs/fuzz/SEED-NUMBER.toml, which `hourglass run` takes. Exit status 1: there are findings.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from hourglass.contract.kernels import KERNELS

from .draw import Data, draw
from .judge import kind, wrong
from .shrink import shrunk

PLACE = Path("runs/fuzz")


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random scenarios as runs.")
    words.add_argument("-n", type=int, default=1000, help="how many")
    words.add_argument("--seed", default="1", help="of which series")
    words.add_argument("--kernels", default=",".join(KERNELS), help="on which kernels, in turn")
    words.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="at a time")
    asked = words.parse_args()
    kernels = asked.kernels.split(",")
    PLACE.mkdir(parents=True, exist_ok=True)
    done = PLACE / f"{asked.seed}.done"
    results = dict(json.loads(line) for line in done.read_text().splitlines()) if done.exists() else {}
    left = [number for number in range(asked.n) if str(number) not in results]
    if results:
        print(f"{len(results)} were done before", flush=True)
    began = time.monotonic()
    with ProcessPoolExecutor(asked.jobs, max_tasks_per_child=50) as pool, done.open("a") as log:
        futures = [pool.submit(case, asked.seed, number, kernels[number % len(kernels)]) for number in left]
        for count, future in enumerate(as_completed(futures), 1):
            number, said = future.result()
            results[str(number)] = said
            log.write(json.dumps([str(number), said]) + "\n")
            log.flush()
            if said and not said.startswith("refused"):
                print(f"\n{PLACE}/{asked.seed}-{number}.toml: {said}", flush=True)
            pace = (time.monotonic() - began) / count
            print(f"\r{count} of {len(left)}, {pace:.1f} s each ", end="", file=sys.stderr, flush=True)
    return verdict(results)


def verdict(results: dict[str, str | None]) -> int:
    """Tells how many; the exit status."""
    refusals = sum(bool(said) and said.startswith("refused") for said in results.values() if said)
    findings = {number: said for number, said in results.items() if said and not said.startswith("refused")}
    print(f"\n{len(results)} scenarios, {refusals} refused by a tool, {len(findings)} findings")
    for number, said in sorted(findings.items(), key=lambda one: int(one[0])):
        print(f"  {number}: {said}")
    return int(bool(findings))


def case(seed: str, number: int, kernel: str) -> tuple[int, str | None]:
    """Makes one; what was wrong is shrunk and written down."""
    data = draw(f"{seed} {number}", kernel)
    said = wrong(data)
    if said and not said.startswith("refused"):
        write(PLACE / f"{seed}-{number}.toml", data, said)  # in case shrinking is interrupted
        less = shrunk(data, lambda one: kind(wrong(one) or "") == kind(said))
        write(PLACE / f"{seed}-{number}.toml", less, said)
    return number, said


def write(path: Path, data: Data, said: str) -> None:
    """The scenario as TOML."""
    comment = "".join(f"# {line}\n" for line in said.splitlines())
    path.write_text(f"# SPDX-License-Identifier: Apache-2.0\n{comment}" + toml(data))


def toml(data: Data) -> str:
    """Keys whose values are tables come last, as tables of their own; below them all is inline."""
    plain = {key: one for key, one in data.items() if not isinstance(one, dict)}
    lines = [f"{key} = {inline(one)}" for key, one in plain.items()]
    for key, table in data.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]", *(f"{quoted(name)} = {inline(one)}" for name, one in table.items())]
    return "\n".join(lines) + "\n"


def inline(one: Any) -> str:
    if isinstance(one, dict):
        return "{ " + ", ".join(f"{quoted(key)} = {inline(inner)}" for key, inner in one.items()) + " }"
    if isinstance(one, list | tuple):
        return "[" + ", ".join(map(inline, one)) + "]"
    return json.dumps(one)


def quoted(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


if __name__ == "__main__":
    raise SystemExit(main())
