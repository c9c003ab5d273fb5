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
from functools import partial
from multiprocessing import get_context

from hourglass.contract.kernels import KERNELS

from .case import PLACE, case


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
    made = partial(case, asked.seed, kernels)
    # ProcessPoolExecutor renews its processes too, but of Python 3.11 it stops when two are due at once.
    with get_context("spawn").Pool(asked.jobs, maxtasksperchild=50) as pool, done.open("a") as log:
        for count, (number, said) in enumerate(pool.imap_unordered(made, left), 1):
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


if __name__ == "__main__":
    raise SystemExit(main())
