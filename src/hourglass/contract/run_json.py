# SPDX-License-Identifier: Apache-2.0
"""`run.json`: the engine, kernel and outcome of a run. The runner writes it, `results/` reads it."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal[1] = 1
FLENT: Final = "flent"
"""The engine's name of data that Flent measured elsewhere."""


class RunJsonPart(BaseModel):
    """A part of run.json. Later versions may add keys; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


@dataclass(frozen=True)
class Kernel:
    """The kernel that runs a plan. `name`: as in a scenario. `key`: the digest of all build inputs, or "" if Hourglass
    did not build it."""

    name: str
    release: str
    key: str
    tuned: bool = field(default=True, kw_only=True)
    """Whether Hourglass built it with PGO. A kernel without PGO gives the same records, more slowly."""


@dataclass(frozen=True)
class HostLoad:
    """The load of a machine during a run: shares of the time of all its CPUs in %. `others`: other processes;
    `stolen`: other guests of its hypervisor."""

    busy: float
    others: float
    stolen: float


class RunInfo(RunJsonPart):
    """A complete run."""

    schema_: Literal[1] = Field(alias="schema")
    version: str = ""
    """The version of Hourglass that made the run; "" for versions that did not write it."""
    status: Literal["complete"]
    engine: str
    kernel: Kernel
    identity: str
    """The part of the engine that decides the records: for a guest the keys of kernel and root; "" if not known."""
    seed: int | None
    virtual_s: float
    wall_s: float
    digest: str
    """SHA-256 of the records."""
    results: str
    """The digest of the code that wrote `summary.json`; "" if none exists."""
    warnings: list[str]
    apps_cpu_s: dict[str, float] = {}
    """The CPU time of each program on the host, if counted. Like `wall_s` it differs between runs."""
    sandbox: list[str] = []
    """The layers that confined the guest on the host, like "landlock 7" and "seccomp"."""
    host_load: HostLoad | None = None
    """The load of this machine, if the run was on its own kernel."""

    @property
    def elsewhere(self) -> bool:
        """Return whether another tool made the run."""
        return self.engine == FLENT


class FailedRun(RunJsonPart):
    """A run that failed, and why."""

    schema_: Literal[1] = Field(alias="schema")
    version: str = ""
    status: Literal["failed"]
    error: str
    code: str = ""
    """The cause (docs/reference/errors.md); "" for versions that did not write it."""
    fields: dict[str, Any] = {}
    """The values of the message."""
    engine: str | None = None
    kernel: Kernel | None = None
    identity: str = ""
    seed: int | None = None
    sandbox: list[str] = []
    """As of a complete run."""
