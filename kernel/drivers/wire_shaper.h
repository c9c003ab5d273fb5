/* SPDX-License-Identifier: GPL-2.0-only */
/* A queue behind a token bucket; see wire_shaper.c. */
#ifndef _WIRE_SHAPER_H
#define _WIRE_SHAPER_H

#include "wire_bucket.h"
#include "wire_grant.h"

struct wire_waiting;

struct wire_shaper {
	/* parameters; a limit of 0 is none */
	struct wire_bucket sustained;	/* rate 0: there is no shaper */
	struct wire_bucket peak;	/* rate 0: what is saved leaves at once */
	struct wire_grant grant;	/* cycle 0: nobody has to be asked */
	u64 limit_bytes;	/* the queue holds no more */
	u64 latency_ns;		/* no frame waits longer */
	u64 ce_threshold_ns;	/* who waits longer is marked; 0: nobody */

	/* state: frames that have come and not left, by time of departure */
	struct wire_waiting *first, *last;
	u64 waiting_bytes;
	u64 last_ns;		/* the last of them leaves */
};

/*
 * A frame of @bytes comes at @now_ns, not before any other. Gives the ns at which it leaves;
 * WIRE_NEVER if it is dropped.
 */
u64 wire_shaper_send(struct wire_shaper *shaper, u64 now_ns, u32 bytes);

/* Forgets the frames that wait. */
void wire_shaper_free(struct wire_shaper *shaper);

#endif
