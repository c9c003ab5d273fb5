# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measures and prints. `--quick`: once instead of three times. `--json`: one object."""

import argparse
import json
import sys

from rich.console import Console

from bench import measure, table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Hourglass's performance figures.")
    parser.add_argument("--quick", action="store_true", help="each run once instead of three times")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with Console(stderr=True).status("") as status:
        costs = measure.measure(1 if options.quick else 3, status.update)
    data = table.figures(costs)
    if options.json:
        json.dump(data, sys.stdout, indent=2)
        print()
    else:
        table.show(data, Console(width=None if sys.stdout.isatty() else 120))


if __name__ == "__main__":
    main()
