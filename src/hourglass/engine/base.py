# SPDX-License-Identifier: Apache-2.0
"""Declare the protocol of an engine: a plan goes in, records come out. `engines.py` lists the engines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.plan.apps import Root
from hourglass.contract.run_json import HostLoad, Kernel

Report = Callable[[float, float], None]
"""Progress of a run: seconds of test time reached, and the total."""

BuildReport = Callable[[float, str], None]
"""Progress of a build that a run needs first: the share done (0 to 1), and the current step."""

Preload = Callable[[], object]
"""Imports that the caller needs once the run is complete. It is called in a thread while the plan runs, and not before:
a fork during an import can hang."""


@dataclass(frozen=True)
class Outcome:
    """The facts about a complete run that are not in its records. `digest` is the SHA-256 of records.arrows,
    `apps_cpu_s` the CPU time of the host by program."""

    wall_s: float
    virtual_s: float
    digest: str
    warnings: list[str] = field(default_factory=list)
    apps_cpu_s: dict[str, float] = field(default_factory=dict)
    host_load: HostLoad | None = None


class Engine(Protocol):
    """An engine that is ready to execute plans."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def capabilities(self) -> Capabilities:
        """The features that a plan for this engine may use."""

    @property
    def kernel(self) -> Kernel:
        """The kernel that runs the plans."""

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: BuildReport = lambda _, __: None) -> str:
        """Return the part of a run's identity that the engine decides. Radios and programs decide it too; the roots of
        programs are built if needed. Raises as `run`."""

    def run(
        self, plan: Plan, directory: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """Execute a plan; write plan.json, records.arrows and console.log into `directory`, which must exist.

        Raises InputError if a step from the user's scenario failed, GuestError if another step or the engine failed,
        MissingError if this machine lacks something."""
