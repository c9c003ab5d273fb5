# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on machines that ssh reaches, in real time: `agent/` on each of them, conducted from here.

Results are neither repeatable nor exact: they are what those machines, their cables and their other work gave.
"""

import hashlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import ClassVar, Self

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.plan_apps import Root
from hourglass.contract.run import Kernel
from hourglass.engine import agent
from hourglass.engine.base import Making, Outcome, Preload, Report
from hourglass.errors import MissingError


@dataclass
class Ssh:
    """The machines that a plan names."""

    name: ClassVar = "ssh"
    capabilities: ClassVar = Capabilities(
        nic="real", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
    )
    releases: dict[str, str] = field(default_factory=dict)
    """The kernels of the machines that were looked at, by node."""

    @classmethod
    def ready(cls) -> Self:
        """The engine, if this machine has ssh. Raises MissingError."""
        if shutil.which("ssh") is None:
            raise MissingError("ssh is missing", "apt-get install -y openssh-client")
        return cls()

    @property
    def kernel(self) -> Kernel:
        return Kernel("hosts", ", ".join(sorted(set(self.releases.values()))) or "of the hosts", "")

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: Making = lambda _, __: None) -> str:
        """What else decides the records nobody can say."""
        return self.name

    def run(
        self, plan: Plan, place: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """`Engine.run`."""
        # no other engine's run is to wait for what they need, numpy and pyarrow among it; nor is `logging` to be loaded
        # when a guest begins, which complains where a fork is interrupted
        from hourglass.engine.ssh import check, split
        from hourglass.engine.ssh.conduct import Conductor
        from hourglass.engine.ssh.merge import merge

        begun = time.monotonic()
        (place / "plan.json").write_bytes(plan.to_json())
        hosts = split.hosts(plan)
        found = check.every(plan, hosts)
        self.releases = {one.host.node: one.release for one in found}
        binaries = {machine: agent.binary(machine).read_bytes() for machine in {one.machine for one in found}}
        agents = {one.host.node: binaries[one.machine] for one in found}
        if preload is not None:
            Thread(target=preload, daemon=True).start()
        with (place / "console.log").open("wb") as log:
            conductor = Conductor(plan, place, agents, progress or (lambda _, __: None), log)
            parts, end_ns = conductor.run()
        out = place / "records.arrows"
        warnings = [line for one in found for line in one.warnings] + merge(plan, parts, out)
        for part in parts:
            part.records.unlink()
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        return Outcome(time.monotonic() - begun, end_ns / 1e9, digest, warnings)
