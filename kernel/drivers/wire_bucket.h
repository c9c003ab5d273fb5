/* SPDX-License-Identifier: GPL-2.0-only */
/* A token bucket in whole ns and nanobits; see wire_bucket.c. */
#ifndef _WIRE_BUCKET_H
#define _WIRE_BUCKET_H

#include <linux/types.h>

struct wire_bucket {
	/* parameters */
	u64 rate_bps;		/* 1 .. 10^12; 0: there is no bucket */
	u64 burst_bytes;	/* 1 .. 10^9 */

	/* state: all 0 is a full bucket */
	u64 spent;		/* nanobits that have been taken and not yet replaced ... */
	u64 at_ns;		/* ... at this time */
};

/*
 * The first ns at or after @now_ns, and after all frames that were taken, at which the
 * bucket holds @bytes; WIRE_NEVER if that is more than it can hold.
 */
u64 wire_bucket_ready(const struct wire_bucket *bucket, u64 now_ns, u32 bytes);

/* Takes @bytes at @at_ns, wire_bucket_ready() or later; the frame has come then, or @waited. */
void wire_bucket_take(struct wire_bucket *bucket, u64 at_ns, u32 bytes, bool waited);

/* A policer: takes @bytes that come at @now_ns if they are there, or nothing. */
bool wire_bucket_pass(struct wire_bucket *bucket, u64 now_ns, u32 bytes);

#endif
