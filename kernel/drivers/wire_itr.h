/* SPDX-License-Identifier: GPL-2.0-only */
/* How often a vector may interrupt; see wire_itr.c. */
#ifndef _WIRE_ITR_H
#define _WIRE_ITR_H

#include <linux/types.h>

enum wire_law {
	WIRE_DELAY,	/* after the first event, or with the n-th: no interval */
	WIRE_INTERVAL,	/* at once, but so long after the last interrupt */
	WIRE_IGB,	/* an interval that the driver adapts */
	WIRE_IXGBE,
	WIRE_LAWS
};

enum wire_side { WIRE_TX, WIRE_RX, WIRE_SIDES };

/* What a vector's interrupts found since the interval was last adapted. */
struct wire_work {
	u32 packets;
	u32 bytes;
};

struct wire_itr {
	/* parameters */
	enum wire_law law;
	bool serves[WIRE_SIDES];

	/* state */
	u64 next_ns;		/* no interrupt before */
	u32 gap_ns;		/* the register: from the next interrupt to the one after it */
	u32 word;		/* the driver's own, in quarters of a us */
	u32 side_word[WIRE_SIDES];	/* ixgbe: of each side, in us */
	u64 side_jiffy[WIRE_SIDES];	/* ... its next update */
	struct wire_work work[WIRE_SIDES];
};

void wire_itr_start(struct wire_itr *itr, enum wire_law law, u32 usecs);
void wire_itr_fired(struct wire_itr *itr, u64 now_ns);
void wire_itr_served(struct wire_itr *itr, u32 mbps, u64 now_jiffy);

#endif
