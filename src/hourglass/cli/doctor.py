# SPDX-License-Identifier: Apache-2.0
"""`hourglass doctor`: the checks of the engine, and how to fix what is missing."""

from rich.text import Text

from hourglass import scenario
from hourglass.cli import output
from hourglass.engine import doctor, native_doctor
from hourglass.engine.doctor import Check
from hourglass.errors import HourglassError, MissingError
from hourglass.report import library


def reports() -> Check:
    """Whether `hourglass report` can draw."""
    try:
        return Check("reports", True, f"Vega, {library.source()}", needed=False)
    except MissingError as problem:
        return Check("reports", False, problem.what, problem.remedy, needed=False)


def examine() -> int:
    """Prints every check; returns the exit status: 0 when all is there."""
    natively = native_doctor.checks(scenario.QDISCS, scenario.CONGESTION_CONTROLS)
    checks = [*doctor.check(), *natively, reports()]
    for check in checks:
        lacking = Text("missing ", style="bold red") if check.needed else Text("lacks   ", style="yellow")
        mark = Text("ok      ", style="green") if check.ok else lacking
        output.show(mark + Text(f"{check.name}: {check.detail}"), whole_lines=True)
        if not check.ok and check.remedy:
            output.show(f"        to fix: {check.remedy}", whole_lines=True)
    return 0 if all(check.ok or not check.needed for check in checks) else HourglassError.status
