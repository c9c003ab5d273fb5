# SPDX-License-Identifier: Apache-2.0
"""The kernel's names that a scenario may use, and the names that the engine reserves."""

CONGESTION_CONTROLS = (
    "reno", "bbr", "bic", "cdg", "cubic", "dctcp", "westwood", "highspeed", "hybla",
    "htcp", "vegas", "nv", "veno", "scalable", "lp", "yeah", "illinois",
)  # fmt: skip
"""All of Linux 5.10 to 7.3, net/ipv4/tcp_*.c."""

NOT_IN_LINUX = {
    "prague": "is in none of these kernels; `hourglass kernel new prague.c --from prague` makes a file of it",
    "bbr3": "is in none of these kernels; `hourglass kernel new bbr3.c --from bbr3` makes a file of it",
}
"""Congestion controls that users often ask for, and why Linux lacks them."""

QDISCS = (
    "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "codel", "cake", "pie", "fq_pie", "sfq",
    "sfb", "red", "choke", "hhf", "skbprio", "prio", "ets", "tbf", "netem", "dualpi2",
)  # fmt: skip
"""The qdiscs that work on one tc line, as root and below HTB, on a NIC of one queue.

Left out: htb, hfsc, drr, qfq (drop or bypass everything until classes are made), gred (needs a second line),
etf (need times of packets), cbs, plug, teql, ingress, clsact, noqueue.
"""

MULTIQUEUE_QDISCS = ("mq", "mqprio", "multiq", "taprio", "cake_mq")
"""The qdiscs that work on one tc line, as root on a NIC with several queues."""

QDISCS_SINCE = {"dualpi2": (6, 17), "cake_mq": (7, 0)}
"""The first kernel release of newer qdiscs."""

OTHER_QDISCS = ("htb", "hfsc", "drr", "qfq", "etf", "cbs", "gred", "plug", "ingress", "clsact", "noqueue")
"""Other kinds that a line of `tc` during the test may name."""

OWNED_SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "set stack.cc instead",
    "net.ipv4.tcp_allowed_congestion_control": "it follows stack.cc",
    "net.ipv4.tcp_pacing_ss_ratio": "set stack.pacing.ss instead",
    "net.ipv4.tcp_pacing_ca_ratio": "set stack.pacing.ca instead",
    "net.ipv4.tcp_tsq_mode": "set stack.tsq instead",
    "net.ipv4.tcp_tsq_usecs": "set stack.tsq instead",
    "net.ipv4.tcp_tsq_bytes": "set stack.tsq instead",
    "net.ipv4.tcp_gso_usecs": "set stack.gso instead",
    "net.ipv4.ip_forward": 'give the node role = "router" instead',
    "net.ipv4.conf.all.forwarding": 'give the node role = "router" instead',
    "net.ipv6.conf.all.forwarding": 'give the node role = "router" instead',
    "net.ipv6.conf.all.disable_ipv6": "set testbed.ip instead",
    "net.ipv6.conf.default.disable_ipv6": "set testbed.ip instead",
    "net.ipv4.tcp_mem": "cannot be set: it is constant for all nodes, so that the guest's memory size has no effect",
    "net.core.default_qdisc": "set stack.qdisc instead",
}
"""Sysctls that another key decides, with that key. They are refused, so that each fact has one key."""
