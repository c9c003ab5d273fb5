# SPDX-License-Identifier: Apache-2.0
"""Paths: the testbed as a stream sees it."""

from typing import Literal

from hourglass.contract.plan.plan_values import Bps, Interface, Ns, PlanPart


class Hop(PlanPart):
    """The device from which packets leave a node, and the device that receives them."""

    node: str
    device: str
    address: Interface | None
    """The device's address; a VLAN's if the frames have a tag. null: a switch has none."""
    to_node: str
    to_device: str
    to_address: Interface | None
    medium: Literal["cable", "air"]
    line_bps: Bps
    """The rate of the medium: the cable's rate, or the radio's PHY rate (for minstrel the highest allowed)."""
    shaper_bps: Bps | None
    """HTB's rate at the device."""
    rate_bps: Bps
    """The lowest rate of medium, device shaper, qdisc, `ingress`, and the link's policer and shaper. A qdisc's is that
    of full frames, without what it counts for the link layer."""
    delay_ns: Ns
    """Propagation delay plus netem's delay at the device."""
    qdisc: str
    """The qdisc under test, below the shaper, in tc's words."""
    ingress: str | None
    """The qdisc for packets that arrive at `to_device` (on an ifb), in tc's words."""
    impairments: list[str]
    """The impairments of the medium in the scenario's words: "loss 0.1%", "trace", "shaper rate 20mbit, …"."""
    origin: str
    """The scenario's key of the link or cell."""


class Path(PlanPart):
    """The path of the streams between two nodes, hop by hop."""

    client: str
    server: str
    there: list[Hop]
    back: list[Hop]
