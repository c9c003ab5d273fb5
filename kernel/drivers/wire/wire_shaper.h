/* SPDX-License-Identifier: GPL-2.0-only */
/* A queue with a token bucket; see wire_shaper.c. */
#ifndef _WIRE_SHAPER_H
#define _WIRE_SHAPER_H

#include "wire_bucket.h"
#include "wire_grant.h"

struct wire_waiting;

struct wire_shaper {
	/* parameters; a limit of 0 is no limit */
	struct wire_bucket sustained;	/* rate 0: no shaper */
	struct wire_bucket peak;	/* rate 0: no limit to the burst's rate */
	struct wire_grant grant;	/* cycle 0: no grant needed */
	u64 limit_bytes;	/* maximum length of the queue */
	u64 latency_ns;		/* maximum wait of a frame */
	u64 ce_threshold_ns;	/* frames that wait longer are marked; 0: none */

	/* state: frames that have not left, by time of departure */
	struct wire_waiting *first, *last;
	u64 waiting_bytes;
	u64 last_ns;		/* departure of the last frame */
};

/*
 * Queues a frame of @bytes that arrives at @now_ns; arrivals are in order. Returns the ns at
 * which it leaves, or WIRE_NEVER if it is dropped.
 */
u64 wire_shaper_send(struct wire_shaper *shaper, u64 now_ns, u32 bytes);

/* Removes all frames. */
void wire_shaper_free(struct wire_shaper *shaper);

#endif
