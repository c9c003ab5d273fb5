/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP Small Queues and GSO autosizing, settable per network namespace. See hourglass_tsq.c. */
#ifndef _NET_HOURGLASS_TSQ_H
#define _NET_HOURGLASS_TSQ_H

struct sock;
struct sk_buff;

enum tsq_mode { TSQ_KERNEL, TSQ_TIME, TSQ_BYTES, TSQ_OFF };

enum tsq_mode tsq_mode(const struct sock *sk);

/*
 * The bytes of truesize a socket may have below it, before the doubling for
 * retransmissions. @kernel is what the kernel's own rule gives.
 */
unsigned long tsq_limit(const struct sock *sk, const struct sk_buff *skb,
			unsigned long kernel);

/* The payload bytes of the next skb; @kernel as above, at most @max. */
unsigned long tsq_gso_bytes(const struct sock *sk, unsigned long kernel,
			    unsigned long max);

#endif
