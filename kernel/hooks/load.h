/* SPDX-License-Identifier: GPL-2.0-only */
/* What TCP sends for a bulk flow without copying it; drivers/net/hourglass/load.c. */
#ifndef _NET_HOURGLASS_LOAD_H
#define _NET_HOURGLASS_LOAD_H

#include <net/sock.h>

/* A bit of sk_flags, which the kernel fills from the other end. */
#define LOAD_FLAG	(BITS_PER_LONG - 1)

bool __load_refill(struct page_frag *fragment);

static inline bool load_marked(const struct sock *sk)
{
	return IS_ENABLED(CONFIG_HOURGLASS_LOAD) && test_bit(LOAD_FLAG, &sk->sk_flags);
}

/* Where the next bytes of @sk go: into a place of its own, or one of its thread's. */
static inline struct page_frag *load_frag(struct sock *sk)
{
	return load_marked(sk) ? &sk->sk_frag : sk_page_frag(sk);
}

static inline bool load_refill(struct sock *sk, struct page_frag *fragment)
{
	return load_marked(sk) ? __load_refill(fragment) : sk_page_frag_refill(sk, fragment);
}

static inline int load_copy(struct sock *sk, struct iov_iter *from, struct sk_buff *skb,
			    struct page *page, int offset, int length)
{
	if (!load_marked(sk))
		return skb_copy_to_page_nocache(sk, from, skb, page, offset, length);
	iov_iter_advance(from, length);
	skb->len += length;
	skb->data_len += length;
	skb->truesize += length;
	sk_wmem_queued_add(sk, length);
	sk_mem_charge(sk, length);
	return 0;
}

#endif
