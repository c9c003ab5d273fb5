# SPDX-License-Identifier: Apache-2.0
"""`build`: a scenario worked out to steps.

Order of the set-up: what is global; what new devices inherit; radios, access points, devices, addresses, routes;
cables; stations join; qdiscs; sysctls; a ping that resolves the neighbours. Neighbouring `ip` (or `tc`) steps of a node
are one process in the guest, so a node's stand together.
"""

from collections.abc import Iterator

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import VERSION, Flow, Plan, ReachStep, Step
from hourglass.plan import apps, events, hosts, links, measure, qdiscs, radios, sysctls
from hourglass.plan.network import Network
from hourglass.plan.paths import Paths
from hourglass.plan.streams import Setting, streams
from hourglass.scenario import Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.edge import away

REACH_NS = 10 * 10**9
"""Patience of the first ping beyond the links' delays."""

CARRIERS_PER_S = 100
"""So many devices the kernel tells a second that their cables are in (net/core/link_watch.c); until then they send
nothing."""


def build(scenario: Scenario, able: Capabilities) -> Plan:
    """The plan of a scenario for whoever has these capabilities.

    Raises InputError when the scenario cannot be carried out: addresses that clash, a server nobody can reach,
    something that none of the capabilities can do.
    """
    if scenario.module and not able.own_kernel:
        allowed = "a file is compiled into the guest's kernel; this engine runs on kernels that are there"
        raise refusal("module", [one.name for one in scenario.module], allowed)
    network = Network(scenario.testbed)
    setting = Setting(scenario, Paths(scenario.testbed, scenario.stack, network))
    made = streams(setting)
    flows = sum(isinstance(one, Flow) for one in made)
    main = setting.paths.between(scenario.test.client, scenario.test.server)
    planned = events.all_of(scenario, network, able, setting.end_ns)
    cpus = apps.cpus(scenario, able.programs)
    setup = [*_devices(scenario, network, able), *_stacks(scenario, network, able), *cpus, *_reach(setting)]
    if able.nic == "real":
        setup = [
            *hosts.keep(scenario.testbed, network, [*setup, *(step for one in planned for step in one.steps)]),
            *setup,
        ]
    run = apps.programs(scenario, network, setting.end_ns, able.programs)
    return Plan(
        version=VERSION,
        seed=scenario.seed,
        end_ns=setting.end_ns,
        nodes=network.nodes,
        setup=setup,
        streams=made,
        paths=setting.paths.all(),
        sampling=measure.sampling(scenario.measure, scenario.test.step, main, flows, able.layers),
        captures=measure.captures(scenario.capture, able),
        radios=radios.radios(network),
        events=planned,
        roots=run.roots,
        rooms=run.rooms,
        apps=run.apps,
        apps_end=run.end,
    )


def _devices(scenario: Scenario, network: Network, able: Capabilities) -> Iterator[Step]:
    testbed, stack = scenario.testbed, scenario.stack
    if network.cells and not able.radios:
        raise refusal("testbed.wifi", len(network.cells), "this engine has no radios: leave the cells out")
    if able.own_kernel:
        yield from sysctls.of_all(testbed, stack)
    for node in network.nodes:
        if able.nic == "real":
            yield from hosts.forwarding(testbed, stack, network, node)
        else:
            yield from sysctls.before_devices(testbed, stack, node)
    if able.nic == "veth":
        yield from links.pairs(testbed, stack, network)
    switching = radios.switching(scenario)
    for node in network.nodes:
        yield from radios.make(testbed, scenario.seed, network, node, switching)
        yield from links.make(testbed, stack, network, node, able.nic)
    for port in (port for node in network.nodes for port in network.wires(node) if able.nic == "wire"):
        yield from links.plug(testbed, stack, scenario.seed, port)
    yield from radios.join(testbed, network)


def _stacks(scenario: Scenario, network: Network, able: Capabilities) -> Iterator[Step]:
    if able.own_kernel:
        qdiscs.check(scenario.stack, network, scenario.kernel)
    for node in network.nodes:
        made = qdiscs.make(scenario.testbed, scenario.stack, network, node, every=able.nic != "wire")
        yield from hosts.cleared(network, node, made) if able.nic == "real" else made
        yield from sysctls.after_devices(scenario.stack, node, able.own_kernel)


def _reach(setting: Setting) -> Iterator[ReachStep]:
    """From the client to each server: the pairs that the test uses."""
    test, testbed = setting.scenario.test, setting.scenario.testbed
    late_ns = sum(sum(link.jitter) + 2 * link.reorder_delay * any(link.reorder) for link in testbed.link)
    shapers = [one for link in testbed.link for side in (0, 1) if (one := away(link.shaper, side))]
    late_ns += sum((one.grant_cycle or 0) + (one.grant_delay or 0) for one in shapers)
    carriers_ns = 2 * len(testbed.link) // CARRIERS_PER_S * 10**9
    for server in test.hosts or (test.server,):
        path = setting.paths.between(test.client, server)
        delay_ns = sum(hop.delay_ns for hop in (*path.there, *path.back))
        yield ReachStep(
            do="reach",
            node=test.client,
            address=setting.ends(server)["address"],
            timeout_ns=REACH_NS + 4 * (delay_ns + late_ns) + carriers_ns,
            origin="testbed",
        )
