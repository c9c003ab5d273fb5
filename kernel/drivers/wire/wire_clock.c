// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of a NIC's clock: a straight line over CLOCK_MONOTONIC, which can be set and tuned.
 *
 *	clock ^                . '  faster
 *	      |            . '
 *	      |     ......'  tuned
 *	      |   .'
 *	      +---------------------> CLOCK_MONOTONIC
 *
 * The oscillator is exact: until somebody tunes the clock, it runs like CLOCK_MONOTONIC. A clock
 * that was tuned reads whole ns, rounded down. So each change of its rate loses less than 1 ns.
 *
 * Pure functions: no lock or device. Tests: kernel/tests/wire_clock_test.c.
 */
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include "wire_clock.h"

#define WIRE_CLOCK_UNIT	(1000000ULL << 16)	/* scaled ppm of the oscillator's rate */

u64 wire_clock_read(const struct wire_clock *clock, u64 mono_ns)
{
	u64 elapsed_ns = mono_ns - clock->mono_ns;

	if (clock->scaled_ppm && mono_ns > clock->mono_ns)
		elapsed_ns = mul_u64_u64_div_u64(elapsed_ns, WIRE_CLOCK_UNIT + clock->scaled_ppm,
						 WIRE_CLOCK_UNIT);
	return clock->ns + elapsed_ns;
}

u64 wire_clock_when(const struct wire_clock *clock, u64 ns)
{
	u64 rate = WIRE_CLOCK_UNIT + clock->scaled_ppm, elapsed_ns;

	if (ns <= clock->ns)
		return clock->mono_ns;
	elapsed_ns = ns - clock->ns;
	if (clock->scaled_ppm) {
		elapsed_ns = mul_u64_u64_div_u64(elapsed_ns, WIRE_CLOCK_UNIT, rate);
		while (wire_clock_read(clock, clock->mono_ns + elapsed_ns) < ns)
			elapsed_ns++;
	}
	return clock->mono_ns + elapsed_ns;
}

void wire_clock_set(struct wire_clock *clock, u64 mono_ns, u64 ns)
{
	clock->ns = ns;
	clock->mono_ns = mono_ns;
}

void wire_clock_tune(struct wire_clock *clock, u64 mono_ns, s64 scaled_ppm)
{
	wire_clock_set(clock, mono_ns, wire_clock_read(clock, mono_ns));
	clock->scaled_ppm = scaled_ppm;
}
