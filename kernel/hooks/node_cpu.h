/* SPDX-License-Identifier: GPL-2.0-only */
/* The time that packets take on the CPU of their node; arch/um/kernel/hourglass_program_cpu.c. */
#ifndef _NET_HOURGLASS_CPU_H
#define _NET_HOURGLASS_CPU_H

#include <linux/types.h>

struct net;

enum hourglass_cpu_work {
	HOURGLASS_CPU_RECEIVED,		/* a frame, from its NIC to the stack */
	HOURGLASS_CPU_SENT,		/* an skb, from the qdisc to its NIC */
	HOURGLASS_CPU_WORKS
};

/* True once a node's packets or timers take time. */
extern bool hourglass_cpu_packets;

u64 __hourglass_cpu_book(const struct net *net, enum hourglass_cpu_work work, u32 packets);
u64 __hourglass_cpu_timer_ns(const struct net *net);

/* Books the work on the CPU of @net. Returns the ns at which it is complete; 0: no time. */
static inline u64 hourglass_cpu_book(const struct net *net, enum hourglass_cpu_work work,
				     u32 packets)
{
	return hourglass_cpu_packets ? __hourglass_cpu_book(net, work, packets) : 0;
}

/* Returns by how many ns pacing timers of @net are late. */
static inline u64 hourglass_cpu_timer_ns(const struct net *net)
{
	return hourglass_cpu_packets ? __hourglass_cpu_timer_ns(net) : 0;
}

#endif
