/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of the probe where no tracepoint exists; drivers/net/hourglass/probe/probe_tcp.c,
 * probe_path.c, probe_drop.c.
 */
#ifndef _NET_HOURGLASS_PROBE_H
#define _NET_HOURGLASS_PROBE_H

#include <linux/compiler.h>
#include <linux/types.h>

struct sock;
struct sk_buff;

#ifdef CONFIG_HOURGLASS_PROBE
extern bool probe_on;
#else
#define probe_on false
#endif

void __probe_tcp_written(struct sock *sk);
void __probe_tcp_limit(struct sock *sk, const struct sk_buff *skb, unsigned long limit);
void __probe_tcp_held(struct sock *sk, unsigned int mss);
void __probe_duplicated(const struct sk_buff *copy);
void __probe_flooded(const struct sk_buff *copy);
void __probe_filtered(const struct sk_buff *skb);

/* write_seq has grown. */
static inline void probe_tcp_written(struct sock *sk)
{
	if (unlikely(probe_on))
		__probe_tcp_written(sk);
}

/* TCP Small Queues is about to compare sk_wmem_alloc with @limit for @skb. */
static inline void probe_tcp_limit(struct sock *sk, const struct sk_buff *skb, unsigned long limit)
{
	if (unlikely(probe_on))
		__probe_tcp_limit(sk, skb, limit);
}

/* TCP has sent all data that it may send. The rest is held. */
static inline void probe_tcp_held(struct sock *sk, unsigned int mss)
{
	if (unlikely(probe_on))
		__probe_tcp_held(sk, mss);
}

/* A qdisc has copied an skb. @copy is NULL if that failed. */
static inline void probe_duplicated(const struct sk_buff *copy)
{
	if (unlikely(probe_on) && copy)
		__probe_duplicated(copy);
}

/* A bridge has copied an skb, for one of several ports. */
static inline void probe_flooded(const struct sk_buff *copy)
{
	if (unlikely(probe_on))
		__probe_flooded(copy);
}

/* A qdisc is about to drop @skb, an acknowledgment that a later one makes redundant. */
static inline void probe_filtered(const struct sk_buff *skb)
{
	if (unlikely(probe_on))
		__probe_filtered(skb);
}

#endif
