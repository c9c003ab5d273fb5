# SPDX-License-Identifier: Apache-2.0
"""A plan as text that a person can read, for golden files: a line per line of a tool, write, stream and
hop."""

from hourglass.contract.plan import (
    BatchStep,
    DaemonStep,
    DatagramStream,
    EpochStep,
    EthtoolStep,
    FetchStream,
    FlowStream,
    Hop,
    IwStep,
    KeepStep,
    Path,
    PingStream,
    Plan,
    ReachStep,
    Step,
    Stream,
    TakeStep,
    TellStep,
    ToolStep,
    TransactionStream,
    WriteStep,
)


def plan_text(plan: Plan) -> str:
    """Return the complete plan as text."""
    lines = [f"nodes {' '.join(plan.nodes)}", f"end {plan.end_ns}"]
    lines += [line for step in plan.setup for line in step_lines(step)]
    lines += [stream_line(stream) for stream in plan.streams]
    lines += [line for path in plan.paths for line in path_lines(path)]
    lines += [f"radio {radio.phy} is {radio.node}:{radio.device}" for radio in plan.radios]
    sampling = plan.sampling
    times = f"tcp {sampling.tcp_ns} devices {sampling.device_ns} totals {sampling.totals_ns}"
    lines.append(f"sampling {times} packets 1/{sampling.packets}")
    lines += [f"capture {capture.node} {capture.device} {capture.file} {capture.snaplen}" for capture in plan.captures]
    return "\n".join(lines) + "\n"


def stream_line(stream: Stream) -> str:
    """Return one stream as text."""
    ends = f"{stream.client} {stream.server} {stream.address}:{stream.port}"
    ends += f" dscp {stream.dscp} {stream.start_ns} {stream.stop_ns}"
    match stream:
        case FlowStream():
            pace = f" at most {stream.pace_bps}" if stream.pace_bps else ""
            pace += f" writes {stream.writes.rate_bps}" if stream.writes else ""
            details = f"{stream.sender} sends {stream.cc} {stream.backend}{pace}"
        case PingStream():
            details = f"{stream.protocol} {stream.payload_bytes} B {stream.interval_ns} {stream.jitter_ns}"
            details += f" seed {stream.jitter_seed:x}"
        case DatagramStream():
            spans = " ".join(f"{phase.start_ns}-{phase.stop_ns}/{phase.interval_ns}" for phase in stream.phases)
            details = f"{stream.burst} x {stream.payload_bytes} B {spans}"
        case FetchStream():
            details = f"{stream.cc} {stream.request_bytes} B {stream.sizes} {stream.interval_ns}"
        case TransactionStream():
            details = f"{stream.cc} {stream.request_bytes} B {stream.response_bytes} B"
    ecn = f" {stream.ecn}" if getattr(stream, "ecn", "not_ect") != "not_ect" else ""
    return f"{stream.kind} {stream.id} {stream.name} {ends} {details}{ecn}"


def path_lines(path: Path) -> list[str]:
    """Return a path as lines, in both directions."""
    directions = (("there", path.there), ("back", path.back))
    return [
        f"path {path.client} {path.server} {direction} {hop_text(hop)}"
        for direction, hops in directions
        for hop in hops
    ]


def hop_text(hop: Hop) -> str:
    """Return one hop as text."""
    ends = f"{hop.node}:{hop.device} {hop.address} to {hop.to_node}:{hop.to_device} {hop.to_address}"
    rates = f"{hop.medium} {hop.line_bps} shaper {hop.shaper_bps or '-'} rate {hop.rate_bps} delay {hop.delay_ns}"
    qdiscs = f"{hop.qdisc!r}{f' ingress {hop.ingress!r}' if hop.ingress else ''}"
    return f"{ends} {rates} {qdiscs} {' '.join(hop.impairments) or '-'}    # {hop.origin}"


def step_lines(step: Step) -> list[str]:
    """Return one step as lines. Each ends with the scenario's key that errors name."""
    match step:
        case BatchStep() | ToolStep():
            texts = [f"{step.node or '-'} {step.tool} {line}" for line in step.lines]
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
            names = " ".join((*step.devices, *step.files, *(f"made {name}" for name in step.made)))
            texts = [f"{step.node or '-'} keep {names}"]
        case IwStep():
            patience = f"until {step.says} ({step.timeout_ns})" if step.says else f"({step.timeout_ns})"
            texts = [f"{step.node or '-'} iw {' '.join(step.args)} {patience}"]
        case TellStep():
            texts = [f"{step.node} {step.tool} {step.socket}: {step.line} until {step.says} ({step.timeout_ns})"]
        case DaemonStep():
            texts = [f"{step.node} {step.tool}: {line}" for line in step.config.splitlines()]
            texts.append(f"{step.node} {step.tool} until {step.ready} ({step.timeout_ns})")
    return [f"{text}    # {step.origin}" for text in texts]
