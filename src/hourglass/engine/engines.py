# SPDX-License-Identifier: Apache-2.0
"""The engines by name. A row here, and a class that is an `Engine`, are a new one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.modules import Module
from hourglass.contract.plan_apps import Root
from hourglass.engine.base import Engine
from hourglass.engine.kernel.build import Report
from hourglass.engine.native import Native
from hourglass.engine.ssh.engine import Ssh
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError


@dataclass(frozen=True)
class EngineKind:
    """What is known of an engine before it is there. `ready` makes it ready to run plans on the kernel of a name with
    modules of the user's own compiled in, and raises MissingError when this machine cannot."""

    capabilities: Capabilities
    ready: Callable[[str, Report, Sequence[Module]], Engine]


ENGINES: Final = {
    Virtual.name: EngineKind(Virtual.capabilities, Virtual.ready),
    Native.name: EngineKind(Native.capabilities, lambda _kernel, _report, _modules: Native.ready()),
    Ssh.name: EngineKind(Ssh.capabilities, lambda _kernel, _report, _modules: Ssh.ready()),
}

DEFAULT: Final = Virtual.name


def chosen(name: str, kernel: str | None = None) -> EngineKind:
    """The engine of a name. `kernel`: the user asked for this one, which an engine without kernels of its own has not.

    Raises InputError.
    """
    kind = ENGINES.get(name)
    if kind is None:
        raise InputError("--engine", name, f"one of {', '.join(ENGINES)}")
    if kernel is not None and not kind.capabilities.own_kernel:
        raise InputError("--kernel", kernel, f"the {name} engine runs on kernels that are there; leave it out")
    return kind


def identity(
    name: str,
    kernel: str,
    radios: bool,
    roots: Sequence[Root] = (),
    report: Report = lambda _, __: None,
    modules: Sequence[Module] = (),
) -> str:
    """What decides, beside the scenario, the records of a run by the engine of a name on the kernel of a name."""
    return ENGINES[name].ready(kernel, report, modules).identity(radios, roots, report)
