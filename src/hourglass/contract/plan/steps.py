# SPDX-License-Identifier: Apache-2.0
"""The steps of a plan: single actions of the set-up and of events.

`node: null` is the kernel's first namespace. `origin` is the scenario's key that an error names if the step fails. The
agent returns it unchanged. Steps of `ip`, `tc` and `bridge` declare their command lines. The agent passes the lines to
the tool, or sends the equivalent netlink messages.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hourglass.contract.plan.plan_values import U16, U32, Address, Handle, Interface, Mac, Ns, PlanPart

Act = Literal["add", "replace"]
"""`add` fails if the object exists; `replace` replaces it."""

_PLACEHOLDER = re.compile(
    r"(?P<open>\[)?(?P<before>(?(open)[^{[]*))\{(?P<field>\w+)\}(?(open)(?:\|(?P<otherwise>[^]]*))?\])"
)
"""A placeholder of a template: `{field}`, `[before {field}]` or `[before {field}|otherwise]`."""


class BatchStep(PlanPart):
    """Executes the user's lines for the real `ip`, `tc` or `bridge` as a batch in the node."""

    do: Literal["ip", "tc", "bridge"]
    node: str | None
    lines: list[str]
    origin: str | None

    @property
    def tool(self) -> Literal["ip", "tc", "bridge"]:
        """Return the tool's name."""
        return self.do


class ToolStep(PlanPart):
    """A step with one line of `tool` for each template. A name in braces is replaced by the field's value, or by the
    name if the value is true. `[A|B]` is A; it is B if A's field is null, false or empty."""

    tool: ClassVar[Literal["ip", "tc", "bridge"]]
    templates: ClassVar[tuple[str, ...]]
    node: str | None
    origin: str | None

    @property
    def lines(self) -> list[str]:
        """Return the lines, without the tool's name."""
        return [_PLACEHOLDER.sub(self._filled, template) for template in self.templates]

    def _filled(self, match: re.Match[str]) -> str:
        """Return the text for a placeholder."""
        value = getattr(self, match["field"])
        if value is None or value is False or value == "":
            return match["otherwise"] or ""
        return f"{match['before'] or ''}{match['field'] if value is True else value}"


class DeviceToolStep(ToolStep):
    """A tool's step for a device of the node."""

    device: str


class DeviceStep(DeviceToolStep):
    """Makes a device of the node: a NIC (`wire`) or an ifb. `queues`: in each direction; null is one."""

    tool = "ip"
    templates = (
        "link add dev {device}[ address {mac}][ mtu {mtu}][ numtxqueues {queues}][ numrxqueues {queues}] type {kind}",
    )
    do: Literal["device"]
    kind: Literal["wire", "ifb"]
    mac: Mac | None
    mtu: U32 | None
    queues: U32 | None


class VethStep(DeviceToolStep):
    """Makes a veth pair: `device` of the node, and `peer` of `peer_node`."""

    tool = "ip"
    templates = ("link add dev {device} type veth peer name {peer} netns {peer_node}",)
    do: Literal["veth"]
    peer: str
    peer_node: str


class LinkStep(DeviceToolStep):
    """Changes a device. Null leaves a setting as it is. With `addrgenmode` `none`, the device gets no
    link-local address. `name`: its new name."""

    tool = "ip"
    templates = (
        "link set dev {device}[ address {mac}][ mtu {mtu}][ addrgenmode {addrgenmode}][ name {name}][ {state}]",
    )
    do: Literal["link"]
    mac: Mac | None
    mtu: U32 | None
    addrgenmode: Literal["none"] | None
    name: str | None
    state: Literal["up", "down"] | None


class AddressStep(DeviceToolStep):
    """Gives a device an address. `nodad`: skip duplicate address detection, which only IPv6 has."""

    tool = "ip"
    templates = ("addr {act} {address} dev {device}[ {nodad}]",)
    do: Literal["address"]
    act: Act
    address: Interface
    nodad: bool


class SwitchStep(DeviceToolStep):
    """Makes the bridge of a switch. `stp_priority`: null turns the spanning tree protocol off. `forward_delay`, `hello`
    and `max_age` are in hundredths of a second. `pvid`: the VLAN of new ports, or 0 for none; null: the bridge ignores
    VLANs."""

    tool = "ip"
    templates = (
        "link add dev {device} address {mac} type bridge[ stp_state 1 priority {stp_priority}]"
        "[ forward_delay {forward_delay}][ hello_time {hello}][ max_age {max_age}]"
        "[ vlan_filtering 1 vlan_default_pvid {pvid}]",
    )
    do: Literal["switch"]
    mac: Mac
    stp_priority: U16 | None
    forward_delay: U16 | None
    hello: U16 | None
    max_age: U16 | None
    pvid: U16 | None


class PortStep(DeviceToolStep):
    """Makes a device a port of a bridge."""

    tool = "ip"
    templates = ("link set dev {device} master {bridge}",)
    do: Literal["port"]
    bridge: str


class CostStep(DeviceToolStep):
    """Sets the cost of a bridge's port in the spanning tree protocol."""

    tool = "ip"
    templates = ("link set dev {device} type bridge_slave cost {cost}",)
    do: Literal["cost"]
    cost: U16


class VlanStep(DeviceToolStep):
    """Makes a bridge's port a member of a VLAN. `pvid`: frames that arrive without a tag belong to it. `untagged`:
    frames leave without a tag."""

    tool = "bridge"
    templates = ("vlan add dev {device} vid {vlan}[ {pvid}][ {untagged}]",)
    do: Literal["vlan"]
    vlan: U16
    pvid: bool
    untagged: bool


class TagStep(DeviceToolStep):
    """Makes a device whose frames have the tag of a VLAN, on top of `parent`."""

    tool = "ip"
    templates = ("link add link {parent} name {device} type vlan id {vlan}",)
    do: Literal["tag"]
    parent: str
    vlan: U16


class QdiscStep(DeviceToolStep):
    """Adds or replaces a qdisc at a device, in the class `parent` or as the root. `options` are in tc's syntax. With a
    size table, `kind` is `stab`, and `options` begins with those of stab."""

    tool = "tc"
    templates = ("qdisc {act} dev {device} [parent {parent}|root][ handle {handle}] {kind}[ {options}]",)
    do: Literal["qdisc"]
    act: Act
    parent: Handle | None
    handle: Handle | None
    kind: str
    options: str


class ShaperStep(DeviceToolStep):
    """Makes HTB a device's root qdisc, with one class, 1:1. `rate` is in tc's syntax."""

    tool = "tc"
    templates = (
        "qdisc {act} dev {device} root handle 1: htb default 1",
        "class {act} dev {device} parent 1: classid 1:1 htb"
        " rate {rate} ceil {rate} burst {burst} cburst {burst} quantum {quantum}",
    )
    do: Literal["shaper"]
    act: Act
    rate: str
    burst: U32
    quantum: U32


class IngressStep(DeviceToolStep):
    """Redirects the packets that arrive at a device to an ifb, which queues them."""

    tool = "tc"
    templates = (
        "qdisc add dev {device} handle ffff: ingress",
        "filter add dev {device} parent ffff: matchall action mirred egress redirect dev {ifb}",
    )
    do: Literal["ingress"]
    ifb: str


class RouteStep(ToolStep):
    """Adds or replaces a route to `subnet` through the router `via`. `subnet`: null for the default route."""

    tool = "ip"
    templates = ("route {act} [{subnet}|default] via {via}[ metric {metric}]",)
    do: Literal["route"]
    act: Act
    subnet: Interface | None
    via: Address
    metric: U32 | None


class WriteStep(PlanPart):
    """Writes a value to a file of the node's /proc or /sys."""

    do: Literal["write"]
    node: str | None
    path: str
    value: str
    origin: str | None


class EthtoolStep(PlanPart):
    """Calls the real `ethtool` in the node."""

    do: Literal["ethtool"]
    node: str
    args: list[str]
    origin: str | None


class EpochStep(PlanPart):
    """At test time 0, writes the value of CLOCK_MONOTONIC in ns to the file. This starts a trace."""

    do: Literal["epoch"]
    node: str
    path: str
    origin: str | None


class ReachStep(PlanPart):
    """Pings from the node until the address answers, which resolves neighbours before the test."""

    do: Literal["reach"]
    node: str
    address: Address
    timeout_ns: Ns
    origin: str | None


class IwStep(PlanPart):
    """Calls the real `iw`, which must succeed within `timeout_ns`.

    With `says`, the call is repeated until `iw` prints that text: `iw connect` succeeds even if it does not connect.
    """

    do: Literal["iw"]
    node: str | None
    args: list[str]
    says: str | None
    timeout_ns: Ns
    origin: str | None


class DaemonStep(PlanPart):
    """A program that runs until the end of the run. `config`: the content of its configuration file. The set-up
    continues when the program prints `ready`."""

    do: Literal["daemon"]
    node: str
    tool: Literal["hostapd"]
    config: str
    ready: str
    timeout_ns: Ns
    origin: str | None


class TakeStep(PlanPart):
    """Moves the machine's device `real` from the first namespace into the node and renames it to `device`. However the
    run ends, the device is restored."""

    do: Literal["take"]
    node: str
    real: str
    device: str
    origin: str | None


class KeepStep(PlanPart):
    """Lists what later steps change in a namespace that outlives the run. However the run ends, the agent restores
    `devices` and `files` (of /proc and /sys) to their state at this step. It removes the devices in `made`."""

    do: Literal["keep"]
    node: str | None
    devices: list[str]
    files: list[str]
    made: list[str]
    origin: str | None


class HostStep(PlanPart):
    """States that the node is a machine that ssh reaches at `destination`, and maps its devices to interfaces. The
    coordinator of several machines uses it; an agent ignores it."""

    do: Literal["host"]
    node: str
    destination: str
    devices: dict[str, str]
    origin: str | None


class TellStep(PlanPart):
    """Sends a line to the control socket `socket` of a daemon of the node. The daemon must answer OK and then print
    `says`."""

    do: Literal["tell"]
    node: str
    tool: Literal["hostapd"]
    socket: str
    line: str
    says: str
    timeout_ns: Ns
    origin: str | None


class AppStep(PlanPart):
    """Kills (SIGKILL to all its processes), pauses (SIGSTOP), resumes (SIGCONT), or stops and restarts a program."""

    do: Literal["app"]
    node: str
    app: U16
    act: Literal["kill", "pause", "resume", "restart"]
    origin: str | None


class DecisionStep(PlanPart):
    """Stops the clock and reports the state of the TCP senders. The agent then executes the steps that the engine
    sends. `number` counts the decisions. Only an engine in virtual time has them. An event with a decision has no other
    step."""

    do: Literal["decision"]
    node: str | None
    number: U32
    origin: str | None


Step = Annotated[
    BatchStep | DeviceStep | VethStep | LinkStep | AddressStep | RouteStep | SwitchStep | PortStep | CostStep | VlanStep
    | TagStep | QdiscStep | ShaperStep | IngressStep | WriteStep | EthtoolStep | EpochStep | ReachStep | IwStep
    | DaemonStep | TellStep | TakeStep | KeepStep | HostStep, Field(discriminator="do"),
]  # fmt: skip
EventStep = Annotated[
    BatchStep | DeviceStep | VethStep | LinkStep | AddressStep | RouteStep | VlanStep | QdiscStep | ShaperStep
    | IngressStep | WriteStep | EthtoolStep | IwStep | DaemonStep | TellStep | AppStep | DecisionStep,
    Field(discriminator="do"),
]  # fmt: skip
"""The steps of events. A daemon step replaces a running daemon with the same tool, node and configuration file."""
