/* SPDX-License-Identifier: GPL-2.0-only */
/* The receive queue of a frame; see wire_rss.c. */
#ifndef _WIRE_RSS_H
#define _WIRE_RSS_H

#include <linux/types.h>

struct sk_buff;
struct wire_faults;

#define WIRE_RSS_KEY_BYTES	40

struct wire_rss {
	u32 hash;
	bool ports;	/* of addresses and ports, not of addresses alone */
};

/* Returns the Toeplitz hash of @length bytes, at most WIRE_RSS_KEY_BYTES - 4. */
u32 wire_rss_toeplitz(const u8 *key, const u8 *input, u32 length);

/* Returns the hash of @frame; 0 if it is no IP packet. The key depends on the seed. */
struct wire_rss wire_rss(const struct sk_buff *frame, const struct wire_faults *faults);

/* Returns the index of the queue, of @queues. */
u32 wire_rss_queue(const struct wire_rss *rss, u32 queues);

#endif
