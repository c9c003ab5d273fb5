/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TCP Small Queues and GSO autosizing, settable per network namespace. See
 * tcp_tsq_mode and tcp_gso_usecs in Documentation/networking/ip-sysctl.rst.
 */
#ifndef _NET_TCP_TSQ_H
#define _NET_TCP_TSQ_H

#include <linux/math64.h>
#include <linux/time64.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/* net.ipv4.tcp_tsq_mode */
enum tcp_tsq_mode {
	TCP_TSQ_DEFAULT,
	TCP_TSQ_TIME,
	TCP_TSQ_BYTES,
	TCP_TSQ_OFF,
};

#define TCP_TSQ_USECS_MAX	(10 * USEC_PER_SEC)

/* Above any send buffer. Doubled for retransmissions it still fits a long. */
#define TCP_TSQ_UNLIMITED	BIT(BITS_PER_LONG == 64 ? 48 : 29)

/*
 * Returns the bytes sent in @usecs, at most TCP_TSQ_USECS_MAX, at the pacing rate, rounded down.
 * An unknown rate is ~0UL. With the limit of a terabyte per second, the product fits 64 bits.
 */
static inline u64 tcp_pacing_bytes(const struct sock *sk, u32 usecs)
{
	u64 rate = min_t(u64, READ_ONCE(sk->sk_pacing_rate), BIT_ULL(40));

	return div_u64(rate * usecs, USEC_PER_SEC);
}

/*
 * Returns the limit before the cap of tcp_limit_output_bytes. @limit follows from the pacing
 * shift and applies where no time is set.
 */
static inline unsigned long tcp_tsq_time_limit(const struct sock *sk,
					       const struct sk_buff *skb,
					       unsigned long limit)
{
	const struct netns_ipv4 *ipv4 = &sock_net(sk)->ipv4;

	if (READ_ONCE(ipv4->sysctl_tcp_tsq_mode) != TCP_TSQ_TIME)
		return limit;

	return clamp_t(u64,
		       tcp_pacing_bytes(sk, READ_ONCE(ipv4->sysctl_tcp_tsq_usecs)),
		       2 * skb->truesize, TCP_TSQ_UNLIMITED);
}

/* Returns the limit before it is doubled for retransmissions. */
static inline unsigned long tcp_tsq_limit(const struct sock *sk,
					  unsigned long limit)
{
	const struct netns_ipv4 *ipv4 = &sock_net(sk)->ipv4;

	switch (READ_ONCE(ipv4->sysctl_tcp_tsq_mode)) {
	case TCP_TSQ_BYTES:
		return READ_ONCE(ipv4->sysctl_tcp_tsq_bytes);
	case TCP_TSQ_OFF:
		return TCP_TSQ_UNLIMITED;
	default:
		return limit;
	}
}

/*
 * Returns the payload of the next skb. @bytes is the result of autosizing, @max the capacity of
 * a GSO skb.
 */
static inline unsigned long tcp_gso_bytes(const struct sock *sk,
					  unsigned long bytes, u32 max)
{
	u32 usecs = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_gso_usecs);

	return usecs ? min_t(u64, tcp_pacing_bytes(sk, usecs), max) : bytes;
}

#endif /* _NET_TCP_TSQ_H */
