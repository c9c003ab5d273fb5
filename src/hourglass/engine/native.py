# SPDX-License-Identifier: Apache-2.0
"""Run a plan on this machine's kernel, in real time: the agent as an ordinary process.

It is the agent of a guest. Links are veth pairs, or interfaces of the machine that the scenario names (`real`). These
are restored, however the run ends. So a guest's results can be compared with those of an unmodelled kernel. The
namespaces live in the agent and disappear with it. Users other than root get a user namespace, if the kernel permits
it. Results are neither repeatable nor exact: other load on the machine affects them."""

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from hourglass.builders import agent, tool_packages
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import VERSION, BatchStep, Plan, Sampling, TakeStep
from hourglass.contract.plan.apps import Root
from hourglass.contract.run_json import Kernel
from hourglass.engine import host_tools, machine_load, supervise
from hourglass.engine.base import BuildReport, Outcome, Preload, Report
from hourglass.errors import GuestError, HourglassError, MissingError
from hourglass.host import process

SILENCE_S = 20.0
"""Wall seconds without an event after which the agent is stuck: it sends one per second."""

RESTORE_S = 20.0
"""Wall seconds for the agent's guard to restore devices (`agent/src/guard.rs`)."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The folders with `ip`, `tc` and `ethtool`."""

TOOLS = tool_packages.TOOLS | {"unshare": "util-linux"}
"""The tools of a native run, and their packages; `unshare` creates the namespaces of `AS_ROOT`."""

AS_ROOT = ["unshare", "--user", "--map-root-user", "--net", "--"]
"""The command that makes a user root of new namespaces."""


@dataclass(frozen=True)
class Native:
    """This machine's kernel."""

    name: ClassVar = "native"
    capabilities: ClassVar = Capabilities(
        nic="veth", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
    )

    @classmethod
    def ready(cls) -> Self:
        """Return the engine. A small plan checks that this machine permits it. Raises MissingError with the reason."""
        if (problem := host_tools.lacking("native runs", TOOLS)) is not None:
            raise problem
        native = cls()
        try:
            with tempfile.TemporaryDirectory() as directory:
                native.run(attempt(), Path(directory))
        except MissingError:
            raise
        except HourglassError as error:
            reason = error.tail[-1] if isinstance(error, GuestError) and error.tail else str(error).splitlines()[0]
            problem_text = (
                f"this machine does not permit native runs, which need network namespaces with veth and HTB: {reason}"
            )
            raise MissingError(problem_text, remedy()) from None
        return native

    @property
    def kernel(self) -> Kernel:
        return Kernel("host", platform.release(), "")

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: BuildReport = lambda _, __: None) -> str:
        """Return the running kernel; nothing else that affects a native run is known."""
        return f"{self.name} {platform.release()} {platform.version()}"

    def run(
        self, plan: Plan, directory: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """Execute a plan; see `Engine.run`."""
        takes = next((step for step in plan.setup if isinstance(step, TakeStep)), None)
        if takes is not None and os.geteuid() != 0:
            problem = f"the interface {takes.real} ({takes.origin}) can be moved only by root"
            raise MissingError(problem, "run it as root, or remove the key: links are then veth pairs")
        argv = [*([] if os.geteuid() == 0 else AS_ROOT), str(agent.binary()), "plan.json", "records.arrows"]
        before = machine_load.cpu_times()
        child = process.group(argv, directory, {"PATH": SEARCH_PATH}, linger_s=RESTORE_S)
        judge = partial(supervise.judge, name="the agent")
        guard = supervise.silence_guard(SILENCE_S)
        outcome = supervise.execute(plan, directory, child, judge, guard, progress, preload)
        return replace(outcome, host_load=machine_load.load_between(before, machine_load.cpu_times()))


def attempt() -> Plan:
    """Return a plan that needs what every native run needs of the kernel and of the user's rights."""
    pair = "link add dev a type veth peer name b"
    qdiscs = ["qdisc add dev a root handle 1: htb default 1", "qdisc add dev b root pfifo_fast"]
    return Plan(
        version=VERSION,
        seed=0,
        end_ns=1,
        nodes=["attempt"],
        setup=[
            BatchStep(do="ip", node="attempt", lines=[pair], origin=None),
            BatchStep(do="tc", node="attempt", lines=qdiscs, origin=None),
        ],
        streams=[],
        paths=[],
        sampling=Sampling(tcp_ns=0, device_ns=0, totals_ns=0, packets=0),
        captures=[],
        radios=[],
        events=[],
        roots=[],
        rooms=[],
        apps=[],
        apps_end=False,
    )


def remedy() -> str:
    """Return a remedy for users without the permission."""
    if os.geteuid() != 0:
        return "run it as root, or sysctl user.max_user_namespaces=1000 (as root)"
    return "in a container: allow it CAP_SYS_ADMIN and CAP_NET_ADMIN; else: modprobe -a veth sch_htb"
