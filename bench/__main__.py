# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measures, prints beside an earlier run of the bench, and keeps the figures as JSON.

Figures go to runs/bench/COMMIT.json. What is printed as "before" is bench/reference.json, or what `--against` names.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from bench import measure, table

REFERENCE = Path(__file__).with_name("reference.json")
KEPT = Path("runs/bench")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Hourglass's performance figures.")
    parser.add_argument("--quick", action="store_true", help="each run once instead of three times")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--against", type=Path, default=REFERENCE, metavar="FILE", help="figures of an earlier run")
    options = parser.parse_args()
    try:
        reference = json.loads(options.against.read_text())
    except (OSError, ValueError) as error:
        parser.error(f"--against {options.against}: {error}; allowed: a file that the bench kept")
    with Console(stderr=True).status("") as status:
        costs = measure.measure(1 if options.quick else 3, status.update)
    data = table.figures(costs)
    kept = KEPT / f"{data['commit']}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=2)
    kept.write_text(f"{text}\n")
    if options.json:
        print(text)
    else:
        table.show(data, reference, Console(width=None if sys.stdout.isatty() else 120))
        print(f"kept      {kept}")


if __name__ == "__main__":
    main()
