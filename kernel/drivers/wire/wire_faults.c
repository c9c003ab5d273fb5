// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded faults of one direction of a cable.
 *
 * The fate of a frame is a pure function of (seed, kind of fault, frame number). So enabling one
 * fault changes no other fault, and a run can be repeated. The function is the output step of
 * SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) over a counter. Faults are independent
 * of each other and of the frame's length. Losses are independent of one another, or they come
 * in bursts. In a burst the fate of a frame also depends on the previous frame.
 *
 * Bursts follow the simple Gilbert model: a Markov chain of two states, with one step per frame.
 * In the good state no frame is lost, in the bad state every frame. So the last frame's fate is
 * the state:
 *
 *	         p = rate / (burst (1 - rate))
 *	        ------------------------------>
 *	arrives                                lost
 *	        <------------------------------
 *	         r = 1 / burst
 *
 *	share of frames lost	p / (p + r) = rate
 *	frames lost in a row	geometric with mean 1 / r = burst
 *
 * A burst is followed by a frame that arrives. So p <= 1 limits the rate to burst / (burst + 1);
 * for higher rates p is 1. Frame 0 is lost with probability `rate`: the chain is stationary from
 * the start. Both transition probabilities are fractions of integers, drawn from 64 bits. They
 * differ from the fractions by less than 2^-64.
 *
 * E. N. Gilbert, "Capacity of a burst-noise channel", Bell Syst. Tech. J. 39, 1960. E. O.
 * Elliott, same journal 42, 1963, adds losses in both states, which are left out. netem's "loss
 * gemodel p r" is the same model. RFC 6534 measures such bursts.
 */
#include <linux/math64.h>
#include "wire_faults.h"

enum wire_fault_kind {
	WIRE_LOSS = 1,
	WIRE_CORRUPT,
	WIRE_DUPLICATE,
	WIRE_REORDER,
	WIRE_JITTER,
	WIRE_RSS_KEY,
};

static u64 wire_mix(u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Returns 64 uniform bits for fault @kind of frame @n. */
static u64 wire_bits(const struct wire_faults *faults,
		     enum wire_fault_kind kind, u64 n)
{
	return wire_mix(wire_mix(faults->seed + kind) + n);
}

/* Returns the upper 32 bits. */
static u32 wire_draw(const struct wire_faults *faults,
		     enum wire_fault_kind kind, u64 n)
{
	return wire_bits(faults, kind, n) >> 32;
}

static bool wire_chance(const struct wire_faults *faults,
			enum wire_fault_kind kind, u64 n, u64 ppb)
{
	return ppb && ((u64)wire_draw(faults, kind, n) * WIRE_PPB >> 32) < ppb;
}

/* Returns true with probability @chances / @of. */
static bool wire_odds(u64 bits, u64 chances, u64 of)
{
	return mul_u64_u64_shr(bits, of, 64) < chances;
}

static bool wire_lost(const struct wire_faults *faults, bool last_lost, u64 n)
{
	u64 burst = faults->loss_burst_milli, rate = faults->loss_ppb;
	u64 bits;

	if (!burst || !rate || !n)
		return wire_chance(faults, WIRE_LOSS, n, rate);
	bits = wire_bits(faults, WIRE_LOSS, n);
	if (last_lost)
		return !wire_odds(bits, WIRE_MILLI, burst);
	return wire_odds(bits, rate * WIRE_MILLI, burst * (WIRE_PPB - rate));
}

struct wire_fate wire_fate(const struct wire_faults *faults, bool last_lost,
			   u64 n)
{
	struct wire_fate fate = {
		.lost = wire_lost(faults, last_lost, n),
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

u64 wire_rss_key(const struct wire_faults *faults, u64 n)
{
	return wire_bits(faults, WIRE_RSS_KEY, n);
}
