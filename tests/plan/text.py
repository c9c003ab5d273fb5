# SPDX-License-Identifier: Apache-2.0
"""A plan as text that a person can read, for golden files: a line per line of a tool, write, stream and
hop."""

from hourglass.contract.plan import (
    BatchStep,
    DaemonStep,
    Datagrams,
    EpochStep,
    EthtoolStep,
    Fetches,
    Flow,
    Hop,
    IwStep,
    KeepStep,
    Path,
    Ping,
    Plan,
    ReachStep,
    Step,
    Stream,
    TakeStep,
    TellStep,
    Transactions,
    WriteStep,
)


def plan_text(plan: Plan) -> str:
    """The whole plan."""
    lines = [f"nodes {' '.join(plan.nodes)}", f"end {plan.end_ns}"]
    lines += [line for step in plan.setup for line in step_lines(step)]
    lines += [stream_line(one) for one in plan.streams]
    lines += [line for path in plan.paths for line in path_lines(path)]
    lines += [f"radio {radio.phy} is {radio.node}:{radio.device}" for radio in plan.radios]
    every = plan.sampling
    times = f"tcp {every.tcp_ns} devices {every.device_ns} totals {every.totals_ns}"
    lines.append(f"sampling {times} packets 1/{every.packets}")
    lines += [f"capture {one.node} {one.device} {one.file} {one.snaplen}" for one in plan.captures]
    return "\n".join(lines) + "\n"


def stream_line(one: Stream) -> str:
    """One stream."""
    ends = f"{one.client} {one.server} {one.address}:{one.port} dscp {one.dscp} {one.start_ns} {one.stop_ns}"
    match one:
        case Flow():
            pace = f" at most {one.pace_bps}" if one.pace_bps else ""
            pace += f" writes {one.writes.rate_bps}" if one.writes else ""
            rest = f"{one.sender} sends {one.cc} {one.backend}{pace}"
        case Ping():
            rest = f"{one.protocol} {one.payload_bytes} B {one.interval_ns} {one.jitter_ns} seed {one.jitter_seed:x}"
        case Datagrams():
            spans = " ".join(f"{phase.start_ns}-{phase.stop_ns}/{phase.interval_ns}" for phase in one.phases)
            rest = f"{one.burst} x {one.payload_bytes} B {spans}"
        case Fetches():
            rest = f"{one.cc} {one.request_bytes} B {one.sizes} {one.interval_ns}"
        case Transactions():
            rest = f"{one.cc} {one.request_bytes} B {one.response_bytes} B"
    ecn = f" {one.ecn}" if getattr(one, "ecn", "not_ect") != "not_ect" else ""
    return f"{one.kind} {one.id} {one.name} {ends} {rest}{ecn}"


def path_lines(path: Path) -> list[str]:
    """Both ways."""
    ways = (("there", path.there), ("back", path.back))
    return [f"path {path.client} {path.server} {way} {hop_text(hop)}" for way, hops in ways for hop in hops]


def hop_text(hop: Hop) -> str:
    """One hop."""
    ends = f"{hop.node}:{hop.device} {hop.address} to {hop.to_node}:{hop.to_device} {hop.to_address}"
    rates = f"{hop.medium} {hop.line_bps} shaper {hop.shaper_bps or '-'} rate {hop.rate_bps} delay {hop.delay_ns}"
    qdiscs = f"{hop.qdisc!r}{f' ingress {hop.ingress!r}' if hop.ingress else ''}"
    return f"{ends} {rates} {qdiscs} {' '.join(hop.impairments) or '-'}    # {hop.origin}"


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
        case TakeStep():
            texts = [f"{step.node} take {step.real} as {step.device}"]
        case KeepStep():
            words = " ".join((*step.devices, *step.files, *(f"made {name}" for name in step.made)))
            texts = [f"{step.node or '-'} keep {words}"]
        case IwStep():
            patience = f"until {step.says} ({step.timeout_ns})" if step.says else f"({step.timeout_ns})"
            texts = [f"{step.node or '-'} iw {' '.join(step.args)} {patience}"]
        case TellStep():
            texts = [f"{step.node} {step.tool} {step.socket}: {step.line} until {step.says} ({step.timeout_ns})"]
        case DaemonStep():
            texts = [f"{step.node} {step.tool}: {line}" for line in step.config.splitlines()]
            texts.append(f"{step.node} {step.tool} until {step.ready} ({step.timeout_ns})")
    return [f"{text}    # {step.origin}" for text in texts]
