# SPDX-License-Identifier: Apache-2.0
"""Run a plan on hosts that ssh reaches, in real time: coordinate the agent on each of them.

Results are neither repeatable nor exact: the hosts, their cables and their other load affect them."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import ClassVar, Self

from hourglass.builders import agent
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.plan.apps import Root
from hourglass.contract.run_json import Kernel
from hourglass.engine import host_tools
from hourglass.engine.base import BuildReport, Outcome, Preload, Report


@dataclass
class Ssh:
    """The engine that runs a plan on the hosts that it names."""

    name: ClassVar = "ssh"
    capabilities: ClassVar = Capabilities(
        nic="real", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
    )
    releases: dict[str, str] = field(default_factory=dict)
    """The kernel releases of the inspected hosts, by node."""

    @classmethod
    def ready(cls) -> Self:
        """Return the engine, if this machine has ssh. Raises MissingError."""
        if (problem := host_tools.lacking("ssh runs", {"ssh": "openssh-client"})) is not None:
            raise problem
        return cls()

    @property
    def kernel(self) -> Kernel:
        return Kernel("hosts", ", ".join(sorted(set(self.releases.values()))) or "of the hosts", "")

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: BuildReport = lambda _, __: None) -> str:
        """Return the engine's name; nothing else that affects the records is known."""
        return self.name

    def run(
        self, plan: Plan, directory: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """Execute a plan; see `Engine.run`."""
        # imported here: other engines need neither numpy nor pyarrow. The start of a guest must not load `logging`,
        # which reports an interrupted fork
        from hourglass.engine.ssh import split
        from hourglass.engine.ssh.coordinator import Coordinator
        from hourglass.engine.ssh.inspection import inspect_all
        from hourglass.engine.ssh.merge import merge

        start = time.monotonic()
        (directory / "plan.json").write_bytes(plan.to_json())
        hosts = split.hosts(plan)
        inspections = inspect_all(plan, hosts)
        self.releases = {inspection.host.node: inspection.release for inspection in inspections}
        binaries = {
            architecture: agent.binary(architecture).read_bytes()
            for architecture in {inspection.machine for inspection in inspections}
        }
        agents = {inspection.host.node: binaries[inspection.machine] for inspection in inspections}
        if preload is not None:
            Thread(target=preload, daemon=True).start()
        with (directory / "console.log").open("wb") as log:
            coordinator = Coordinator(plan, directory, agents, progress or (lambda _, __: None), log)
            parts, end_ns = coordinator.run()
        out = directory / "records.arrows"
        warnings = [line for inspection in inspections for line in inspection.warnings] + merge(plan, parts, out)
        for part in parts:
            part.records.unlink()
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        return Outcome(time.monotonic() - start, end_ns / 1e9, digest, warnings)
