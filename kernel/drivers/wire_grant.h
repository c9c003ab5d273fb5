/* SPDX-License-Identifier: GPL-2.0-only */
/* An uplink that has to be asked for; see wire_grant.c. */
#ifndef _WIRE_GRANT_H
#define _WIRE_GRANT_H

#include <linux/types.h>

struct wire_grant {
	u64 cycle_ns;	/* from one instant for requests to the next; 0: nothing is asked for */
	u64 delay_ns;	/* from a request to what it grants */
	u64 epoch_ns;	/* an instant for requests */
};

/* When a frame that has come at @now_ns may leave at the earliest. */
u64 wire_grant_ready(const struct wire_grant *grant, u64 now_ns);

#endif
