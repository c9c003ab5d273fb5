/* SPDX-License-Identifier: GPL-2.0-only */
/* A page in each process, below the vDSO, from which that tells the time (program_clock.c). */
#ifndef HOURGLASS_PROGRAM_CLOCK_H
#define HOURGLASS_PROGRAM_CLOCK_H

#include <linux/mm_types.h>
#include <linux/time.h>
#include <linux/types.h>

#define PROGRAM_CLOCK_PAGE	4096UL	/* also the vDSO's size */

struct program_clock {
	u32 reads;		/* as many, and then the kernel is to be asked */
	s64 s;			/* of time(), which goes by ticks */
	struct {
		s64 s;
		s64 ns;
	} clocks[2];		/* CLOCK_REALTIME and CLOCK_MONOTONIC */
};

int program_clock_map(struct mm_struct *mm, unsigned long vdso);

/* The following are for the vDSO alone. */

/* NULL: ask the kernel. */
static __always_inline const struct program_clock *program_clock_read(void)
{
	struct program_clock *clock;
	unsigned long here;

	asm("lea (%%rip), %0" : "=r" (here));
	clock = (struct program_clock *)((here & ~(PROGRAM_CLOCK_PAGE - 1)) - PROGRAM_CLOCK_PAGE);
	if (!clock->reads)
		return NULL;
	clock->reads--;
	return clock;
}

static __always_inline bool program_clock_gettime(unsigned int which, s64 *s, s64 *ns)
{
	const struct program_clock *clock;

	if (which > CLOCK_MONOTONIC)
		return false;
	clock = program_clock_read();
	if (!clock)
		return false;
	*s = clock->clocks[which].s;
	*ns = clock->clocks[which].ns;
	return true;
}

#endif
