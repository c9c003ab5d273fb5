// SPDX-License-Identifier: GPL-2.0-only
/*
 * A shaper: a FIFO whose head leaves when one or two token buckets hold its length.
 *
 *	      queue, limited in bytes or ms
 *	 ---> [ | | | | | ] ---> grant ---> sustained rate, burst ---> peak rate ---> out
 *	  full: tail drop   (wire_grant.c)     (wire_bucket.c)         one frame
 *
 * The departure of a frame is known when it arrives: it is the first ns at which each bucket
 * holds the frame's length. The frame also waits for the departure of the previous frame and,
 * with requests, for its grant. A frame that leaves in the ns of an arrival is no longer in the
 * queue.
 *
 * Example: frames of L bits arrive together at time 0, and the burst is B bits. Then frame k
 * leaves at exactly max(0, ceil((k L - B) / rate)).
 *
 * The arriving frame is dropped (tail drop) in two cases: the queue with its head would exceed
 * `limit_bytes`, or the frame would wait longer than `latency_ns`.
 * If an ECN-capable frame waits longer than `ce_threshold_ns`, it is marked when it leaves.
 * fq_codel's ce_threshold is the same step in time. Switches of data centres have such a step in
 * bytes (M. Alizadeh et al., "Data Center TCP", SIGCOMM 2010).
 *
 * Behaviour and names are those of tc-tbf(8), net/sched/sch_tbf.c. The bucket of the peak rate
 * holds one frame (tbf's mtu). Unlike tbf, the shaper never sends a GSO skb as a unit, since a
 * link transmits frames. Its rates are exact, whereas tbf multiplies and shifts.
 * Left out: active queue management, several queues, `overhead` and link layers of ATM.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_shaper_test.c.
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

/* Removes the frames that have left by @now_ns. */
static void wire_shaper_leave(struct wire_shaper *shaper, u64 now_ns)
{
	while (shaper->first && shaper->first->leaves_ns <= now_ns) {
		struct wire_waiting *head = shaper->first;

		shaper->waiting_bytes -= head->bytes;
		shaper->first = head->next;
		kfree(head);
	}
}

/* Adds a frame to the queue if that has a limit in bytes. Returns false if memory is short. */
static bool wire_shaper_wait(struct wire_shaper *shaper, u64 leaves_ns, u32 bytes)
{
	struct wire_waiting *waiting;

	if (!shaper->limit_bytes)
		return true;
	waiting = kmalloc(sizeof(*waiting), GFP_ATOMIC);
	if (!waiting)
		return false;
	*waiting = (struct wire_waiting){ .leaves_ns = leaves_ns, .bytes = bytes };
	if (shaper->first)
		shaper->last->next = waiting;
	else
		shaper->first = waiting;
	shaper->last = waiting;
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
