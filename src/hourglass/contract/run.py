# SPDX-License-Identifier: Apache-2.0
"""`run.json`: how a run was made and what came of it. The runner writes it, `results/` reads it."""

from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal[1] = 1
FLENT: Final = "flent"
"""In place of an engine: Flent measured it, elsewhere."""


class Part(BaseModel):
    """A part of run.json. Keys may be added at any time; one of a version to come is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


@dataclass(frozen=True)
class Kernel:
    """The kernel that runs a plan. `name`: what a scenario calls it; `key` stands for all that went into it ("": it is
    not ours)."""

    name: str
    release: str
    key: str
    tuned: bool = field(default=True, kw_only=True)
    """Whether it was built with PGO, if it is ours: a plain one computes the same, slower."""


class RunInfo(Part):
    """A complete run."""

    schema_: Literal[1] = Field(alias="schema")
    version: str = ""
    """The version of Hourglass that made the run; "": it did not say so yet."""
    status: Literal["complete"]
    engine: str
    kernel: Kernel
    identity: str
    """What of the engine decides the records: of a guest the keys of kernel and root. "": not known."""
    seed: int | None
    virtual_s: float
    wall_s: float
    digest: str
    """SHA-256 of the records."""
    results: str
    """The code that made `summary.json`; "" when there is none."""
    warnings: list[str]
    apps_cpu_s: dict[str, float] = {}
    """Time of the host's CPU that each program took, where it is counted: like `wall_s` no two runs have the same."""

    @property
    def elsewhere(self) -> bool:
        """Whether it is no run of Hourglass."""
        return self.engine == FLENT


class FailedRun(Part):
    """A run that failed, and why."""

    schema_: Literal[1] = Field(alias="schema")
    version: str = ""
    status: Literal["failed"]
    error: str
    engine: str | None = None
    kernel: Kernel | None = None
    identity: str = ""
    seed: int | None = None
