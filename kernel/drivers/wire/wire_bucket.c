// SPDX-License-Identifier: GPL-2.0-only
/*
 * A token bucket, for the policer and the shaper of a link.
 *
 * The bucket holds at most `burst` bytes and is full in the beginning. Tokens arrive at `rate`,
 * and each frame takes its length at once. A policer drops a frame if the tokens do not suffice
 * when it arrives. A shaper (wire_shaper.c) lets it wait.
 *
 *	burst --------------.          .-------- full: further tokens are lost
 *	                    |        .'
 *	                    |frame .'  rate
 *	                    |    .'
 *	                    '--.'
 *
 * One ns at R bit/s adds exactly R nanobits (as in wire_line.c), so the level is exact at every
 * ns and no error accumulates. If the bucket becomes full within a ns, the other tokens of this
 * ns go to the frame that waited for it, as on a line. In a time T at most burst + rate * T
 * passes. While more is offered, the unused part of this is smaller than a frame.
 *
 * Source: RFC 2697 with an excess burst of 0, as in tc-police(8), tc-tbf(8) and the policers of
 * routers. Lengths are those of tc: from the Ethernet header to the end of the payload, without
 * preamble, padding, FCS and gap.
 * Left out: colours and remarking (RFC 2697's yellow, RFC 2698's two rates).
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_bucket_test.c.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include "wire_bucket.h"
#include "wire_line.h"

static u64 wire_nanobits(u64 bytes)
{
	return bytes * BITS_PER_BYTE * NSEC_PER_SEC;
}

/* Returns the missing tokens at @at_ns, which is not before the last frame's departure. */
static u64 wire_bucket_spent(const struct wire_bucket *bucket, u64 at_ns)
{
	u64 elapsed_ns = at_ns - bucket->at_ns;

	if (elapsed_ns >= DIV64_U64_ROUND_UP(bucket->spent, bucket->rate_bps))
		return 0;
	return bucket->spent - elapsed_ns * bucket->rate_bps;
}

u64 wire_bucket_ready(const struct wire_bucket *bucket, u64 now_ns, u32 bytes)
{
	u64 capacity = wire_nanobits(bucket->burst_bytes), need = wire_nanobits(bytes);
	u64 at_ns = max(now_ns, bucket->at_ns), spent;

	if (need > capacity)
		return WIRE_NEVER;
	spent = wire_bucket_spent(bucket, at_ns);
	if (spent <= capacity - need)
		return at_ns;
	return at_ns + DIV64_U64_ROUND_UP(spent - (capacity - need), bucket->rate_bps);
}

/* Returns the tokens above the full level in the ns that ends at @at_ns; 0 if it was full
 * before.
 */
static u64 wire_bucket_over(const struct wire_bucket *bucket, u64 at_ns)
{
	u64 elapsed_ns = at_ns - bucket->at_ns;

	if (elapsed_ns != DIV64_U64_ROUND_UP(bucket->spent, bucket->rate_bps))
		return 0;
	return elapsed_ns * bucket->rate_bps - bucket->spent;
}

void wire_bucket_take(struct wire_bucket *bucket, u64 at_ns, u32 bytes, bool waited)
{
	u64 cost = wire_nanobits(bytes), over = waited ? wire_bucket_over(bucket, at_ns) : 0;

	bucket->spent = wire_bucket_spent(bucket, at_ns) + cost - min(over, cost);
	bucket->at_ns = at_ns;
}

bool wire_bucket_pass(struct wire_bucket *bucket, u64 now_ns, u32 bytes)
{
	if (wire_bucket_ready(bucket, now_ns, bytes) > now_ns)
		return false;
	wire_bucket_take(bucket, now_ns, bytes, false);
	return true;
}
