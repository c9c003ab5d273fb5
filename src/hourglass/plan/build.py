# SPDX-License-Identifier: Apache-2.0
"""`build`: a scenario worked out to steps.

Order of the set-up: what is global; what new devices inherit; radios, access points, devices, addresses, routes;
cables; stations join; qdiscs; sysctls; a ping that resolves the neighbours. Neighbouring `ip` (or `tc`) steps of a node
are one process in the guest, so a node's stand together.
"""

from collections.abc import Iterator
from typing import Literal

from hourglass.plan import links as devices
from hourglass.plan import measure, qdiscs, radios, sysctls, tests, traffic
from hourglass.plan.model import VERSION, Plan, ReachStep, Step
from hourglass.plan.network import Network
from hourglass.scenario import Scenario
from hourglass.scenario.blame import refusal

REACH_NS = 10 * 10**9
"""Patience of the first ping beyond the links' delays; virtual time is cheap."""


def build(scenario: Scenario, links: Literal["wire", "veth"] = "wire") -> Plan:
    """The plan of a scenario. `links="veth"`: for a real machine; then what only the wire driver can do is refused.

    Raises InputError when the scenario cannot be carried out: addresses that clash, a server nobody can reach.
    """
    network = Network(scenario.testbed)
    flows, probes = tests.flows(scenario, network), tests.probes(scenario, network)
    return Plan(
        version=VERSION,
        seed=scenario.seed,
        end_ns=tests.end_ns(scenario.test),
        nodes=network.nodes,
        setup=[
            *(_wire(scenario, network) if links == "wire" else _veth(scenario, network)),
            *_reach(scenario, network),
        ],
        flows=flows,
        probes=probes,
        datagrams=traffic.datagrams(scenario, network, len(probes)),
        fetches=traffic.fetches(scenario, network),
        sampling=measure.sampling(scenario, network, len(flows)),
        captures=measure.captures(scenario, on_wire=links == "wire"),
        radios=radios.radios(network),
    )


def _wire(scenario: Scenario, network: Network) -> Iterator[Step]:
    yield from sysctls.of_all(scenario)
    for node in network.nodes:
        yield from sysctls.before_devices(scenario, node)
        yield from radios.make(scenario, network, node)
        yield from devices.make(scenario, network, node)
    for node in network.nodes:
        for port in network.wires(node):
            yield from devices.plug(scenario, port)
    yield from radios.join(scenario, network)
    yield from _stacks(scenario, network, own_machine=True)


def _veth(scenario: Scenario, network: Network) -> Iterator[Step]:
    if network.cells:
        raise refusal("testbed.wifi", f"{len(network.cells)} cells", "only the guest's kernel has radios")
    for node in network.nodes:
        yield from sysctls.before_devices(scenario, node)
    yield from devices.veth(scenario, network)
    yield from _stacks(scenario, network, own_machine=False)


def _stacks(scenario: Scenario, network: Network, own_machine: bool) -> Iterator[Step]:
    for node in network.nodes:
        yield from qdiscs.make(scenario, network, node, every=not own_machine)
        yield from sysctls.after_devices(scenario, node, own_machine)


def _reach(scenario: Scenario, network: Network) -> Iterator[ReachStep]:
    """From the client to each server: the pairs that the test uses."""
    test = scenario.test
    for server in test.hosts or (test.server,):
        path = network.path(test.client, server)
        passed = [scenario.testbed.link[port.link] for port in path if not port.radio]
        late_ns = sum(sum(link.delay) + sum(link.jitter) + 2 * (link.reorder_delay or 0) for link in passed)
        late_ns += sum(netem.delay for netem in scenario.testbed.netem)
        timeout_ns = REACH_NS + 4 * late_ns
        yield ReachStep(
            do="reach", node=test.client, address=str(path[-1].address.ip), timeout_ns=timeout_ns, origin="testbed"
        )
