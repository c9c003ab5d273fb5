/* SPDX-License-Identifier: GPL-2.0-only */
/* Channel access of one queue; see radio_edca.c. */
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
	u32 backoff;	/* slots still to pass */
};

/* When this queue may start, if the medium is idle since @idle_ns and stays so. */
u64 radio_edca_start(const struct radio_edca *edca, u64 idle_ns, u64 now_ns);

/* The medium, idle since @idle_ns, is taken by another at @busy_ns. */
void radio_edca_freeze(struct radio_edca *edca, u64 idle_ns, u64 busy_ns);

/* Draws a backoff with 32 uniform bits. */
void radio_edca_draw(struct radio_edca *edca, u32 random);

/* After an exchange that went well, or a frame given up; and after one that did not. */
void radio_edca_reset(struct radio_edca *edca, u32 random);
void radio_edca_failed(struct radio_edca *edca, u32 random);

#endif
