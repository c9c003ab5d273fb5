// SPDX-License-Identifier: GPL-2.0-only
/*
 * The gates of queues, by a list that repeats (IEEE 802.1Q, 8.6.8.4 and 8.6.9).
 *
 *	queue 0  |#######________|#######________|
 *	queue 1  |_______########|_______########|
 *	         base            base + cycle
 *
 * A frame starts only while its queue's gate is open, and only if it leaves before the gate
 * closes. Its time includes preamble, FCS and gap. So no frame delays the first one of the next
 * window. Before the base, the previous schedule is in force, and no frame crosses the base.
 * Without a previous schedule, all gates are open. The gates of the last entry stay until the end
 * of the cycle.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_schedule_test.c.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include "wire_schedule.h"

void wire_schedule_begin(struct wire_schedule *schedule, u64 now_ns)
{
	u64 cycles;

	if (schedule->base_ns > now_ns)
		return;
	cycles = div64_u64(now_ns - schedule->base_ns, schedule->cycle_ns) + 1;
	schedule->base_ns += cycles * schedule->cycle_ns;
}

u64 wire_schedule_gates(const struct wire_schedule *schedule, u64 now_ns, u64 *until_ns)
{
	u64 offset_ns, end_ns = schedule->cycle_ns;
	u32 i;

	*until_ns = schedule->base_ns;
	if (now_ns < schedule->base_ns)
		return U64_MAX;
	div64_u64_rem(now_ns - schedule->base_ns, schedule->cycle_ns, &offset_ns);
	for (i = 0; i + 1 < schedule->count && schedule->entries[i].end_ns <= offset_ns; i++)
		;
	if (i + 1 < schedule->count)
		end_ns = min(end_ns, schedule->entries[i].end_ns);
	*until_ns = now_ns - offset_ns + end_ns;
	return schedule->entries[i].mask;
}

u64 wire_schedule_start(const struct wire_schedule *schedule, u32 queue, u64 now_ns,
			u64 duration_ns)
{
	u64 base_ns = schedule->base_ns, start_ns, at_ns, until_ns, end_ns, always = BIT_ULL(queue);
	u32 i;

	if (schedule->before && now_ns < base_ns) {
		start_ns = wire_schedule_start(schedule->before, queue, now_ns, duration_ns);
		if (start_ns <= base_ns && base_ns - start_ns >= duration_ns)
			return start_ns;
		now_ns = base_ns;
	}
	for (i = 0; i < schedule->count; i++)
		always &= schedule->entries[i].mask;
	if (always)
		return now_ns;
	/* each window of the list has begun and ended until then */
	end_ns = max(now_ns, base_ns) + 2 * schedule->cycle_ns;
	start_ns = now_ns;
	for (at_ns = now_ns; at_ns < end_ns; at_ns = until_ns) {
		if (!(wire_schedule_gates(schedule, at_ns, &until_ns) & BIT_ULL(queue)))
			start_ns = until_ns;
		else if (until_ns - start_ns >= duration_ns)
			return start_ns;
	}
	return U64_MAX;
}
