# SPDX-License-Identifier: Apache-2.0
"""A plan as text that a person can read, for golden files: a line per line of a tool, write, flow and probe."""

from hourglass.plan import Plan
from hourglass.plan.model import BatchStep, DaemonStep, EpochStep, EthtoolStep, IwStep, ReachStep, Step, WriteStep


def plan_text(plan: Plan) -> str:
    """The whole plan."""
    lines = [f"nodes {' '.join(plan.nodes)}", f"end {plan.end_ns}"]
    lines += [line for step in plan.setup for line in step_lines(step)]
    for flow in plan.flows:
        way = f"{flow.client} {flow.server} {flow.address}:{flow.port} {flow.sender} sends {flow.cc}"
        lines.append(f"flow {flow.id} {flow.name} {way} {flow.start_ns} {flow.stop_ns}")
    for probe in plan.probes:
        way = f"{probe.client} {probe.server} {probe.address}:{probe.port} {probe.payload_bytes} B"
        lines.append(f"probe {probe.id} {probe.name} {way} {probe.interval_ns} {probe.jitter_ns} {probe.stop_ns}")
    lines += [f"radio {radio.phy} is {radio.node}:{radio.device}" for radio in plan.radios]
    every = plan.sampling
    times = f"tcp {every.tcp_ns} devices {every.device_ns} totals {every.totals_ns}"
    lines.append(f"sampling {times} packets 1/{every.packets}")
    lines += [f"capture {one.node} {one.device} {one.file} {one.snaplen}" for one in plan.captures]
    return "\n".join(lines) + "\n"


def step_lines(step: Step) -> list[str]:
    """One step; the scenario's key to blame at the end of each line."""
    match step:
        case BatchStep():
            texts = [f"{step.node or '-'} {step.do} {line}" for line in step.lines]
        case WriteStep():
            texts = [f"{step.node or '-'} write {step.path} {step.value!r}"]
        case EthtoolStep():
            texts = [f"{step.node} ethtool {' '.join(step.args)}"]
        case EpochStep():
            texts = [f"{step.node} epoch {step.path}"]
        case ReachStep():
            texts = [f"{step.node} reach {step.address} {step.timeout_ns}"]
        case IwStep():
            patience = f"until {step.says} ({step.timeout_ns})" if step.says else f"({step.timeout_ns})"
            texts = [f"{step.node or '-'} iw {' '.join(step.args)} {patience}"]
        case DaemonStep():
            texts = [f"{step.node} {step.tool}: {line}" for line in step.config.splitlines()]
            texts.append(f"{step.node} {step.tool} until {step.ready} ({step.timeout_ns})")
    return [f"{text}    # {step.origin}" for text in texts]
