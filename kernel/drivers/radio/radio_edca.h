/* SPDX-License-Identifier: GPL-2.0-only */
/* EDCA channel access of one queue; see radio_edca.c. */
#ifndef _RADIO_EDCA_H
#define _RADIO_EDCA_H

#include <linux/types.h>

struct radio_edca {
	/* parameters */
	u32 aifsn;	/* slots after SIFS */
	u32 cw_min, cw_max;
	u64 txop_ns;	/* 0: one exchange */
	/* state */
	u32 cw;
	u32 backoff;	/* slots that remain */
};

/* Returns the start of this queue's transmission if the medium, idle since @idle_ns, stays idle. */
u64 radio_edca_start(const struct radio_edca *edca, u64 idle_ns, u64 now_ns);

/* Counts the elapsed slots: the medium, idle since @idle_ns, becomes busy at @busy_ns. */
void radio_edca_freeze(struct radio_edca *edca, u64 idle_ns, u64 busy_ns);

/* Draws a backoff from 32 uniform bits. */
void radio_edca_draw(struct radio_edca *edca, u32 random);

/* Reset: after a successful exchange, or when a frame is given up. Failed: after any other
 * exchange.
 */
void radio_edca_reset(struct radio_edca *edca, u32 random);
void radio_edca_failed(struct radio_edca *edca, u32 random);

#endif
