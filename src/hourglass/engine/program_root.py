# SPDX-License-Identifier: Apache-2.0
"""The roots of programs. Their packages are configured in a guest. A shell script runs there as root, with the folder
of the root as its `/`."""

from pathlib import Path

from hourglass.builders import approot
from hourglass.builders.approot.package_scripts import OUTPUTS, START_S
from hourglass.contract.kernels import DEFAULT
from hourglass.contract.plan import VERSION, Plan, Sampling
from hourglass.contract.plan.apps import Container, PlanApp, ReadyAtStart, Root
from hourglass.engine.base import BuildReport
from hourglass.engine.virtual import Virtual

SECOND_NS = 1_000_000_000
END_S = 3600
"""The longest time that the script may wait, s of virtual time."""

OUTPUT_BYTES = 16 << 20
NAME = "script"


def ready(root: Root, report: BuildReport = lambda _, __: None) -> approot.ReadyRoot:
    """Return the root as a folder, built if missing. Raises InputError, MissingError or HourglassError."""
    return approot.ready(root, run_script, report)


def run_script(root: Path, script: str, directory: Path) -> Path:
    """Run the script in a new folder `directory`; return the folder of its files `OUTPUTS`. Its output is in
    `directory`/apps/script.stdout and .stderr.

    It runs on the default kernel, at `START_S`. Raises GuestError, or MissingError if this machine runs no guests."""
    app = PlanApp(
        id=0, name=NAME, room=0, command=["/bin/sh", "-c", script], env={}, folder="/", user="root", stdin="",
        start_ns=START_S * SECOND_NS, after=[], stop_ns=None, stop_signal=15, grace_ns=0,
        ready=ReadyAtStart(when="start"), ready_ns=0, restarts=0, restart_ns=0, background=False,
        output_bytes=OUTPUT_BYTES, collect=[f"{OUTPUTS}/*"], origin=None,
    )  # fmt: skip
    plan = Plan(
        version=VERSION, seed=1, end_ns=END_S * SECOND_NS, nodes=["root"], setup=[], streams=[], paths=[],
        sampling=Sampling(tcp_ns=0, device_ns=0, totals_ns=0, packets=0), captures=[], radios=[], events=[],
        roots=[Root(kind="mount", place=str(root), packages=[])],
        rooms=[Container(node="root", root=0, mounts=[], files=[])], apps=[app], apps_end=True,
    )  # fmt: skip
    directory.mkdir(parents=True)
    Virtual.ready(DEFAULT).run(plan, directory)
    return directory / "apps" / NAME / OUTPUTS.lstrip("/")
