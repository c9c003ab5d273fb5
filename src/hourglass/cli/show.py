# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass list` and `hourglass show`: the available names and their meanings.

The names come from their declarations: scenarios, presets, tests, congestion controls and qdiscs from `scenario`,
kernels from `engine`.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, assert_never

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hourglass import plan as plans
from hourglass import scenario
from hourglass.builders.kernel import registry
from hourglass.cli import kernel, notice, output
from hourglass.cli.help import examples
from hourglass.cli.options import Engine, Json, Settings, Variants
from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.kernels import KERNELS, VARIANT
from hourglass.contract.plan import (
    AppStep,
    BatchStep,
    DaemonStep,
    DatagramStream,
    DecisionStep,
    EpochStep,
    EthtoolStep,
    EventStep,
    FlowStream,
    HostStep,
    IwStep,
    KeepStep,
    Plan,
    ReachStep,
    Step,
    Stream,
    TakeStep,
    TellStep,
    ToolStep,
    WriteStep,
)
from hourglass.engine import engines
from hourglass.engine.ssh import split
from hourglass.errors import InputError, closest
from hourglass.scenario.vocabulary import QDISCS_SINCE
from hourglass.visible import visible, visible_json

RUN = "hourglass run SCENARIO"
LINES_SHOWN = 5
"""Lines of a written file, before the others are counted."""
PACES_SHOWN = 4
"""Spans of a datagram stream, before the others are counted."""


@dataclass(frozen=True)
class Entry:
    """A name: its kind, a line about it, and its use in a command."""

    kind: str
    name: str
    description: str
    use: str


@examples("""\
hourglass list
hourglass list tests""")
def show_list(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="scenarios, testbeds, tests, kernels, ccs (congestion controls) or qdiscs; default: all.",
        ),
    ] = None,
    variants: Variants = False,
) -> None:
    """List scenarios, testbeds, tests, kernels, congestion controls and qdiscs."""
    kinds = {plural: name for name, (plural, _) in HEADINGS.items()}
    if kind is not None and kind not in kinds:
        raise InputError("KIND", kind, f"{closest(kind, kinds)}A kind is one of {', '.join(kinds)}")
    if kind == HEADINGS["kernel"][0]:
        output.show(kernel.table(variants))
        return
    listed = [entry for entry in entries() if kind is None or entry.kind == kinds[kind]]
    output.show(listing([entry for entry in listed if variants or entry.kind != "kernel" or VARIANT not in entry.name]))


@examples("""\
hourglass show tcp_nup
hourglass show L100M --set stack.tsq=off
hourglass show L100M --plan
hourglass show L100M --apply client""")
def show_name(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A scenario or its file, a test, testbed, kernel, congestion control or qdisc."
        ),
    ],
    settings: Settings = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print every line that a run would execute, and its streams.")
    ] = False,
    apply: Annotated[
        str | None,
        typer.Option(
            metavar="NODE|all",
            help="Print sysctl and tc lines that configure a real machine like NODE, or a script for all nodes.",
        ),
    ] = None,
    engine: Engine = VIRTUAL,
    as_json: Json = False,
) -> None:
    """Show a scenario, test, testbed, kernel, congestion control or qdisc.

    For a scenario: every value that a run would use, or with --plan all its lines, in order. Nothing is executed.
    """
    matches = [entry for entry in entries() if entry.name == name]
    if Path(name).is_file() or any(entry.kind == "scenario" for entry in matches):
        if apply is not None:
            from hourglass.cli.apply_all import show_apply

            show_apply(scenario.load(name, settings or []), apply)
            return
        _show_scenario(name, settings or [], plan, engine, as_json)
        return
    if not matches:
        hint = closest(name, dict.fromkeys(entry.name for entry in entries()))
        raise InputError("NAME", name, f"no such file, and not a name of `hourglass list`. {hint}".strip())
    for option, present in (("--set", bool(settings)), ("--plan", plan), ("--apply", apply is not None)):
        if present:
            raise InputError("NAME", name, f"is a {matches[0].kind}; {option} needs a scenario")
    for entry in matches:
        if as_json:
            output.show_json({"kind": entry.kind, "name": entry.name, "description": entry.description})
        else:
            output.show(f"{entry.name} ({entry.kind}): {entry.description}", f"use: {entry.use}", whole_lines=True)


def _show_scenario(source: str, settings: list[str], plan: bool, engine: str, as_json: bool) -> None:
    resolved = scenario.load(source, settings)
    if Path(source).is_file():
        for line in notice.lines(resolved):
            print(visible(line), file=sys.stderr)
    if not plan:
        print(visible_json(resolved.to_json().decode()), end="")
        return
    built = plans.build(resolved, engines.get(engine).capabilities)
    if as_json:
        print(visible_json(built.to_json().decode()).rstrip("\n"))
    else:
        output.show("\n".join(plan_lines(built)), whole_lines=True)


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield all lines that an engine would execute, each after its node: nodes, set-up, streams, events, and the lines
    that restore the machine."""
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
    for done in reversed(plan.setup):
        if isinstance(done, TakeStep):
            command = f"ip link set {done.device} netns 1 name {done.real}"
            yield f"at the end, {done.node}: {command}; then its earlier state"
        if isinstance(done, KeepStep):
            yield f"at the end, {done.node or 'kernel'}: {', '.join((*done.devices, *done.files))} restored"


def lines_of(plan: Plan) -> list[str]:
    """Return the plan's set-up as command lines, each after its node, then its streams."""
    lines = [f"{step.node or 'kernel'}: {line}" for step in plan.setup for line in step_lines(step)]
    return [*lines, *(_stream_line(stream) for stream in plan.streams)]


def _stream_line(stream: Stream) -> str:
    span = f"{_seconds(stream.start_ns)} to {_seconds(stream.stop_ns)}"
    if isinstance(stream, FlowStream):
        pace = f", at most {stream.pace_bps / 1e6:g} Mbit/s" if stream.pace_bps else ""
        pace += f", writes {stream.writes.rate_bps / 1e6:g} Mbit/s" if stream.writes else ""
        ends = f"{stream.client} connects to {stream.server}, {stream.sender} sends"
        return f"flow {stream.name}: {ends}, {stream.cc}{pace}, {span}"
    if isinstance(stream, DatagramStream):
        pace = _pace(stream)
    else:
        interval_ns: int | None = getattr(stream, "interval_ns", None)
        pace = "one after another" if interval_ns is None else f"every {_seconds(interval_ns)}"
    return f"{stream.kind} {stream.name}: {stream.client} to {stream.server}, {pace}, {span}"


def _pace(stream: DatagramStream) -> str:
    """Return "9 x 1200 B every 0.04 s (2.16 Mbit/s)", with the start of each span if the pace changes."""
    size_bits = stream.burst * stream.payload_bytes * 8
    packets = f"{stream.burst} x {stream.payload_bytes} B" if stream.burst > 1 else f"{stream.payload_bytes} B"
    paces = [
        f"every {_seconds(phase.interval_ns)} ({size_bits * 1e3 / phase.interval_ns:.4g} Mbit/s)"
        + (f" from {_seconds(phase.start_ns)}" if len(stream.phases) > 1 else "")
        for phase in stream.phases
    ]
    more = f", … ({len(paces)} spans)" if len(paces) > PACES_SHOWN else ""
    return f"{packets} {', '.join(paces[:PACES_SHOWN])}{more}"


def step_lines(step: Step | EventStep) -> list[str]:
    """Return a step as command lines."""
    match step:
        case BatchStep() | ToolStep():
            return [f"{step.tool} {line}" for line in step.lines]
        case WriteStep():
            return [f"echo {_abridged(step.value)} > {step.path}"]
        case EthtoolStep():
            return [f"ethtool {shlex.join(step.args)}"]
        case IwStep():
            until = f", until it prints {step.says!r}, at most {_seconds(step.timeout_ns)}" if step.says else ""
            return [f"iw {shlex.join(step.args)}{until}"]
        case DaemonStep():
            config = ["  " + line for line in step.config.splitlines()]
            return [f"{step.tool}, until it prints {step.ready!r}, with the configuration", *config]
        case TellStep():
            return [f"{step.tool}, at {step.socket}: {step.line}, until it prints {step.says!r}"]
        case ReachStep():
            return [f"ping {step.address} until it answers, at most {_seconds(step.timeout_ns)}"]
        case EpochStep():
            return [f"echo the clock at test time 0, ns > {step.path}"]
        case AppStep():
            return [f"{step.act} program {step.app}"]
        case DecisionStep():
            return [f"# decision {step.number}: the steps that the controller chooses"]
        case TakeStep():
            return [f"ip link set {step.real} netns {step.node} name {step.device}"]
        case KeepStep():
            restored, deleted = ", ".join([*step.devices, *step.files]), ", ".join(step.made)
            return [f"# restored at the end: {restored or 'nothing'}; deleted at the end: {deleted or 'nothing'}"]
        case HostStep():
            return [f"ssh {step.destination} hourglass-agent --serve {step.node}"]
    assert_never(step)


def _abridged(value: str) -> str:
    """Return a value of a few lines, or its first lines: a trace has a line for each change of a rate."""
    lines = value.splitlines()
    more = len(lines) - LINES_SHOWN
    return "\n".join([*lines[:LINES_SHOWN], f"… {more} more lines"] if more > 0 else lines)


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:g} s"


def entries() -> list[Entry]:
    """Return all names in the order of the list."""
    built = {kernel.name: kernel for kernel in registry.kernels()}
    result = [Entry("scenario", name, description, f"hourglass run {name}") for name, description in scenario.builtin()]
    result += [
        Entry("testbed", name, description, f"{RUN} --set testbed.preset={name}")
        for name, description in scenario.presets()
    ]
    result += [
        Entry("test", name, _test(kind), f"{RUN} --set test.name={name}") for name, kind in scenario.TESTS.items()
    ]
    for name in dict.fromkeys((*KERNELS, *built)):
        description = f"Linux {built[name].release}, built" if name in built else "built on first use"
        result.append(Entry("kernel", name, description, f"{RUN} --kernel {name}"))
    description = "the kernel's default; `--set test.flow_cc` sets it per flow"
    result += [
        Entry("congestion control", name, description, f"{RUN} --set stack.cc={name}")
        for name in scenario.CONGESTION_CONTROLS
    ]
    description = "the kernel's default; you can give a whole tc line, with the parameters of `man tc`"
    queues = "--set testbed.link.0.nic=igb --set testbed.link.0.queues=4"
    result += [
        Entry("qdisc", name, description + _since(name), f"{RUN} --set stack.qdisc={name}") for name in scenario.QDISCS
    ]
    return result + [
        Entry(
            "qdisc", name, f"for NICs with several queues{_since(name)}", f"{RUN} {queues} --set 'stack.qdisc={name} …'"
        )
        for name in scenario.MULTIQUEUE_QDISCS
    ]


def _since(qdisc: str) -> str:
    """Return the first kernel with a qdisc, if not all have it."""
    version = QDISCS_SINCE.get(qdisc)
    return f"; from Linux {version[0]}.{version[1]} on" if version else ""


def _test(kind: scenario.testkinds.TestKind) -> str:
    """Return a test's description with its parameters."""
    return f"{kind.description} Parameters: {', '.join(kind.parameters)}." if kind.parameters else kind.description


HEADINGS = {
    "scenario": ("scenarios", "Scenarios"),
    "testbed": ("testbeds", "Testbed presets"),
    "test": ("tests", "Tests"),
    "kernel": ("kernels", "Kernels"),
    "congestion control": ("ccs", "Congestion controls"),
    "qdisc": ("qdiscs", "Qdiscs"),
}
"""By kind: its name for `hourglass list`, and the heading."""
IN_A_ROW = ("congestion control", "qdisc")
"""Kinds whose names have no separate descriptions."""


def listing(entries_shown: list[Entry]) -> Group:
    """Return the names by kind, with their descriptions or in a row."""
    parts: list[RenderableType] = []
    for kind, (_, heading) in HEADINGS.items():
        members = [entry for entry in entries_shown if entry.kind == kind]
        if not members:
            continue
        listed: RenderableType = output.listing((entry.name, entry.description) for entry in members)
        if kind in IN_A_ROW:
            listed = Text(", ".join(entry.name for entry in members))
        parts += [Text(heading, style="bold"), Padding(listed, (0, 0, 1, 2))]
    return Group(*parts, Text("for details: hourglass show NAME"))
