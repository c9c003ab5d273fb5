/* SPDX-License-Identifier: GPL-2.0-only */
/* A token bucket in whole ns and nanobits; see wire_bucket.c. */
#ifndef _WIRE_BUCKET_H
#define _WIRE_BUCKET_H

#include <linux/types.h>

struct wire_bucket {
	/* parameters */
	u64 rate_bps;		/* 1 .. 10^12; 0: no bucket */
	u64 burst_bytes;	/* 1 .. 10^9 */

	/* state; all 0 is a full bucket */
	u64 spent;		/* nanobits taken and not replaced ... */
	u64 at_ns;		/* ... at this time */
};

/*
 * Returns the first ns at which the bucket holds @bytes, not before @now_ns or the frames taken
 * so far; WIRE_NEVER if @bytes exceeds the bucket.
 */
u64 wire_bucket_ready(const struct wire_bucket *bucket, u64 now_ns, u32 bytes);

/* Takes @bytes at @at_ns, which is wire_bucket_ready() or later. @waited: the frame arrived
 * earlier.
 */
void wire_bucket_take(struct wire_bucket *bucket, u64 at_ns, u32 bytes, bool waited);

/* Policer: takes @bytes at @now_ns and returns true, or takes nothing and returns false. */
bool wire_bucket_pass(struct wire_bucket *bucket, u64 now_ns, u32 bytes);

#endif
