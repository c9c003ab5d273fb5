// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel access of one queue: IEEE 802.11-2020, 10.23.2 (EDCA).
 *
 *	idle since          AIFS                     start
 *	|--- SIFS ---|--- aifsn slots ---|--- backoff slots ---|===== PPDU
 *	                                 ^    ^    ^    ^  boundaries
 *
 * At each slot boundary from the end of AIFS on, a queue does one thing: it starts
 * if its counter is 0, else it takes 1 from it. It does so too at the boundary
 * at which somebody else starts, which it cannot know yet. (That is also
 * G. Bianchi's model, IEEE JSAC 18(3), 2000, where a busy slot counts.)
 * A queue draws after each exchange, and when a frame finds the medium busy. One whose
 * frame comes later than that starts at the next boundary: all count them from the same end
 * of the last exchange, and a start is heard by the others one slot later. So two whose frames
 * come within the same slot collide.
 * Between starts nothing is done: slots that passed are counted at the next start.
 *
 * No locks, no clock, no device: proved in kernel/tests/radio_edca_test.c.
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include "radio_duration.h"
#include "radio_edca.h"

static u64 radio_edca_aifs(const struct radio_edca *edca, u64 idle_ns)
{
	return idle_ns + RADIO_SIFS_NS + (u64)edca->aifsn * RADIO_SLOT_NS;
}

u64 radio_edca_start(const struct radio_edca *edca, u64 idle_ns, u64 now_ns)
{
	u64 start = radio_edca_aifs(edca, idle_ns) +
		    (u64)edca->backoff * RADIO_SLOT_NS;

	if (start >= now_ns)
		return start;
	return start + DIV_ROUND_UP_ULL(now_ns - start, RADIO_SLOT_NS) * RADIO_SLOT_NS;
}

void radio_edca_freeze(struct radio_edca *edca, u64 idle_ns, u64 busy_ns)
{
	u64 aifs = radio_edca_aifs(edca, idle_ns), boundaries;

	if (busy_ns < aifs)
		return;
	boundaries = div_u64(busy_ns - aifs, RADIO_SLOT_NS) + 1;
	edca->backoff -= min_t(u64, edca->backoff, boundaries);
}

void radio_edca_draw(struct radio_edca *edca, u32 random)
{
	edca->backoff = (u64)random * (edca->cw + 1) >> 32;
}

void radio_edca_reset(struct radio_edca *edca, u32 random)
{
	edca->cw = edca->cw_min;
	radio_edca_draw(edca, random);
}

void radio_edca_failed(struct radio_edca *edca, u32 random)
{
	edca->cw = min(2 * edca->cw + 1, edca->cw_max);
	radio_edca_draw(edca, random);
}
