/* SPDX-License-Identifier: GPL-2.0-only */
/* The time of a NIC's clock; see wire_clock.c. */
#ifndef _WIRE_CLOCK_H
#define _WIRE_CLOCK_H

#include <linux/types.h>

/* A clock that reads @ns at @mono_ns of CLOCK_MONOTONIC. All 0: CLOCK_MONOTONIC itself. */
struct wire_clock {
	u64 mono_ns;
	u64 ns;
	s64 scaled_ppm;		/* runs faster by this number of 2^-16 ppm */
};

/*
 * Returns what the clock reads at @mono_ns. Before the last change it is taken to run like
 * CLOCK_MONOTONIC.
 */
u64 wire_clock_read(const struct wire_clock *clock, u64 mono_ns);

/* Returns the first ns of CLOCK_MONOTONIC at which the clock reads @ns or more. */
u64 wire_clock_when(const struct wire_clock *clock, u64 ns);

/* Sets the clock to @ns at @mono_ns. */
void wire_clock_set(struct wire_clock *clock, u64 mono_ns, u64 ns);

/* Gives the clock another rate from @mono_ns on. */
void wire_clock_tune(struct wire_clock *clock, u64 mono_ns, s64 scaled_ppm);

#endif
