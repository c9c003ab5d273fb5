# SPDX-License-Identifier: Apache-2.0
"""List the engines by name. A new engine is a row here and a class that implements `Engine`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hourglass.builders.kernel.builder import Report
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.plan.apps import Root
from hourglass.engine.base import Engine
from hourglass.engine.native import Native
from hourglass.engine.ssh.engine import Ssh
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError
from hourglass.host import sandbox


@dataclass(frozen=True)
class EngineKind:
    """An engine before it is set up. `ready` prepares it to run plans on the named kernel, with the user's modules
    compiled in. It raises MissingError if this machine cannot."""

    capabilities: Capabilities
    ready: Callable[[str, Report, Sequence[KernelModule]], Engine]


ENGINES: Final = {
    Virtual.name: EngineKind(Virtual.capabilities, Virtual.ready),
    Native.name: EngineKind(Native.capabilities, lambda _kernel, _report, _modules: Native.ready()),
    Ssh.name: EngineKind(Ssh.capabilities, lambda _kernel, _report, _modules: Ssh.ready()),
}

DEFAULT: Final = Virtual.name


def get(name: str, kernel: str | None = None) -> EngineKind:
    """Return the engine of a name. `kernel`: the kernel that the user named, which only engines with guest kernels
    accept.

    Raises InputError."""
    kind = ENGINES.get(name)
    if kind is None:
        raise InputError("--engine", name, f"must be one of {', '.join(ENGINES)}")
    if kernel is not None and not kind.capabilities.own_kernel:
        raise InputError("--kernel", kernel, f"the {name} engine uses the running kernel; remove --kernel")
    if sandbox.is_required() and not kind.capabilities.own_kernel:
        raise InputError("--engine", name, "the sandbox is required, and only the virtual engine has it")
    return kind


def layers(engine: Engine) -> list[str]:
    """Return the layers that confine the guests of an engine on this host (`sandbox.py`); none without guests."""
    return sandbox.layers().names if engine.capabilities.own_kernel else []


def capabilities(name: str, like: str = "") -> Capabilities:
    """Return the capabilities for a plan. `like`: the engine whose links and layers the guest uses."""
    kind = get(name).capabilities
    if not like:
        return kind
    other = get(like).capabilities
    return replace(kind, nic=other.nic, own_kernel=other.own_kernel, layers=other.layers)


def identity(
    name: str,
    kernel: str,
    radios: bool,
    roots: Sequence[Root] = (),
    report: Report = lambda _, __: None,
    modules: Sequence[KernelModule] = (),
) -> str:
    """Return all that determines the records of a run, apart from the scenario: the engine, the kernel and the
    roots."""
    return ENGINES[name].ready(kernel, report, modules).identity(radios, roots, report)
