# SPDX-License-Identifier: Apache-2.0
"""`make fuzz N=1000 SEED=1`: the runs of N random scenarios, over all kernels, as many at a time as there are CPUs.

runs/fuzz/SEED.done lists the completed cases, so that an interrupted fuzz continues there. A finding is shrunk and
written to runs/fuzz/SEED-NUMBER.toml, which `hourglass run` accepts. Exit status 1: findings exist.
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from multiprocessing import get_context

from hourglass.contract.kernels import KERNELS
from hourglass.errors import program

from .case import FOLDER, case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random scenarios as runs.")
    parser.add_argument("-n", type=int, default=1000, help="how many")
    parser.add_argument("--seed", default="1", help="of which series")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="on which kernels, in turn")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="at a time")
    arguments = parser.parse_args()
    kernels = arguments.kernels.split(",")
    FOLDER.mkdir(parents=True, exist_ok=True)
    done_file = FOLDER / f"{arguments.seed}.done"
    results = dict(json.loads(line) for line in done_file.read_text().splitlines()) if done_file.exists() else {}
    remaining = [number for number in range(arguments.n) if str(number) not in results]
    if results:
        print(f"{len(results)} were done before", flush=True)
    began = time.monotonic()
    make_case = partial(case, arguments.seed, kernels)
    # ProcessPoolExecutor renews its processes too, but of Python 3.11 it stops when two are due at once.
    with get_context("spawn").Pool(arguments.jobs, maxtasksperchild=50) as pool, done_file.open("a") as log:
        for count, (number, problem) in enumerate(pool.imap_unordered(make_case, remaining), 1):
            results[str(number)] = problem
            log.write(json.dumps([str(number), problem]) + "\n")
            log.flush()
            if problem and not problem.startswith("refused"):
                print(f"\n{FOLDER}/{arguments.seed}-{number}.toml: {problem}", flush=True)
            pace = (time.monotonic() - began) / count
            print(f"\r{count} of {len(remaining)}, {pace:.1f} s each ", end="", file=sys.stderr, flush=True)
    return verdict(results)


def verdict(results: dict[str, str | None]) -> int:
    """Print the counts. Return the exit status."""
    refusals = sum(bool(problem) and problem.startswith("refused") for problem in results.values() if problem)
    findings = {number: problem for number, problem in results.items() if problem and not problem.startswith("refused")}
    print(f"\n{len(results)} scenarios, {refusals} refused by a tool, {len(findings)} findings")
    for number, problem in sorted(findings.items(), key=lambda finding: int(finding[0])):
        print(f"  {number}: {problem}")
    return int(bool(findings))


if __name__ == "__main__":
    program(main)
