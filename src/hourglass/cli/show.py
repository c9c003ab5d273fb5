# SPDX-License-Identifier: Apache-2.0
"""`hourglass list` and `hourglass show`: the names that can be used, and what stands behind them.

The names come from where they are declared: scenarios, presets, tests, congestion controls and qdiscs from `scenario`,
kernels from `engine`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hourglass import plan as plans
from hourglass import scenario
from hourglass.cli import output
from hourglass.contract.kernels import KERNELS
from hourglass.contract.plan import BatchStep, EthtoolStep, Flow, Plan, ReachStep, Step, Stream, WriteStep
from hourglass.engine import engines
from hourglass.engine.kernel import store
from hourglass.errors import InputError

RUN = "hourglass run SCENARIO"


@dataclass(frozen=True)
class Entry:
    """Something with a name: what kind of thing it is, one line about it, and how it is used in a command."""

    kind: str
    name: str
    description: str
    use: str


def show_list() -> None:
    """Prints every name, by kind."""
    output.show(listing(entries()))


def show_name(name: str, settings: list[str], plan: bool, apply: str | None, engine: str, as_json: bool) -> None:
    """Prints what a name stands for; a scenario as the JSON that `hourglass run` takes again, or its plan."""
    found = [entry for entry in entries() if entry.name == name]
    if Path(name).is_file() or any(entry.kind == "scenario" for entry in found):
        if apply is not None:
            from hourglass.cli.apply import show_apply

            show_apply(scenario.load(name, settings), apply)
            return
        _show_scenario(name, settings, plan, engine, as_json)
        return
    if not found:
        raise InputError("NAME", name, "is neither a file nor a name that `hourglass list` knows")
    for option, given in (("--set", bool(settings)), ("--plan", plan), ("--apply", apply is not None)):
        if given:
            raise InputError("NAME", name, f"is a {found[0].kind}; {option} goes with scenarios only")
    for entry in found:
        if as_json:
            output.show_json({"kind": entry.kind, "name": entry.name, "description": entry.description})
        else:
            output.show(f"{entry.name} ({entry.kind}): {entry.description}", f"use: {entry.use}", whole_lines=True)


def _show_scenario(source: str, settings: list[str], plan: bool, engine: str, as_json: bool) -> None:
    resolved = scenario.load(source, settings)
    if not plan:
        print(resolved.to_json().decode(), end="")
        return
    built = plans.build(resolved, engines.chosen(engine).capabilities)
    if as_json:
        print(built.to_json().decode().rstrip("\n"))
    else:
        output.show("\n".join(lines_of(built)), whole_lines=True)


def lines_of(plan: Plan) -> list[str]:
    """The plan's set-up as command lines, each behind the node it runs in, then its streams."""
    lines = [f"{step.node or 'kernel'}: {line}" for step in plan.setup for line in _step_lines(step)]
    return [*lines, *(_stream_line(one) for one in plan.streams)]


def _stream_line(one: Stream) -> str:
    span = f"{one.start_ns / 1e9:g} s to {one.stop_ns / 1e9:g} s"
    if isinstance(one, Flow):
        return f"flow {one.name}: {one.client} connects to {one.server}, {one.sender} sends, {one.cc}, {span}"
    interval_ns: int | None = getattr(one, "interval_ns", None)
    pace = "one after the other" if interval_ns is None else f"every {interval_ns / 1e9:g} s"
    return f"{one.kind} {one.name}: {one.client} to {one.server}, {pace}, {span}"


def _step_lines(step: Step) -> list[str]:
    match step:
        case BatchStep():
            return [f"{step.do} {line}" for line in step.lines]
        case WriteStep():
            return [f"echo {step.value} > {step.path}"]
        case EthtoolStep():
            return [f"ethtool {' '.join(step.args)}"]
        case ReachStep():
            return [f"ping {step.address} until it answers, at most {step.timeout_ns / 1e9:g} s"]
        case other:
            return [f"{other.do} {json.dumps(other.model_dump(exclude={'do', 'node'}))}"]


def entries() -> list[Entry]:
    """Everything that has a name, in the order in which it is listed."""
    built = {kernel.name: kernel for kernel in store.kernels()}
    found = [Entry("scenario", name, about, f"hourglass run {name}") for name, about in scenario.builtin()]
    found += [Entry("testbed", name, about, f"{RUN} --set testbed.preset={name}") for name, about in scenario.presets()]
    found += [
        Entry("test", name, _test(kind), f"{RUN} --set test.name={name}") for name, kind in scenario.TESTS.items()
    ]
    for name in dict.fromkeys((*KERNELS, *built)):
        about = f"Linux {built[name].release}, built" if name in built else "built when it is first used"
        found.append(Entry("kernel", name, about, f"{RUN} --kernel {name}"))
    about = "the kernel's own; `--set test.flow_cc` sets it per flow"
    found += [
        Entry("congestion control", name, about, f"{RUN} --set stack.cc={name}")
        for name in scenario.CONGESTION_CONTROLS
    ]
    about = "the kernel's own; a whole tc line may be given, with the parameters of `man tc`"
    return found + [Entry("qdisc", name, about, f"{RUN} --set stack.qdisc={name}") for name in scenario.QDISCS]


def _test(kind: scenario.testkinds.TestKind) -> str:
    """A test's description with its parameters."""
    return f"{kind.description} Parameters: {', '.join(kind.parameters)}." if kind.parameters else kind.description


DESCRIBED = {"scenario": "Scenarios", "testbed": "Testbed presets", "test": "Tests", "kernel": "Kernels"}
NAMED = {"congestion control": "Congestion controls", "qdisc": "Qdiscs"}


def listing(found: list[Entry]) -> Group:
    """The names by kind: with their descriptions where they have some of their own, else in a row."""
    parts: list[RenderableType] = []
    for kind, heading in (DESCRIBED | NAMED).items():
        members = [entry for entry in found if entry.kind == kind]
        listed: RenderableType = Text(", ".join(entry.name for entry in members))
        if kind in DESCRIBED:
            listed = output.listing((entry.name, entry.description) for entry in members)
        parts += [Text(heading, style="bold"), Padding(listed, (0, 0, 1, 2))]
    return Group(*parts, Text("hourglass show NAME tells more"))
