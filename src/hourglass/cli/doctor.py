# SPDX-License-Identifier: Apache-2.0
"""`hourglass doctor`: the checks of the engine, and how to fix what is missing."""

from rich.text import Text

from hourglass.cli import output
from hourglass.engine import doctor
from hourglass.errors import HourglassError


def examine() -> int:
    """Prints every check; returns the exit status: 0 when all is there."""
    checks = doctor.check()
    for check in checks:
        lacking = Text("missing ", style="bold red") if check.needed else Text("without ", style="yellow")
        mark = Text("ok      ", style="green") if check.ok else lacking
        output.show(mark + Text(f"{check.name}: {check.detail}"), whole_lines=True)
        if not check.ok and check.remedy:
            output.show(f"        to fix: {check.remedy}", whole_lines=True)
    return 0 if all(check.ok or not check.needed for check in checks) else HourglassError.status
