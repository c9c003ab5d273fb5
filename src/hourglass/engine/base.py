# SPDX-License-Identifier: Apache-2.0
"""What an engine is: a plan goes in, records come out. The engines there are stand in `engines.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.plan_apps import Root
from hourglass.contract.run import Kernel

Report = Callable[[float, float], None]
"""Progress of a run: seconds of test time reached, and of how many."""

Making = Callable[[float, str], None]
"""Progress of something that is made first: how far it is (0 to 1), and what is being done."""

Preload = Callable[[], object]
"""What the caller will need when the run is made: called in a thread of its own once the plan is at work, which takes a
while; no sooner, since a fork amid imports can hang."""


@dataclass(frozen=True)
class Outcome:
    """What there is to say about a complete run besides its records. `digest` is the SHA-256 of records.arrows,
    `apps_cpu_s` the time of the host's CPU by program."""

    wall_s: float
    virtual_s: float
    digest: str
    warnings: list[str] = field(default_factory=list)
    apps_cpu_s: dict[str, float] = field(default_factory=dict)


class Engine(Protocol):
    """Whoever executes plans, ready to do so."""

    @property
    def name(self) -> str:
        """What the command line calls it."""

    @property
    def capabilities(self) -> Capabilities:
        """What a plan for it may ask for."""

    @property
    def kernel(self) -> Kernel:
        """The kernel that it runs plans on."""

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: Making = lambda _, __: None) -> str:
        """What of the engine decides the records of a plan, with or without radios and programs, whose roots are made
        if need be. Raises as `run`."""

    def run(
        self, plan: Plan, place: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """Executes a plan; writes plan.json, records.arrows and console.log into `place`, which must exist.

        Raises InputError when a step that stems from the user's scenario failed, GuestError when another did or the
        engine itself, MissingError when this machine lacks something.
        """
