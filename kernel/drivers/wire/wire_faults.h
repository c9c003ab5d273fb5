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
	u64 loss_burst_milli;	/* mean number of consecutive losses; 0: independent losses */
	u64 corrupt_ppb;	/* it arrives with a wrong FCS, and the NIC drops it */
	u64 duplicate_ppb;	/* it arrives twice */
	u64 reorder_ppb;	/* it arrives reorder_ns late, after later frames */
	u64 reorder_ns;
	u64 jitter_ns;		/* maximum delay of each frame, without reordering */
};

/* The fate of one frame. */
struct wire_fate {
	bool lost;
	bool corrupted;
	bool duplicated;
	bool reordered;
	u64 jitter_ns;
};

/*
 * Returns the fate of frame @n: a function of parameters, seed and @n. With bursts it also
 * depends on whether the previous frame was lost.
 */
struct wire_fate wire_fate(const struct wire_faults *faults, bool last_lost,
			   u64 n);

/* Returns word @n of the key of a NIC's hash (wire_rss.c). */
u64 wire_rss_key(const struct wire_faults *faults, u64 n);

#endif
