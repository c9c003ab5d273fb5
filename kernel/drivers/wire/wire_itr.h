/* SPDX-License-Identifier: GPL-2.0-only */
/* The interrupt rate of a vector; see wire_itr.c. */
#ifndef _WIRE_ITR_H
#define _WIRE_ITR_H

#include <linux/types.h>

enum wire_law {
	WIRE_DELAY,	/* after the first event, or with the n-th; no interval */
	WIRE_INTERVAL,	/* at once, but at least an interval after the last interrupt */
	WIRE_IGB,	/* an interval that the driver adapts */
	WIRE_IXGBE,
	WIRE_LAWS
};

enum wire_side { WIRE_TX, WIRE_RX, WIRE_SIDES };

/* The packets of a vector since the interval was last adapted. */
struct wire_work {
	u32 packets;
	u32 bytes;
};

struct wire_itr {
	/* parameters */
	enum wire_law law;
	bool serves[WIRE_SIDES];

	/* state */
	u64 next_ns;		/* the earliest next interrupt */
	u32 gap_ns;		/* the register: the interval that the next interrupt starts */
	u32 word;		/* the driver's variable, in quarters of a us */
	u32 side_word[WIRE_SIDES];	/* ixgbe: the interval of each direction, in us */
	u64 side_jiffy[WIRE_SIDES];	/* ... and its next update */
	struct wire_work work[WIRE_SIDES];
};

void wire_itr_start(struct wire_itr *itr, enum wire_law law, u32 usecs);
void wire_itr_fired(struct wire_itr *itr, u64 now_ns);
void wire_itr_served(struct wire_itr *itr, u32 mbps, u64 now_jiffy);

#endif
