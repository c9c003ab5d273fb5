/* SPDX-License-Identifier: GPL-2.0-only */
/* The gates of queues; see wire_schedule.c. */
#ifndef _WIRE_SCHEDULE_H
#define _WIRE_SCHEDULE_H

#include <linux/types.h>

struct wire_gates {
	u64 end_ns;	/* after the beginning of the cycle */
	u64 mask;	/* bit N: the gate of queue N is open */
};

/* A list of gates that repeats. Times are of the NIC's clock. */
struct wire_schedule {
	struct wire_schedule *before;	/* in force until @base_ns; NULL: all gates are open */
	u64 base_ns;
	u64 cycle_ns;
	u32 count;
	struct wire_gates entries[];	/* the last one ends with the cycle */
};

/* Makes the schedule start at the first cycle after @now_ns if its base is in the past. */
void wire_schedule_begin(struct wire_schedule *schedule, u64 now_ns);

/*
 * Returns the open gates at @now_ns, and in *@until_ns a time up to which they do not change. All
 * are open before the base.
 */
u64 wire_schedule_gates(const struct wire_schedule *schedule, u64 now_ns, u64 *until_ns);

/*
 * Returns the first time, from @now_ns on, at which a frame of @queue can start that needs
 * @duration_ns; U64_MAX if the gate is never open for so long.
 */
u64 wire_schedule_start(const struct wire_schedule *schedule, u32 queue, u64 now_ns,
			u64 duration_ns);

#endif
