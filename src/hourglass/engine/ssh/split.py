# SPDX-License-Identifier: Apache-2.0
"""A plan for several machines → each one's part. Pure.

A part has the steps and the events of its node, with the names of its interfaces in place of the plan's devices, and
all streams: the agent plays the ends that are its node's.
"""

from collections.abc import Mapping

from hourglass.contract.plan import (
    BatchStep,
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
    """The machines, in the order of the plan."""
    return [step for step in plan.setup if isinstance(step, HostStep)]


def part(plan: Plan, host: HostStep) -> Plan:
    """The plan of one machine."""
    events = [event for event in plan.events if event.node == host.node]
    return plan.model_copy(
        update={
            "setup": [_named(step, host.devices) for step in plan.setup if step.node == host.node],
            "events": [
                event.model_copy(update={"steps": [_named(step, host.devices) for step in event.steps]})
                for event in events
            ],
        }
    )


def _named(step: Step | EventStep, names: Mapping[str, str]) -> Step | EventStep:
    """The step as the machine has to be told it."""
    match step:
        case BatchStep():
            return step.model_copy(update={"lines": [line(one, names) for one in step.lines]})
        case EthtoolStep():
            return step.model_copy(update={"args": [names.get(word, word) for word in step.args]})
        case WriteStep():
            return step.model_copy(update={"path": path(step.path, names)})
        case KeepStep():
            devices = [names[device] for device in step.devices]
            return step.model_copy(update={"devices": devices, "files": [path(one, names) for one in step.files]})
        case _:
            return step


def line(text: str, names: Mapping[str, str]) -> str:
    """A line of ip or tc."""
    return " ".join(names.get(word, word) for word in text.split(" "))


def path(text: str, names: Mapping[str, str]) -> str:
    """A file of /proc/sys/net or /sys/class/net."""
    if not text.startswith(_OF_DEVICES):
        return text
    return "/".join(names.get(word, word) for word in text.split("/"))
