# SPDX-License-Identifier: Apache-2.0
"""An engine that needs no guest: it writes synthetic records, or fails on request."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from results import synthetic

from hourglass.cli.exit_status import guarded
from hourglass.contract.run_json import Kernel
from hourglass.engine import engines
from hourglass.engine.base import Outcome
from hourglass.engine.virtual import Virtual


class FakeScenario(SimpleNamespace):
    """The part of a scenario that the runner reads."""

    module = ()
    app = ()

    def unchecked(self) -> "FakeScenario":
        return FakeScenario(**vars(self) | {"check": {}})

    def to_json(self) -> bytes:
        dump = {"name": self.name, "kernel": self.kernel, "seed": self.seed, "test": vars(self.test)}
        dump |= {"check": self.check} if self.check else {}
        return json.dumps(dump, sort_keys=True).encode()


@dataclass
class FakeEngine:
    """Replaces planning and the guest. If `fail` is set, it is called with the run directory."""

    recipe: synthetic.Recipe = field(default_factory=synthetic.Recipe)
    fail: Callable[[Path], None] | None = None
    runs: int = 0
    name: ClassVar = "virtual"
    capabilities: ClassVar = Virtual.capabilities
    kernel: ClassVar = Kernel("6.1", "6.1.192", "0123456789abcdef")

    def scenario(self, source: str = "synthetic", settings: Any = (), *, seed: Any = None, kernel: Any = None) -> Any:
        recipe = self.recipe
        test = SimpleNamespace(
            name="tcp_nup", client="client", server="server", length=recipe.length, delay=recipe.delay, step=recipe.step
        )
        return FakeScenario(name=source, kernel=kernel or "6.1", seed=seed or 1, test=test, check=recipe.checks)

    def plan(self, scenario: Any, able: Any) -> Any:
        return synthetic.plan(self.recipe)

    def identity(self, radios: bool, roots: Any = (), report: Any = None) -> str:
        return "0123456789abcdef"

    def run(self, plan: Any, folder: Path, **options: Any) -> Outcome:
        self.runs += 1
        (folder / "plan.json").write_bytes(plan.to_json())
        (folder / "console.log").write_text("booted\n")
        if self.fail is not None:
            self.fail(folder)
        pieces = [(t["table"], t["rows"]) for t in synthetic.tables(self.recipe)]
        synthetic.write_records(folder / "records.arrows", pieces)
        digest = hashlib.sha256((folder / "records.arrows").read_bytes()).hexdigest()
        return Outcome(wall_s=1.25, virtual_s=14.0, digest=digest)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    from hourglass import runner, scenario

    fake = FakeEngine()
    monkeypatch.setattr(scenario, "load", fake.scenario)
    monkeypatch.setattr(runner.plans, "build", fake.plan)
    monkeypatch.setitem(engines.ENGINES, "virtual", engines.EngineKind(Virtual.capabilities, lambda *_: fake))
    return fake


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command in this process and returns (status, stdout, stderr)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = guarded([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run
