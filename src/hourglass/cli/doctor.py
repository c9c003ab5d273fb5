# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass doctor`: the checks of the engine, and the commands that fix them."""

from rich.text import Text

from hourglass import scenario
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.engine import doctor, native_doctor
from hourglass.errors import HourglassError


@examples("""\
hourglass doctor""")
def examine() -> int:
    """Check what this machine lacks, and print the commands that fix it."""
    natively = native_doctor.checks(scenario.QDISCS, scenario.CONGESTION_CONTROLS)
    checks = [*doctor.check(), *natively]
    for check in checks:
        lacking = Text("missing ", style="bold red") if check.needed else Text("lacks   ", style="yellow")
        mark = Text("ok      ", style="green") if check.ok else lacking
        output.show(mark + Text(f"{check.name}: {check.detail}"), whole_lines=True)
        if not check.ok and check.remedy:
            output.show(f"        to fix: {check.remedy}", whole_lines=True)
    return 0 if all(check.ok or not check.needed for check in checks) else HourglassError.status
