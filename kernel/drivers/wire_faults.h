/* SPDX-License-Identifier: GPL-2.0-only */
/* Seeded faults of one direction of a cable; see wire_faults.c. */
#ifndef _WIRE_FAULTS_H
#define _WIRE_FAULTS_H

#include <linux/types.h>

#define WIRE_PPB	1000000000U	/* certainty, in parts per billion */
#define WIRE_MILLI	1000U		/* one frame, in thousandths */

struct wire_faults {
	u64 seed;
	u64 loss_ppb;		/* the frame vanishes */
	u64 loss_burst_milli;	/* frames lost in a row; 0: losses are independent */
	u64 corrupt_ppb;	/* it arrives with a wrong FCS: the NIC drops it */
	u64 duplicate_ppb;	/* it arrives twice */
	u64 reorder_ppb;	/* it arrives reorder_ns late, others pass it */
	u64 reorder_ns;
	u64 jitter_ns;		/* each frame is up to this late, in order */
};

/* What happens to one frame. */
struct wire_fate {
	bool lost;
	bool corrupted;
	bool duplicated;
	bool reordered;
	u64 jitter_ns;
};

/*
 * The fate of the @n-th frame: a function of parameters, seed and n alone; where
 * losses come in bursts, also of whether the frame before it was lost.
 */
struct wire_fate wire_fate(const struct wire_faults *faults, bool last_lost,
			   u64 n);

#endif
