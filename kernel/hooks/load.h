/* SPDX-License-Identifier: GPL-2.0-only */
/* Bulk data that TCP sends without a copy; drivers/net/hourglass/lib/load.c. */
#ifndef _NET_HOURGLASS_LOAD_H
#define _NET_HOURGLASS_LOAD_H

#include <net/sock.h>

/* The highest bit of sk_flags: the kernel uses its bits from the lowest one on. */
#define LOAD_FLAG	(BITS_PER_LONG - 1)

bool __load_refill(struct page_frag *fragment);

static inline bool load_marked(const struct sock *sk)
{
	return IS_ENABLED(CONFIG_HOURGLASS_LOAD) && test_bit(LOAD_FLAG, &sk->sk_flags);
}

/* Returns the page fragment for the next bytes of @sk: its own, or that of its thread. */
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
