# SPDX-License-Identifier: Apache-2.0
"""`hourglass run --dry-run`: every line that an engine would carry out, in order, each behind the node it runs in.
Nothing is touched, and no right is needed."""

from collections.abc import Iterator

from hourglass import plan as plans
from hourglass.cli import output
from hourglass.cli.show import lines_of, step_lines
from hourglass.contract.plan import KeepStep, Plan, TakeStep
from hourglass.engine import engines
from hourglass.engine.ssh import split
from hourglass.scenario import Scenario


def show_lines(scenario: Scenario, engine: str) -> None:
    """Prints the lines."""
    output.show("\n".join(lines(plans.build(scenario, engines.chosen(engine).capabilities))), whole_lines=True)


def lines(plan: Plan) -> Iterator[str]:
    """Nodes, set-up, streams, events, and what is given back at the end."""
    if hosts := split.hosts(plan):
        parts = [split.part(plan, host) for host in hosts]
        steps = [step for part in parts for step in part.setup]
        events = sorted((event for part in parts for event in part.events), key=lambda event: event.at_ns)
        plan = plan.model_copy(update={"setup": steps, "events": events})
    else:
        for node in plan.nodes:
            yield f"{node}: ip netns add {node}; ip link set lo up"
    yield from lines_of(plan)
    for event in plan.events:
        for step in event.steps:
            yield from (f"at {event.at_ns / 1e9:g} s, {step.node or 'kernel'}: {line}" for line in step_lines(step))
    for one in reversed(plan.setup):
        if isinstance(one, TakeStep):
            back = f"ip link set {one.device} netns 1 name {one.real}"
            yield f"at the end, {one.node}: {back}; then all that it had before"
        if isinstance(one, KeepStep):
            yield f"at the end, {one.node or 'kernel'}: {', '.join((*one.devices, *one.files))} as before"
