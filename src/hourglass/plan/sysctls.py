# SPDX-License-Identifier: Apache-2.0
"""The sysctls of the nodes, as writes to /proc/sys.

What new devices inherit (`….default.…`, whether there is IPv6) is written before the devices are made, all else after.
"""

from collections.abc import Iterator

from hourglass.contract.plan import WriteStep
from hourglass.scenario import Stack, Testbed

TCP_MEM = "190000 260000 390000"
"""Pages at which TCP as a whole begins to save memory. The kernel derives them from the memory it finds; this is about
what it finds on a machine of 16 GB, always the same."""

NS_PER_US = 1000

TSQ_MODES = {"default": 0, "time": 1, "size": 2, "off": 3}
"""net.ipv4.tcp_tsq_mode, kernel/hooks/tcp_tsq.h."""


def of_all(testbed: Testbed, stack: Stack) -> Iterator[WriteStep]:
    """What there is one of for all nodes.

    A namespace can have a congestion control as its default only if the first namespace allows it to everybody.
    """
    yield _write(None, "net.ipv4.tcp_mem", TCP_MEM, None)
    used = {stack.of(node.name).cc for node in testbed.node}
    allowed = ["reno", *sorted(used - {"reno"})]
    yield _write(None, "net.ipv4.tcp_allowed_congestion_control", " ".join(allowed), "stack.cc")


def before_devices(testbed: Testbed, stack: Stack, node: str) -> Iterator[WriteStep]:
    """What has to stand before the node's devices are made."""
    if testbed.ip == 4:
        yield _write(node, "net.ipv6.conf.default.disable_ipv6", "1", "testbed.ip")
    else:
        # No announcements at random times: addresses are known to be unique, routes are static.
        yield _write(node, "net.ipv6.conf.default.accept_dad", "0", "testbed.ip")
        yield _write(node, "net.ipv6.conf.default.router_solicitations", "0", "testbed.ip")
    if any(one.name == node and one.role == "router" for one in testbed.node):
        forwarding = "net.ipv4.ip_forward" if testbed.ip == 4 else "net.ipv6.conf.all.forwarding"
        yield _write(node, forwarding, "1", "testbed.node")
    yield from _given(stack, node, for_new_devices=True)


def after_devices(stack: Stack, node: str, own_kernel: bool) -> Iterator[WriteStep]:
    """The node's TCP, and the scenario's further sysctls.

    Without a kernel of its own, what `of_all` allows is not there: flows then have their congestion control from their
    sockets alone.
    """
    own = stack.of(node)

    def write(name: str, value: object, key: str, part: str = "") -> WriteStep:
        return _write(node, f"net.ipv4.{name}", str(value), stack.origin(node, key, part))

    if own_kernel:
        yield write("tcp_congestion_control", own.cc, "cc")
    yield write("tcp_pacing_ss_ratio", own.pacing.ss, "pacing", "ss")
    yield write("tcp_pacing_ca_ratio", own.pacing.ca, "pacing", "ca")
    for name, value in _tsq(own):
        yield write(name, value, "tsq")
    if own.gso:
        yield write("tcp_gso_usecs", own.gso // NS_PER_US, "gso")
    yield from _given(stack, node, for_new_devices=False)


def _tsq(stack: Stack) -> Iterator[tuple[str, int]]:
    """The sysctls of our kernels, and of those with our patch; none at the kernel's own rule: any kernel will do."""
    mode, amount = stack.tsq
    if mode == "default":
        return
    if mode == "time":
        yield "tcp_tsq_usecs", amount // NS_PER_US
    elif mode == "size":
        yield "tcp_tsq_bytes", amount
    yield "tcp_tsq_mode", TSQ_MODES[mode]


def _given(stack: Stack, node: str, for_new_devices: bool) -> Iterator[WriteStep]:
    for name, value in sorted(stack.of(node).sysctl.items()):
        if (".default." in name) == for_new_devices:
            yield _write(node, name, value, stack.origin(node, "sysctl", name))


def _write(node: str | None, name: str, value: str, origin: str | None) -> WriteStep:
    return WriteStep(do="write", node=node, path=f"/proc/sys/{name.replace('.', '/')}", value=value, origin=origin)
