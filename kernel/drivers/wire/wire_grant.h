/* SPDX-License-Identifier: GPL-2.0-only */
/* An uplink with requests and grants; see wire_grant.c. */
#ifndef _WIRE_GRANT_H
#define _WIRE_GRANT_H

#include <linux/types.h>

struct wire_grant {
	u64 cycle_ns;	/* between request opportunities; 0: no requests */
	u64 delay_ns;	/* from a request to its grant */
	u64 epoch_ns;	/* a request opportunity */
};

/* Returns the earliest departure of a frame that arrived at @now_ns. */
u64 wire_grant_ready(const struct wire_grant *grant, u64 now_ns);

#endif
