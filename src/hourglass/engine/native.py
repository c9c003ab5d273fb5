# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on this machine's own kernel, in real time: the agent as an ordinary process of root.

The same agent and the same plan as in a guest, with veth pairs for links (`plan.build(scenario, links="veth")`): what a
guest shows can be held against a kernel that nobody modelled. The namespaces live in the agent and go away with it.
Results are neither repeatable nor exact: the machine's other work is in them.
"""

import json
import os
import platform
import tempfile
from functools import partial
from pathlib import Path

from hourglass.engine import follow, paths, process, root
from hourglass.engine.follow import Outcome, Report
from hourglass.errors import HourglassError, MissingError

SILENCE_S = 20.0
"""Wall seconds without an event after which the agent counts as stuck: it speaks once a second."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the agent looks for `ip`, `tc` and `ethtool`."""

ATTEMPT = {
    "version": 1,
    "seed": 0,
    "end_ns": 1,
    "nodes": ["attempt"],
    "setup": [
        {"do": "ip", "node": "attempt", "lines": ["link add dev a type veth peer name b"], "origin": None},
        {"do": "tc", "node": "attempt", "lines": ["qdisc add dev a root handle 1: htb default 1"], "origin": None},
        {"do": "tc", "node": "attempt", "lines": ["qdisc add dev b root pfifo_fast"], "origin": None},
    ],
    "flows": [],
    "probes": [],
    "sampling": {"tcp_ns": 0, "device_ns": 0, "totals_ns": 0, "packets": 0},
    "captures": [],
}
"""A plan of what every native run needs of the kernel and of our rights."""


def run(plan_json: bytes, directory: Path, progress: Report | None = None) -> Outcome:
    """Executes a plan; writes plan.json, records.arrows and console.log into `directory`, which must exist.

    Raises InputError when a step that stems from the user's scenario failed, GuestError when another did or the agent,
    MissingError when the agent is not built.
    """
    if not paths.AGENT.is_file():
        raise MissingError(f"the agent is not built ({paths.AGENT})", "make setup")
    argv: list[str | Path] = [paths.AGENT, "plan.json", "records.arrows"]
    agent = process.group(argv, directory, {"PATH": SEARCH_PATH})
    judge = partial(follow.judge, name="the agent")
    return follow.execute(plan_json, directory, agent, judge, platform.release(), progress, SILENCE_S)


def permitted() -> str | None:
    """Why this machine cannot run plans itself; None if it can. Found out by running a small one."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if missing := process.missing_tools(root.TOOLS):
        return f"missing: {', '.join(missing)}"
    try:
        with tempfile.TemporaryDirectory() as directory:
            run(json.dumps(ATTEMPT).encode(), Path(directory))
    except HourglassError as error:
        return str(error).splitlines()[0]
    return None
