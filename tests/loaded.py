# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.loaded [N]`: repeats the tests that depend on real time N times, next to four busy processes.

These are the tests with the marker `real_time` (`tests/clocks.py`) and those of the agent. Exit status 1: one failed.
"""

import argparse

from hourglass.errors import program
from tests.__main__ import agent, parallel, real_time, run
from tests.repeat import busy_cpus

SPINNERS = 4
PARTS = [agent("--", "--include-ignored"), real_time(""), parallel("real_time")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.loaded", description="Tests on a busy machine.")
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    rounds = parser.parse_args().rounds
    failed = 0
    with busy_cpus(SPINNERS):
        for number in range(rounds):
            print(f"=== round {number + 1} of {rounds}", flush=True)
            failed += run(PARTS)
    print(f"{failed} of {rounds} rounds failed")
    return int(bool(failed))


if __name__ == "__main__":
    program(main)
