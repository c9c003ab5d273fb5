# SPDX-License-Identifier: Apache-2.0
"""`Scenario`: the complete input of a run. `load` makes one, with every default spelled out."""

import json
from typing import Annotated

from pydantic import Field

from hourglass.contract.kernels import CHOICES, DEFAULT
from hourglass.scenario.apps import App, Apps
from hourglass.scenario.bounds import Checks
from hourglass.scenario.event import Event
from hourglass.scenario.module import Module
from hourglass.scenario.stack import Stack
from hourglass.scenario.test import FlowSettings, Test
from hourglass.scenario.testbed import Testbed
from hourglass.scenario.toml_table import Rows, TomlTable
from hourglass.scenario.value_kinds import integer
from hourglass.scenario.values import Description, Interval, KernelName, NodeDevices, PacketRate, ScenarioName

Snaplen = Annotated[int, *integer(0, 65535, "bytes", "B")]
Seed = Annotated[int, *integer(0, 2**63 - 1, "")]


class Measure(TomlTable):
    """The records in addition to pings. Measuring costs no virtual time."""

    tcp: Interval | None = Field(
        default=None,
        description="Sampling interval of every socket (tcp_info). Default: 10ms. With more than 64 flows it grows,"
        " up to `test.step`, so that the records do not grow.",
    )
    devices: Interval = Field(
        default=2 * 10**8, description="Sampling interval of every NIC and qdisc. 0: only at start and end."
    )
    packets: PacketRate = Field(
        default=500,
        description="Approximate number of packets per second whose layer times are stored individually. 0: none."
        " Sums always include all packets.",
    )


class Capture(TomlTable):
    """Capture of frames on the cable into pcapng files of the run directory. It costs no virtual time."""

    pcap: NodeDevices = Field(
        default=(),
        description="Devices whose frames are captured, in both directions. A radio's frames are 802.11 with"
        " radiotap headers.",
    )
    snaplen: Snaplen = Field(default=128, description="Bytes stored of each frame, without radiotap. 0: all.")


class Scenario(TomlTable):
    """A complete description of a run."""

    name: ScenarioName = Field(default="scenario", description="Name of the run. A file's default is its own name.")
    description: Description = Field(default="", description="One-line description.")
    kernel: KernelName = Field(default=DEFAULT, description=f"{CHOICES} or a name given to `hourglass kernel build`.")
    seed: Seed = Field(default=1, description="Seed of all randomness. Equal seeds give equal runs.")
    testbed: Testbed = Field(description="Nodes, links, cells and shapers: `preset = NAME`, or spelled out.")
    stack: Stack = Field(default=Stack(), description="The nodes' network stack.")
    test: Test = Field(default=Test(), description="The test to run. Default of a scenario with programs: `none`.")
    apps: Apps = Field(default=Apps(), description="Settings that all programs share.")
    app: Rows[App] = Field(default=(), description="Programs that run in the nodes.")
    flow: FlowSettings = Field(default=FlowSettings(), description="Transport of the TCP flows' data.")
    module: Rows[Module] = Field(
        default=(),
        description='Your C code that is compiled into the kernel. `cc = "my_cc.c"` adds an entry.',
    )
    event: Rows[Event] = Field(default=(), description="Changes during the test.")
    measure: Measure = Field(default=Measure(), description="Intervals and amount of the records.")
    capture: Capture = Field(default=Capture(), description="Captured devices.")
    check: Checks = Field(
        default={},
        description="Bounds of figures, named as in `--json`, like `ping.icmp.p99`. `run` and `check` exit with 1 if"
        " a figure misses its bound. Bounds do not affect the run.",
    )

    def to_json(self) -> bytes:
        """Return canonical JSON: equal scenarios are equal bytes. `load` makes the same scenario from it."""
        unused = {name for name in ("check", "event", "app", "module") if not getattr(self, name)}
        data = self.model_dump(mode="json", exclude=unused | ({"apps"} if "app" in unused else set()))
        return f"{json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)}\n".encode()

    def unchecked(self) -> "Scenario":
        """Return the scenario without bounds. It decides the plan, the records and the run's identity."""
        return self.model_copy(update={"check": {}}) if self.check else self
