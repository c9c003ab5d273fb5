// SPDX-License-Identifier: GPL-2.0-only
/*
 * A token bucket: what polices and what shapes the traffic of a link.
 *
 * The bucket holds `burst` bytes at most and is full in the beginning. It is filled at
 * `rate` and emptied by what passes, all of a frame at once. A policer drops a frame for
 * which there is not enough at the moment it comes; a shaper (wire_shaper.c) lets it wait.
 *
 *	burst --------------.          .-------- full: what is filled is lost
 *	                    |        .'
 *	                    |frame .'  rate
 *	                    |    .'
 *	                    '--.'
 *
 * One ns at R bit/s fills exactly R nanobits (as in wire_line.c), so the level is exact at
 * every ns and nothing drifts: what the last ns filled beyond a full bucket belongs to the
 * frame that was waiting for it, as on a line. In a time T at most burst + rate * T passes,
 * and all but less than a frame of that as long as more is offered.
 *
 * Source: RFC 2697 with an excess burst of 0, the law of tc-police(8), tc-tbf(8) and of
 * the routers' policers; what is counted is what tc counts, the frame from its Ethernet
 * header to the end of its payload: preamble, padding, FCS and gap are not.
 * Left out: colours and remarking (RFC 2697's yellow, RFC 2698's two rates).
 *
 * No locks, no clock, no device: proved in kernel/tests/wire_bucket_test.c.
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

/* What is to be filled at @at_ns, which is not before what was taken last. */
static u64 wire_bucket_spent(const struct wire_bucket *bucket, u64 at_ns)
{
	u64 elapsed_ns = at_ns - bucket->at_ns;

	if (elapsed_ns >= DIV64_U64_ROUND_UP(bucket->spent, bucket->rate_bps))
		return 0;
	return bucket->spent - elapsed_ns * bucket->rate_bps;
}

u64 wire_bucket_ready(const struct wire_bucket *bucket, u64 now_ns, u32 bytes)
{
	u64 most = wire_nanobits(bucket->burst_bytes), need = wire_nanobits(bytes);
	u64 at_ns = max(now_ns, bucket->at_ns), spent;

	if (need > most)
		return WIRE_NEVER;
	spent = wire_bucket_spent(bucket, at_ns);
	if (spent <= most - need)
		return at_ns;
	return at_ns + DIV64_U64_ROUND_UP(spent - (most - need), bucket->rate_bps);
}

/* What was filled too much within the ns that ends at @at_ns; 0 if the bucket was full before. */
static u64 wire_bucket_over(const struct wire_bucket *bucket, u64 at_ns)
{
	u64 elapsed_ns = at_ns - bucket->at_ns;

	if (elapsed_ns != DIV64_U64_ROUND_UP(bucket->spent, bucket->rate_bps))
		return 0;
	return elapsed_ns * bucket->rate_bps - bucket->spent;
}

void wire_bucket_take(struct wire_bucket *bucket, u64 at_ns, u32 bytes, bool waited)
{
	u64 taken = wire_nanobits(bytes), over = waited ? wire_bucket_over(bucket, at_ns) : 0;

	bucket->spent = wire_bucket_spent(bucket, at_ns) + taken - min(over, taken);
	bucket->at_ns = at_ns;
}

bool wire_bucket_pass(struct wire_bucket *bucket, u64 now_ns, u32 bytes)
{
	if (wire_bucket_ready(bucket, now_ns, bytes) > now_ns)
		return false;
	wire_bucket_take(bucket, now_ns, bytes, false);
	return true;
}
