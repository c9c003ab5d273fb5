# SPDX-License-Identifier: Apache-2.0
"""`Scenario`: everything a run is made from. `load` makes one; every default is spelled out in it."""

import json
from typing import Annotated

from pydantic import Field

from hourglass.contract.kernels import CHOICES, DEFAULT
from hourglass.scenario.app import App, Apps
from hourglass.scenario.bounds import Checks
from hourglass.scenario.event import Event
from hourglass.scenario.kinds import integer
from hourglass.scenario.module import Module
from hourglass.scenario.stack import Stack
from hourglass.scenario.table import Rows, Table
from hourglass.scenario.test import Flow, Test
from hourglass.scenario.testbed import Testbed
from hourglass.scenario.values import Description, Interval, KernelName, Packets, Places, ScenarioName

Snaplen = Annotated[int, *integer(0, 65535, "bytes", "B")]
Seed = Annotated[int, *integer(0, 2**63 - 1, "")]


class Measure(Table):
    """What is recorded beside the pings. Measuring costs no virtual time."""

    tcp: Interval | None = Field(
        default=None,
        description="Sampling interval of every socket (tcp_info); default: 10ms, with more than 64 flows so much"
        " longer that no more is written, at most `test.step`.",
    )
    devices: Interval = Field(
        default=2 * 10**8, description="Sampling interval of every NIC and qdisc; 0: at start and end only."
    )
    packets: Packets = Field(
        default=500,
        description="About how many packets per second have their layer times kept individually; 0: none."
        " Sums are always over all packets.",
    )


class Capture(Table):
    """Frames on the cable, into pcapng files of the run directory. Capturing costs no virtual time."""

    pcap: Places = Field(
        default=(),
        description="Devices whose frames are captured, both directions; on a radio, 802.11 with radiotap headers.",
    )
    snaplen: Snaplen = Field(default=128, description="Bytes kept of each frame, not counting radiotap; 0: all.")


class Scenario(Table):
    """A run, fully described."""

    name: ScenarioName = Field(default="scenario", description="Name of the run; default: the file's name.")
    description: Description = Field(default="", description="One-line description.")
    kernel: KernelName = Field(default=DEFAULT, description=f"{CHOICES} or a name given to `hourglass kernel build`.")
    seed: Seed = Field(default=1, description="Seed of all randomness; equal seeds give equal runs.")
    testbed: Testbed = Field(description="Nodes, links, cells and shapers: `preset = NAME`, or spelled out.")
    stack: Stack = Field(default=Stack(), description="The nodes' network stack.")
    test: Test = Field(default=Test(), description="The test to run; default of a scenario with programs: `none`.")
    apps: Apps = Field(default=Apps(), description="What programs are taken from.")
    app: Rows[App] = Field(default=(), description="Programs that run in the nodes.")
    flow: Flow = Field(default=Flow(), description="How the data of TCP flows is moved.")
    module: Rows[Module] = Field(
        default=(),
        description='What of your own is compiled into the kernel; `cc = "my_cc.c"` puts it here.',
    )
    event: Rows[Event] = Field(default=(), description="What changes during the test.")
    measure: Measure = Field(default=Measure(), description="What is recorded.")
    capture: Capture = Field(default=Capture(), description="Which frames are captured.")
    check: Checks = Field(
        default={},
        description="Bounds of figures (`ping.icmp.p99`: their names in `--json`): `run` and `check` judge them and"
        " exit with 1 when one is missed. They decide nothing of the run itself.",
    )

    def to_json(self) -> bytes:
        """Canonical JSON: equal scenarios are equal bytes. `load` makes the same scenario of it again."""
        unused = {name for name in ("check", "event", "app", "module") if not getattr(self, name)}
        data = self.model_dump(mode="json", exclude=unused | ({"apps"} if "app" in unused else set()))
        return f"{json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)}\n".encode()

    def unchecked(self) -> "Scenario":
        """The same run without bounds: what decides its plan and its records, and which run it is."""
        return self.model_copy(update={"check": {}}) if self.check else self
