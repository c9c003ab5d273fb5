# SPDX-License-Identifier: Apache-2.0
"""The sysctls of the nodes, as writes to /proc/sys.

Settings that new devices inherit (`….default.…`, IPv6 on or off) are written before the devices are made, all others
after.
"""

from collections.abc import Iterator

from hourglass.contract.plan import WriteStep
from hourglass.plan.network import Network
from hourglass.scenario import Stack, Testbed

TCP_MEM = "190000 260000 390000"
"""The numbers of pages at which TCP as a whole begins to save memory. The kernel derives them from its memory; these
are constant, about those of a machine with 16 GB."""

NS_PER_US = 1000

TSQ_MODES = {"default": 0, "time": 1, "size": 2, "off": 3}
"""net.ipv4.tcp_tsq_mode, kernel/hooks/tcp_tsq.h."""


def global_sysctls(testbed: Testbed, stack: Stack) -> Iterator[WriteStep]:
    """Yield the sysctls that exist once for all nodes.

    A namespace can have a congestion control as its default only if the first namespace allows it to everybody.
    """
    yield _write(None, "net.ipv4.tcp_mem", TCP_MEM, None)
    used = {stack.of(node.name).cc for node in testbed.node}
    allowed = ["reno", *sorted(used - {"reno"})]
    yield _write(None, "net.ipv4.tcp_allowed_congestion_control", " ".join(allowed), "stack.cc")


def before_devices(testbed: Testbed, stack: Stack, network: Network, node: str) -> Iterator[WriteStep]:
    """Yield the sysctls that must be set before the node's devices are created. A switch has no addresses."""
    if testbed.ip == 4 or node in network.lans.switches:
        yield _write(node, "net.ipv6.conf.default.disable_ipv6", "1", "testbed.ip")
    else:
        # No announcements at random times: addresses are unique, routes are static.
        yield _write(node, "net.ipv6.conf.default.accept_dad", "0", "testbed.ip")
        yield _write(node, "net.ipv6.conf.default.router_solicitations", "0", "testbed.ip")
    if node in network.routers:
        forwarding = "net.ipv4.ip_forward" if testbed.ip == 4 else "net.ipv6.conf.all.forwarding"
        yield _write(node, forwarding, "1", "testbed.node")
    if testbed.ip == 4 and network.meets_itself(node):
        # Each device answers and asks for its own address alone, as with IPv6, so that packets to it arrive there.
        yield _write(node, "net.ipv4.conf.all.arp_ignore", "1", "testbed.node")
        yield _write(node, "net.ipv4.conf.all.arp_announce", "2", "testbed.node")
    yield from _scenario_sysctls(stack, node, for_new_devices=True)


def after_devices(stack: Stack, node: str, own_kernel: bool) -> Iterator[WriteStep]:
    """Yield the sysctls of the node's TCP, and the scenario's other sysctls.

    Without a separate kernel, the permissions of `global_sysctls` are missing. Flows then get their congestion control
    from their sockets only.
    """
    node_stack = stack.of(node)

    def write(name: str, value: object, key: str, part: str = "") -> WriteStep:
        return _write(node, f"net.ipv4.{name}", str(value), stack.origin(node, key, part))

    if own_kernel:
        yield write("tcp_congestion_control", node_stack.cc, "cc")
    yield write("tcp_pacing_ss_ratio", node_stack.pacing.ss, "pacing", "ss")
    yield write("tcp_pacing_ca_ratio", node_stack.pacing.ca, "pacing", "ca")
    for name, value in _tsq(node_stack):
        yield write(name, value, "tsq")
    if node_stack.gso:
        yield write("tcp_gso_usecs", node_stack.gso // NS_PER_US, "gso")
    yield from _scenario_sysctls(stack, node, for_new_devices=False)


def _tsq(stack: Stack) -> Iterator[tuple[str, int]]:
    """Yield the sysctls of our kernels, and of kernels with our patch. The kernel's default rule needs none, and so
    works with any kernel."""
    mode, amount = stack.tsq
    if mode == "default":
        return
    if mode == "time":
        yield "tcp_tsq_usecs", amount // NS_PER_US
    elif mode == "size":
        yield "tcp_tsq_bytes", amount
    yield "tcp_tsq_mode", TSQ_MODES[mode]


def _scenario_sysctls(stack: Stack, node: str, for_new_devices: bool) -> Iterator[WriteStep]:
    for name, value in sorted(stack.of(node).sysctl.items()):
        if (".default." in name) == for_new_devices:
            yield _write(node, name, value, stack.origin(node, "sysctl", name))


def _write(node: str | None, name: str, value: str, origin: str | None) -> WriteStep:
    return WriteStep(do="write", node=node, path=f"/proc/sys/{name.replace('.', '/')}", value=value, origin=origin)
