# SPDX-License-Identifier: Apache-2.0
"""A plan as text that a person can read, for golden files: a line per line of a tool, write, flow and probe."""

from hourglass.plan import Plan
from hourglass.plan.model import BatchStep, EpochStep, EthtoolStep, ReachStep, Step, WriteStep


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
    lines.append(
        f"sampling tcp {plan.sampling.tcp_ns} devices {plan.sampling.device_ns} packets 1/{plan.sampling.packets}"
    )
    lines += [f"capture {one.node} {one.device} {one.file} {one.snaplen}" for one in plan.captures]
    return "\n".join(lines) + "\n"


def step_lines(step: Step) -> list[str]:
    """One step; the scenario's key to blame at the end of each line."""
    match step:
        case BatchStep():
            texts = [f"{step.node} {step.do} {line}" for line in step.lines]
        case WriteStep():
            texts = [f"{step.node or '-'} write {step.path} {step.value!r}"]
        case EthtoolStep():
            texts = [f"{step.node} ethtool {' '.join(step.args)}"]
        case EpochStep():
            texts = [f"{step.node} epoch {step.path}"]
        case ReachStep():
            texts = [f"{step.node} reach {step.address} {step.timeout_ns}"]
    return [f"{text}    # {step.origin}" for text in texts]
