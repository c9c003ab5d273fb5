# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on this machine's own kernel, in real time: the agent as an ordinary process.

The same agent as in a guest, with veth pairs for links, or interfaces of the machine that the scenario names (`real`),
which are given back as they were, however the run ends: what a guest shows can be held against a kernel that nobody
modelled. The namespaces live in the agent and go away with it. Who is not root gets a user namespace, where the kernel
lets him. Results are neither repeatable nor exact: the machine's other work is in them.
"""

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import VERSION, BatchStep, Plan, Sampling, TakeStep
from hourglass.contract.plan_apps import Root
from hourglass.contract.run import Kernel
from hourglass.engine import agent, follow, process, tree
from hourglass.engine.base import Making, Outcome, Preload, Report
from hourglass.errors import GuestError, HourglassError, MissingError

SILENCE_S = 20.0
"""Wall seconds without an event after which the agent counts as stuck: it speaks once a second."""

GIVING_BACK_S = 20.0
"""Wall seconds that the agent's guard may take to give devices back (`agent/src/guard.rs`)."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the agent looks for `ip`, `tc` and `ethtool`."""

AS_ROOT = ["unshare", "--user", "--map-root-user", "--net", "--"]
"""How a user who is not root becomes root of namespaces of his own."""


@dataclass(frozen=True)
class Native:
    """This machine's kernel."""

    name: ClassVar = "native"
    capabilities: ClassVar = Capabilities(
        nic="veth", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
    )

    @classmethod
    def ready(cls) -> Self:
        """The engine, if this machine permits it; found out by a small plan. Raises MissingError that says why not."""
        if packages := process.missing_tools(tree.TOOLS):
            raise MissingError("native runs need tools that are missing", f"apt-get install -y {' '.join(packages)}")
        native = cls()
        try:
            with tempfile.TemporaryDirectory() as place:
                native.run(attempt(), Path(place))
        except MissingError:
            raise
        except HourglassError as error:
            said = error.tail[-1] if isinstance(error, GuestError) and error.tail else str(error).splitlines()[0]
            what = f"this machine does not permit native runs, which need network namespaces with veth and HTB: {said}"
            raise MissingError(what, remedy()) from None
        return native

    @property
    def kernel(self) -> Kernel:
        return Kernel("host", platform.release(), "")

    def identity(self, radios: bool, roots: Sequence[Root] = (), report: Making = lambda _, __: None) -> str:
        """The running kernel; what else decides a native run nobody can say."""
        return f"{self.name} {platform.release()} {platform.version()}"

    def run(
        self, plan: Plan, place: Path, *, progress: Report | None = None, preload: Preload | None = None
    ) -> Outcome:
        """`Engine.run`."""
        takes = next((step for step in plan.setup if isinstance(step, TakeStep)), None)
        if takes is not None and os.geteuid() != 0:
            what = f"the interface {takes.real} ({takes.origin}) can be moved by root only"
            raise MissingError(what, "run it as root, or leave the key out: links are then veth pairs")
        argv = [*([] if os.geteuid() == 0 else AS_ROOT), str(agent.binary()), "plan.json", "records.arrows"]
        child = process.group(argv, place, {"PATH": SEARCH_PATH}, linger_s=GIVING_BACK_S)
        judge = partial(follow.judge, name="the agent")
        return follow.execute(plan, place, child, judge, follow.silence(SILENCE_S), progress, preload)


def attempt() -> Plan:
    """A plan of what every native run needs of the kernel and of our rights."""
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
    """What may help those who are not permitted."""
    if os.geteuid() != 0:
        return "run it as root, or sysctl user.max_user_namespaces=1000 (as root)"
    return "in a container: allow it CAP_SYS_ADMIN and CAP_NET_ADMIN; else: modprobe -a veth sch_htb"
