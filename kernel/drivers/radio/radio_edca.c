// SPDX-License-Identifier: GPL-2.0-only
/*
 * EDCA channel access of one queue: IEEE 802.11-2020, 10.23.2.
 *
 *	idle since          AIFS                     start
 *	|--- SIFS ---|--- aifsn slots ---|--- backoff slots ---|===== PPDU
 *	                                 ^    ^    ^    ^  boundaries
 *
 * At each slot boundary after AIFS, a queue starts a transmission if its backoff counter is 0.
 * Otherwise it decrements the counter. It also decrements the counter at the boundary at which
 * another station starts, since it cannot detect that start yet. G. Bianchi's model (IEEE JSAC
 * 18(3), 2000) counts a busy slot in the same way.
 *
 * A queue draws a backoff after each exchange, and when a frame arrives while the medium is
 * busy. A frame that arrives at an idle queue, with the backoff over, is sent at the next slot
 * boundary. All stations count slot boundaries from the end of the last exchange, and detect a
 * start one slot later. So two frames that arrive within the same slot collide.
 *
 * Slots are not simulated one by one: elapsed slots are counted at the next start.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/radio_edca_test.c.
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
