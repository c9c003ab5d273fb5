# SPDX-License-Identifier: Apache-2.0
"""Split a plan for several hosts into each one's part. Pure.

A part has the steps and the events of its node, with the names of its interfaces instead of the plan's devices. It has
all streams; the agent runs the ends on its node."""

from collections.abc import Mapping

from hourglass.contract.plan import (
    BatchStep,
    DeviceToolStep,
    EthtoolStep,
    EventStep,
    HostStep,
    KeepStep,
    Plan,
    Step,
    WriteStep,
)

_OF_DEVICES = ("/proc/sys/net/", "/sys/class/net/")


def hosts(plan: Plan) -> list[HostStep]:
    """Return the hosts, in the order of the plan."""
    return [step for step in plan.setup if isinstance(step, HostStep)]


def part(plan: Plan, host: HostStep) -> Plan:
    """Return the plan of one host."""
    events = [event for event in plan.events if event.node == host.node]
    return plan.model_copy(
        update={
            "setup": [named(step, host.devices) for step in plan.setup if step.node == host.node],
            "events": [
                event.model_copy(update={"steps": [named(step, host.devices) for step in event.steps]})
                for event in events
            ],
        }
    )


def named(step: Step | EventStep, names: Mapping[str, str]) -> Step | EventStep:
    """Return a step with the names of the host's interfaces."""
    match step:
        case BatchStep():
            return step.model_copy(update={"lines": [_renamed(line, names, " ") for line in step.lines]})
        case DeviceToolStep():
            return step.model_copy(update={"device": names.get(step.device, step.device)})
        case EthtoolStep():
            return step.model_copy(update={"args": [names.get(word, word) for word in step.args]})
        case WriteStep():
            return step.model_copy(update={"path": path(step.path, names)})
        case KeepStep():
            devices = [names[device] for device in step.devices]
            return step.model_copy(update={"devices": devices, "files": [path(item, names) for item in step.files]})
        case _:
            return step


def path(text: str, names: Mapping[str, str]) -> str:
    """Return a path of /proc/sys/net or /sys/class/net with the host's names."""
    return _renamed(text, names, "/") if text.startswith(_OF_DEVICES) else text


def _renamed(text: str, names: Mapping[str, str], separator: str) -> str:
    return separator.join(names.get(word, word) for word in text.split(separator))
