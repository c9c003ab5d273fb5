// SPDX-License-Identifier: GPL-2.0-only
/*
 * A shaper: a FIFO whose head leaves when a token bucket, or two, hold all of it.
 *
 *	      queue of so many bytes, or ms
 *	 ---> [ | | | | | ] ---> grant ---> sustained rate, burst ---> peak rate ---> out
 *	  full: tail drop   (wire_grant.c)     (wire_bucket.c)         one frame
 *
 * When a frame leaves is known when it comes: no earlier than the one before it, and at the
 * first ns at which each bucket holds it; where the line has to be asked for, no earlier than
 * it is granted. So with a burst of B, the k-th of frames of L bits
 * that come at once at time 0 leaves at max(0, ceil((k L - B) / rate)), exactly. What has left
 * by the ns in which a frame comes is no longer in the queue that the frame meets.
 *
 * A full queue drops what comes (drop tail), either where it would then hold more than
 * `limit_bytes`, the head included, or where the frame would wait longer than `latency_ns`.
 * A frame that waits longer than `ce_threshold_ns` is marked when it leaves if it can be
 * (ECN): a step, as that of fq_codel's ce_threshold and of a data centre's switch (M. Alizadeh
 * et al., "Data Center TCP", SIGCOMM 2010), in time instead of bytes.
 *
 * The law and the words are those of tc-tbf(8), net/sched/sch_tbf.c: the peak's bucket is one
 * frame deep (tbf's mtu). Unlike tbf it sends no GSO skb in one piece, since a link sees
 * frames, and its rates are exact instead of a multiplication and a shift.
 * Left out: active queue management, several queues, `overhead` and link layers of ATM.
 *
 * No locks, no clock, no device: proved in kernel/tests/wire_shaper_test.c.
 */
#include <linux/kernel.h>
#include <linux/slab.h>
#include "wire_line.h"
#include "wire_shaper.h"

/* A frame in the queue, the head included. */
struct wire_waiting {
	struct wire_waiting *next;
	u64 leaves_ns;
	u32 bytes;
};

/* Forgets what has left by @now_ns. */
static void wire_shaper_leave(struct wire_shaper *shaper, u64 now_ns)
{
	while (shaper->first && shaper->first->leaves_ns <= now_ns) {
		struct wire_waiting *gone = shaper->first;

		shaper->waiting_bytes -= gone->bytes;
		shaper->first = gone->next;
		kfree(gone);
	}
}

/* Remembers a frame, if that is a matter of bytes. False: there is no memory. */
static bool wire_shaper_wait(struct wire_shaper *shaper, u64 leaves_ns, u32 bytes)
{
	struct wire_waiting *one;

	if (!shaper->limit_bytes)
		return true;
	one = kmalloc(sizeof(*one), GFP_ATOMIC);
	if (!one)
		return false;
	*one = (struct wire_waiting){ .leaves_ns = leaves_ns, .bytes = bytes };
	if (shaper->first)
		shaper->last->next = one;
	else
		shaper->first = one;
	shaper->last = one;
	shaper->waiting_bytes += bytes;
	return true;
}

u64 wire_shaper_send(struct wire_shaper *shaper, u64 now_ns, u32 bytes)
{
	u64 leaves_ns;

	wire_shaper_leave(shaper, now_ns);
	if (shaper->limit_bytes && shaper->waiting_bytes + bytes > shaper->limit_bytes)
		return WIRE_NEVER;
	leaves_ns = max(wire_grant_ready(&shaper->grant, now_ns), shaper->last_ns);
	leaves_ns = wire_bucket_ready(&shaper->sustained, leaves_ns, bytes);
	if (shaper->peak.rate_bps && leaves_ns != WIRE_NEVER)
		leaves_ns = wire_bucket_ready(&shaper->peak, leaves_ns, bytes);
	if (leaves_ns == WIRE_NEVER ||
	    (shaper->latency_ns && leaves_ns - now_ns > shaper->latency_ns) ||
	    !wire_shaper_wait(shaper, leaves_ns, bytes))
		return WIRE_NEVER;
	wire_bucket_take(&shaper->sustained, leaves_ns, bytes, leaves_ns > now_ns);
	if (shaper->peak.rate_bps)
		wire_bucket_take(&shaper->peak, leaves_ns, bytes, leaves_ns > now_ns);
	shaper->last_ns = leaves_ns;
	return leaves_ns;
}

void wire_shaper_free(struct wire_shaper *shaper)
{
	wire_shaper_leave(shaper, WIRE_NEVER);
}
