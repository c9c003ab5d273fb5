# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass doctor`: the checks of the engine, a guest of each built kernel, and the commands that fix what
fails."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from hourglass import runner, scenario
from hourglass.builders import agent
from hourglass.builders.kernel import registry
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.contract.kernels import VARIANT
from hourglass.engine import doctor, native_doctor
from hourglass.engine.doctor import MachineCheck
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError, HostError, HourglassError, MissingError

PROGRAM = "self-check"


@examples("""\
hourglass doctor""")
def examine() -> int:
    """Check what this machine lacks, start a guest of each built kernel, and print the commands that fix it."""
    complete = True
    for check in checks():
        lacking = Text("missing ", style="bold red") if check.needed else Text("lacks   ", style="yellow")
        mark = Text("ok      ", style="green") if check.ok else lacking
        output.show(mark + Text(f"{check.name}: {check.detail}"), whole_lines=True)
        if not check.ok and check.remedy:
            output.show(f"        to fix: {check.remedy}", whole_lines=True)
        complete = complete and (check.ok or not check.needed)
    return 0 if complete else HourglassError.status


def checks() -> Iterator[MachineCheck]:
    """Yield each check when it is complete."""
    machine = doctor.check()
    yield from machine
    if all(check.ok or not check.needed for check in machine) and agent.built() is not None:
        yield from (guest(kernel.name) for kernel in registry.kernels() if VARIANT not in kernel.name)
    yield from native_doctor.checks(scenario.QDISCS, scenario.CONGESTION_CONTROLS)


def guest(kernel_name: str) -> MachineCheck:
    """Start a guest whose only program tests floating point, a signal, threads and a child (`agent/src/self_check.rs`).
    The remedy is that of the run's error."""
    name = f"guest {kernel_name}"
    if (kernel := registry.current(kernel_name)) is None:
        return MachineCheck(name, True, "is built again on its next use")
    with tempfile.TemporaryDirectory(prefix="hourglass-doctor-") as temporary:
        folder = Path(temporary)
        (root := folder / "root").mkdir()
        shutil.copy(agent.binary(), root / PROGRAM)
        start = time.monotonic()
        try:
            status, text = _self_check(kernel, root, folder / "run")
        except (MissingError, HostError) as error:
            return MachineCheck.failed(name, error.lack if isinstance(error, HostError) else error)
        except HourglassError as error:
            return MachineCheck(name, False, str(error.with_log(None) if isinstance(error, GuestError) else error))
        wall_s = time.monotonic() - start
    if status != "exit 0":
        return MachineCheck(name, False, f"the program of Linux {kernel.release} ends with {status}: {text}")
    return MachineCheck(name, True, f"Linux {kernel.release} starts and runs a program, in {wall_s:.1f} s")


def _self_check(kernel: BuiltKernel, root: Path, out: Path) -> tuple[str, str]:
    """Return status and output of the program."""
    app = {"name": PROGRAM, "node": "node", "command": [f"/{PROGRAM}", "--self-check"]}
    loaded = scenario.load({"testbed": {"node": [{"name": "node"}]}, "apps": {"root": str(root)}, "app": [app]})
    engine = Virtual(kernel)
    plan = runner.planned(loaded, engine.name)
    program = runner.make(runner.Prepared(loaded, plan, engine, ""), out).apps[PROGRAM]
    return program.status, program.stdout.strip()
