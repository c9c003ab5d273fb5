# SPDX-License-Identifier: Apache-2.0
"""The traffic of tests that is no bulk flow: the flood, the telephone, the web."""

from hourglass.plan.model import Datagram, Fetch
from hourglass.plan.network import Network
from hourglass.scenario import Scenario
from hourglass.scenario.tests import BE, TESTS, VOIP_BYTES, VOIP_INTERVAL_S
from hourglass.scenario.units import NS_PER_S, seconds_ns

FLOOD_PORT = 5001
"""iperf's."""
VOIP_PORT = 8999
"""D-ITG's."""
HTTP_PORT = 8080
"""The first client's; the further ones have the ports after it."""
REQUEST_BYTES = 300
"""A GET with a browser's usual headers."""


def datagrams(scenario: Scenario, network: Network, first_id: int) -> list[Datagram]:
    """The flood during the load, the telephone from the first to the last moment."""
    test = scenario.test
    kind = TESTS[test.name]
    loaded_ns, length_ns = seconds_ns(test.delay), seconds_ns(test.length)
    made = []
    ends = {"client": test.client, "server": test.server, "address": str(network.address(test.client, test.server).ip)}
    if kind.flood:
        assert test.udp_bandwidth is not None
        assert test.udp_pktsize is not None
        interval_ns = test.udp_pktsize * 8 * NS_PER_S / test.udp_bandwidth
        made.append(
            Datagram(id=first_id, name="udp upload", **ends, port=FLOOD_PORT, dscp=BE, payload_bytes=test.udp_pktsize,
                     start_ns=loaded_ns, stop_ns=loaded_ns + length_ns, interval_ns=max(1, round(interval_ns)))
        )  # fmt: skip
    if kind.voip:
        made.append(
            Datagram(id=first_id, name="voip", **ends, port=VOIP_PORT, dscp=test.voip_marking or BE,
                     payload_bytes=VOIP_BYTES, start_ns=0, stop_ns=2 * loaded_ns + length_ns,
                     interval_ns=seconds_ns(VOIP_INTERVAL_S))
        )  # fmt: skip
    return made


def fetches(scenario: Scenario, network: Network) -> list[Fetch]:
    """The clients of the web, from the first to the last moment."""
    test = scenario.test
    if not TESTS[test.name].http:
        return []
    assert test.http_workers is not None
    assert test.http_interval is not None
    address = str(network.address(test.client, test.server).ip)
    return [
        Fetch(
            id=number,
            name="http" if test.http_workers == 1 else f"http {number + 1}",
            client=test.client,
            server=test.server,
            address=address,
            port=HTTP_PORT + number,
            cc=scenario.stack.of(test.server).cc,
            dscp=BE,
            request_bytes=REQUEST_BYTES,
            sizes=list(test.http_sizes or ()),
            start_ns=0,
            stop_ns=2 * seconds_ns(test.delay) + seconds_ns(test.length),
            interval_ns=seconds_ns(test.http_interval),
        )
        for number in range(test.http_workers)
    ]
