# SPDX-License-Identifier: Apache-2.0
"""`hourglass list` and `hourglass show`: the names that can be used, and what stands behind them.

The names come from where they are declared: scenarios, presets, tests, congestion controls and qdiscs from `scenario`,
kernels from `engine`.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hourglass import plan as plans
from hourglass import scenario
from hourglass.cli import output
from hourglass.contract.kernels import KERNELS, VARIANT
from hourglass.contract.plan import (
    AppStep,
    BatchStep,
    DaemonStep,
    Datagrams,
    EpochStep,
    EthtoolStep,
    EventStep,
    Flow,
    HostStep,
    IwStep,
    KeepStep,
    Plan,
    ReachStep,
    Step,
    Stream,
    TakeStep,
    TellStep,
    WriteStep,
)
from hourglass.engine import engines
from hourglass.engine.kernel import store
from hourglass.errors import InputError, closest
from hourglass.scenario.vocabulary import QDISCS_SINCE

RUN = "hourglass run SCENARIO"
LINES_SHOWN = 5
"""So many lines of what is written to a file, before the rest is counted."""
PACES_SHOWN = 4
"""So many spans of a datagram stream, before the rest is counted."""


@dataclass(frozen=True)
class Entry:
    """Something with a name: what kind of thing it is, one line about it, and how it is used in a command."""

    kind: str
    name: str
    description: str
    use: str


def show_list(kind: str | None, variants: bool) -> None:
    """Prints every name, by kind, or those of one kind; kernels built for tests only with `variants`."""
    known = {plural: one for one, (plural, _) in HEADINGS.items()}
    if kind is not None and kind not in known:
        raise InputError("KIND", kind, f"{closest(kind, known)}It is one of {', '.join(known)}")
    found = [one for one in entries() if kind is None or one.kind == known[kind]]
    output.show(listing([one for one in found if variants or one.kind != "kernel" or VARIANT not in one.name]))


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
    lines = [f"{step.node or 'kernel'}: {line}" for step in plan.setup for line in step_lines(step)]
    return [*lines, *(_stream_line(one) for one in plan.streams)]


def _stream_line(one: Stream) -> str:
    span = f"{_seconds(one.start_ns)} to {_seconds(one.stop_ns)}"
    if isinstance(one, Flow):
        pace = f", at most {one.pace_bps / 1e6:g} Mbit/s" if one.pace_bps else ""
        pace += f", writes {one.writes.rate_bps / 1e6:g} Mbit/s" if one.writes else ""
        return f"flow {one.name}: {one.client} connects to {one.server}, {one.sender} sends, {one.cc}{pace}, {span}"
    if isinstance(one, Datagrams):
        pace = _pace(one)
    else:
        interval_ns: int | None = getattr(one, "interval_ns", None)
        pace = "one after the other" if interval_ns is None else f"every {_seconds(interval_ns)}"
    return f"{one.kind} {one.name}: {one.client} to {one.server}, {pace}, {span}"


def _pace(one: Datagrams) -> str:
    """ "9 x 1200 B every 0.04 s (2.16 Mbit/s)", and from when on where that changes."""
    size_bits = one.burst * one.payload_bytes * 8
    packets = f"{one.burst} x {one.payload_bytes} B" if one.burst > 1 else f"{one.payload_bytes} B"
    paces = [
        f"every {_seconds(phase.interval_ns)} ({size_bits * 1e3 / phase.interval_ns:.4g} Mbit/s)"
        + (f" from {_seconds(phase.start_ns)}" if len(one.phases) > 1 else "")
        for phase in one.phases
    ]
    more = f", … ({len(paces)} spans)" if len(paces) > PACES_SHOWN else ""
    return f"{packets} {', '.join(paces[:PACES_SHOWN])}{more}"


def step_lines(step: Step | EventStep) -> list[str]:
    """A step as command lines."""
    match step:
        case BatchStep():
            return [f"{step.do} {line}" for line in step.lines]
        case WriteStep():
            return [f"echo {_abridged(step.value)} > {step.path}"]
        case EthtoolStep():
            return [f"ethtool {shlex.join(step.args)}"]
        case IwStep():
            until = f", until it says {step.says!r}, at most {_seconds(step.timeout_ns)}" if step.says else ""
            return [f"iw {shlex.join(step.args)}{until}"]
        case DaemonStep():
            config = ["  " + line for line in step.config.splitlines()]
            return [f"{step.tool}, until it says {step.ready!r}, with the configuration", *config]
        case TellStep():
            return [f"{step.tool}, at {step.socket}: {step.line}, until it says {step.says!r}"]
        case ReachStep():
            return [f"ping {step.address} until it answers, at most {_seconds(step.timeout_ns)}"]
        case EpochStep():
            return [f"echo the clock at test time 0, ns > {step.path}"]
        case AppStep():
            return [f"{step.act} program {step.app}"]
        case TakeStep():
            return [f"ip link set {step.real} netns {step.node} name {step.device}"]
        case KeepStep():
            kept, made = ", ".join([*step.devices, *step.files]), ", ".join(step.made)
            return [f"# given back as they are: {kept or 'nothing'}; deleted at the end: {made or 'nothing'}"]
        case HostStep():
            return [f"ssh {step.destination} hourglass-agent --serve {step.node}"]
    assert_never(step)


def _abridged(value: str) -> str:
    """A value of a few lines, or the first of them: a trace has one for each change of a rate."""
    lines = value.splitlines()
    more = len(lines) - LINES_SHOWN
    return "\n".join([*lines[:LINES_SHOWN], f"… {more} more lines"] if more > 0 else lines)


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:g} s"


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
    return found + [
        Entry("qdisc", name, about + _since(name), f"{RUN} --set stack.qdisc={name}") for name in scenario.QDISCS
    ]


def _since(qdisc: str) -> str:
    """From which kernel on it is there, if not on all."""
    found = QDISCS_SINCE.get(qdisc)
    return f"; from Linux {found[0]}.{found[1]} on" if found else ""


def _test(kind: scenario.testkinds.TestKind) -> str:
    """A test's description with its parameters."""
    return f"{kind.description} Parameters: {', '.join(kind.parameters)}." if kind.parameters else kind.description


HEADINGS = {
    "scenario": ("scenarios", "Scenarios"),
    "testbed": ("testbeds", "Testbed presets"),
    "test": ("tests", "Tests"),
    "kernel": ("kernels", "Kernels"),
    "congestion control": ("ccs", "Congestion controls"),
    "qdisc": ("qdiscs", "Qdiscs"),
}
"""By kind: what `hourglass list` calls all of them, and what stands above them."""
IN_A_ROW = ("congestion control", "qdisc")
"""Kinds whose names have no description of their own."""


def listing(found: list[Entry]) -> Group:
    """The names by kind: with their descriptions where they have some of their own, else in a row."""
    parts: list[RenderableType] = []
    for kind, (_, heading) in HEADINGS.items():
        members = [entry for entry in found if entry.kind == kind]
        if not members:
            continue
        listed: RenderableType = output.listing((entry.name, entry.description) for entry in members)
        if kind in IN_A_ROW:
            listed = Text(", ".join(entry.name for entry in members))
        parts += [Text(heading, style="bold"), Padding(listed, (0, 0, 1, 2))]
    return Group(*parts, Text("hourglass show NAME tells more"))
