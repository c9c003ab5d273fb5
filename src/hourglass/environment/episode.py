# SPDX-License-Identifier: Apache-2.0
"""A run that stops at each decision of its plan.

The run is made in a thread. At a decision the guest's clock stands, and the caller gets the state of the senders. Its
steps let the clock go on until the next decision.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from hourglass import runner
from hourglass.contract.plan import DecisionStep, EventStep, PlanEvent
from hourglass.engine.console import Event
from hourglass.engine.virtual import Virtual
from hourglass.results.recording import Recording


class _Abandoned(BaseException):
    """The caller wants no further decision. It is no error, so nothing of the run stays."""


class Episode:
    """The run of a scenario, with decisions about a node at `times_ns`, in order. `directory`: of the run."""

    def __init__(self, prepared: runner.Prepared, node: str, times_ns: Sequence[int], directory: Path) -> None:
        assert isinstance(prepared.engine, Virtual)
        decisions = [_decision(node, number, at_ns) for number, at_ns in enumerate(times_ns)]
        events = sorted([*prepared.plan.events, *decisions], key=lambda event: event.at_ns)
        self._prepared = replace(
            prepared,
            plan=prepared.plan.model_copy(update={"events": events}),
            engine=replace(prepared.engine, controller=self._decide),
        )
        self._directory = directory
        self._reports: SimpleQueue[Event | Recording | BaseException] = SimpleQueue()
        self._answers: SimpleQueue[Sequence[EventStep] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> Event | Recording:
        """Start the run. Return the first decision's event; the run, if there is none."""
        self._thread.start()
        return self._next()

    def decide(self, steps: Sequence[EventStep]) -> Event | Recording:
        """Return the next decision's event; after the last decision, the complete run. Raises like `runner.run`."""
        self._answers.put(steps)
        return self._next()

    def abandon(self) -> None:
        """End the run, unless it is complete."""
        self._answers.put(None)
        self._thread.join()

    def _next(self) -> Event | Recording:
        report = self._reports.get()
        if isinstance(report, BaseException):
            raise report
        return report

    def _run(self) -> None:
        try:
            self._reports.put(runner.make(self._prepared, self._directory))
        except BaseException as error:
            self._reports.put(error)

    def _decide(self, event: Event) -> Sequence[EventStep]:
        self._reports.put(event)
        steps = self._answers.get()
        if steps is None:
            raise _Abandoned
        return steps


def _decision(node: str, number: int, at_ns: int) -> PlanEvent:
    step = DecisionStep(do="decision", node=node, number=number, origin=None)
    return PlanEvent(at_ns=at_ns, node=node, name=f"decision {number}", steps=[step])
