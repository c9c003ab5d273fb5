# SPDX-License-Identifier: Apache-2.0
"""`build`: a scenario as steps.

Order of the set-up: global settings; settings that new devices inherit; radios, access points, devices, addresses,
routes; cables; stations join; qdiscs; sysctls; a ping that resolves the neighbours. Neighbouring `ip` (or `tc`) steps
of a node are one process in the guest, so a node's steps are adjacent.
"""

from collections.abc import Iterator, Sequence

from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import VERSION, FlowStream, Hop, Path, Plan, ReachStep, Step
from hourglass.plan import apps, events, hosts, links, measure, qdiscs, radios, switches, sysctls
from hourglass.plan.network import Network
from hourglass.plan.paths import Paths
from hourglass.plan.streams import StreamContext, streams
from hourglass.scenario import Scenario
from hourglass.scenario.blame import refusal
from hourglass.scenario.edge import away

REACH_NS = 10 * 10**9
"""Timeout of the first ping, in addition to the links' delays."""
LOSES_ALL = "loss 100%"
"""The impairment of a hop that nothing passes."""

CARRIERS_PER_S = 100
"""The number of devices whose carrier the kernel announces per second (net/core/link_watch.c); until then they send
nothing."""


def build(scenario: Scenario, able: Capabilities) -> Plan:
    """Return the plan of a scenario for an engine with these capabilities.

    Raises InputError if the scenario is not feasible: addresses that clash, an unreachable server, a feature that the
    engine lacks.
    """
    if scenario.module and not able.own_kernel:
        allowed = "is compiled into the guest's kernel, and this engine has none; remove it, or use --engine virtual"
        raise refusal("module", [module.name for module in scenario.module], allowed)
    network = Network(scenario.testbed, default_routes=able.nic != "real")
    setting = StreamContext(scenario, Paths(scenario.testbed, scenario.stack, network))
    planned_streams = streams(setting)
    flows = sum(isinstance(stream, FlowStream) for stream in planned_streams)
    main = setting.paths.between(scenario.test.client, scenario.test.server)
    planned_events = events.all_events(scenario, network, able, setting.end_ns)
    cpus = apps.cpus(scenario, able.programs)
    setup = [*_devices(scenario, network, able), *_stacks(scenario, network, able), *cpus, *_reach(setting, network)]
    if able.nic == "real":
        setup = [
            *hosts.keep(
                scenario.testbed, network, [*setup, *(step for event in planned_events for step in event.steps)]
            ),
            *setup,
        ]
    run = apps.programs(scenario, network, setting.end_ns, able.programs)
    return Plan(
        version=VERSION,
        seed=scenario.seed,
        end_ns=setting.end_ns,
        nodes=network.nodes,
        setup=setup,
        streams=planned_streams,
        paths=setting.paths.all(),
        sampling=measure.sampling(scenario.measure, scenario.test.step, main, flows, able.layers),
        captures=measure.captures(scenario.capture, able),
        radios=radios.radios(network),
        events=planned_events,
        roots=run.roots,
        rooms=run.rooms,
        apps=run.apps,
        apps_end=run.end,
    )


def _devices(scenario: Scenario, network: Network, able: Capabilities) -> Iterator[Step]:
    testbed, stack = scenario.testbed, scenario.stack
    if able.nic == "real":
        switches.refuse(network)
    if network.cells and not able.radios:
        raise refusal("testbed.wifi", len(network.cells), "this engine has no radios; remove the cells")
    if able.own_kernel:
        yield from sysctls.global_sysctls(testbed, stack)
    for node in network.nodes:
        if able.nic == "real":
            yield from hosts.forwarding(testbed, stack, network, node)
        else:
            yield from sysctls.before_devices(testbed, stack, network, node)
    if able.nic == "veth":
        yield from links.pairs(testbed, stack, network)
    switching = radios.switching(scenario)
    for node in network.nodes:
        yield from switches.make(network, node)
        yield from radios.make(testbed, scenario.seed, network, node, switching)
        yield from links.make(testbed, stack, network, node, able.nic)
    for port in (port for node in network.nodes for port in network.wires(node) if able.nic == "wire"):
        yield from links.plug(testbed, stack, scenario.seed, port)
    yield from radios.join(testbed, network)


def _stacks(scenario: Scenario, network: Network, able: Capabilities) -> Iterator[Step]:
    if able.own_kernel:
        qdiscs.check(scenario.stack, network, scenario.kernel)
    for node in network.nodes:
        yield from qdiscs.make(scenario.testbed, scenario.stack, network, node, able.nic)
        yield from sysctls.after_devices(scenario.stack, node, able.own_kernel)


def _reach(setting: StreamContext, network: Network) -> Iterator[ReachStep]:
    """Return the pairs of nodes of the test: the client and each server, and others whose packets pass switches with
    the spanning tree protocol. If routers have only connected routes, return the pairs of neighbours on the paths
    between these. Until a daemon adds routes, no ping passes two routers."""
    test, testbed = setting.scenario.test, setting.scenario.testbed
    late_ns = sum(sum(link.jitter) + 2 * link.reorder_delay * any(link.reorder) for link in testbed.link)
    shapers = [shaper for link in testbed.link for side in (0, 1) if (shaper := away(link.shaper, side))]
    late_ns += sum((shaper.grant_cycle or 0) + (shaper.grant_delay or 0) for shaper in shapers)
    wait_ns = 2 * len(testbed.link) // CARRIERS_PER_S * 10**9 + switches.forwarding_ns(network)
    servers = [server for server in test.hosts or (test.server,) if server != test.client]
    paths = [setting.paths.between(test.client, server) for server in servers]
    paths += [path for path in setting.paths.all() if _waits(path, network) and path not in paths]
    for path in paths:
        hops = (*path.there, *path.back)
        delay_ns = sum(hop.delay_ns for hop in hops)
        pairs = [(path.client, setting.ends(path.server, path.client)["address"])]
        if testbed.routes == "connected":
            pairs = list(_neighbours(hops))
        for node, address in pairs:
            yield ReachStep(
                do="reach",
                node=node,
                address=address,
                timeout_ns=REACH_NS + 4 * (delay_ns + late_ns) + wait_ns,
                origin=next((f"{hop.origin}.loss" for hop in hops if LOSES_ALL in hop.impairments), "testbed"),
            )


def _waits(path: Path, network: Network) -> bool:
    """Return whether a path passes a switch whose ports do not forward at once."""
    return any(hop.node in network.lans.switches and network.lans.switches[hop.node].stp for hop in path.there)


def _neighbours(hops: Sequence[Hop]) -> Iterator[tuple[str, str]]:
    """Yield each node with an address on a path, and the next address. Switches between them have none."""
    node = ""
    for hop in hops:
        node = hop.node if hop.address else node
        if hop.to_address:
            yield node, hop.to_address.split("/")[0]
