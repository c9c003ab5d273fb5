// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded faults of one direction of a cable.
 *
 * Every frame's fate is a pure function of (seed, kind of fault, frame number),
 * so that switching one fault on moves no other, and a run can be repeated.
 * The function is the output step of SplitMix64 (G. Steele, D. Lea,
 * C. Flood, OOPSLA 2014) over a counter. Faults are independent of each other
 * and of the frame's length; bursts of losses are left out.
 */
#include <linux/math64.h>
#include "wire_faults.h"

enum wire_fault_kind {
	WIRE_LOSS = 1,
	WIRE_CORRUPT,
	WIRE_DUPLICATE,
	WIRE_REORDER,
	WIRE_JITTER,
};

static u64 wire_mix(u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 32 uniform bits for fault @kind of frame @n. */
static u32 wire_draw(const struct wire_faults *faults,
		     enum wire_fault_kind kind, u64 n)
{
	return wire_mix(wire_mix(faults->seed + kind) + n) >> 32;
}

static bool wire_chance(const struct wire_faults *faults,
			enum wire_fault_kind kind, u64 n, u64 ppb)
{
	return ppb && ((u64)wire_draw(faults, kind, n) * WIRE_PPB >> 32) < ppb;
}

struct wire_fate wire_fate(const struct wire_faults *faults, u64 n)
{
	struct wire_fate fate = {
		.lost = wire_chance(faults, WIRE_LOSS, n, faults->loss_ppb),
		.corrupted = wire_chance(faults, WIRE_CORRUPT, n,
					 faults->corrupt_ppb),
		.duplicated = wire_chance(faults, WIRE_DUPLICATE, n,
					  faults->duplicate_ppb),
		.reordered = wire_chance(faults, WIRE_REORDER, n,
					 faults->reorder_ppb),
	};

	if (faults->jitter_ns)
		fate.jitter_ns = mul_u64_u32_shr(faults->jitter_ns,
						 wire_draw(faults, WIRE_JITTER, n),
						 32);
	return fate;
}
