/* SPDX-License-Identifier: GPL-2.0-only */
/* A page in each process, below the vDSO, with the time for it (program_clock.c). */
#ifndef HOURGLASS_PROGRAM_CLOCK_H
#define HOURGLASS_PROGRAM_CLOCK_H

#include <linux/mm_types.h>
#include <linux/time.h>
#include <linux/types.h>

#define PROGRAM_CLOCK_PAGE	4096UL	/* also the vDSO's size */

struct program_clock {
	u32 reads;		/* remaining reads; then the kernel is called */
	u32 step_ns;		/* a read's time: for each clock, the next read gives this more */
	s64 s;			/* for time(), which has the resolution of a tick */
	struct {
		s64 s;
		s64 ns;
	} clocks[2];		/* CLOCK_REALTIME and CLOCK_MONOTONIC */
};

int program_clock_map(struct mm_struct *mm, unsigned long vdso);

/* The following functions are for the vDSO. */

/* Returns NULL if the kernel has to be called. */
static __always_inline struct program_clock *program_clock_read(void)
{
	struct program_clock *clock;
	unsigned long ip;

	asm("lea (%%rip), %0" : "=r" (ip));
	clock = (struct program_clock *)((ip & ~(PROGRAM_CLOCK_PAGE - 1)) - PROGRAM_CLOCK_PAGE);
	if (!clock->reads)
		return NULL;
	clock->reads--;
	return clock;
}

static __always_inline bool program_clock_gettime(unsigned int which, s64 *s, s64 *ns)
{
	struct program_clock *clock;

	if (which > CLOCK_MONOTONIC)
		return false;
	clock = program_clock_read();
	if (!clock)
		return false;
	*s = clock->clocks[which].s;
	*ns = clock->clocks[which].ns;
	clock->clocks[which].ns += clock->step_ns;
	if (*ns >= NSEC_PER_SEC) {
		*ns -= NSEC_PER_SEC;
		++*s;
	}
	return true;
}

#endif
