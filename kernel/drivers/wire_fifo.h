/* SPDX-License-Identifier: GPL-2.0-only */
/* The transmit memory of a NIC; see wire_fifo.c. */
#ifndef _WIRE_FIFO_H
#define _WIRE_FIFO_H

#include <linux/types.h>

/* A frame that holds a part of the memory. */
struct wire_held {
	u64 until_ns;
	u32 bytes;
};

struct wire_fifo {
	/* parameters */
	u32 size;		/* bytes; 0: the NIC reports what has left it */
	u32 room;		/* of the circle @held */

	/* state */
	struct wire_held *held;
	u32 first, count;
	u32 used;		/* bytes at @fetched_ns */
	u64 fetched_ns;		/* when the last frame was in the memory as a whole */
};

/* How many frames the memory may hold at once. */
u32 wire_fifo_room(u32 size);

/* Fetches a frame that was handed over at @now_ns and leaves at @end_ns: when is it in the NIC? */
u64 wire_fifo_fetch(struct wire_fifo *fifo, u64 now_ns, u64 end_ns, u32 bytes);

/* Forgets all frames. */
void wire_fifo_reset(struct wire_fifo *fifo);

#endif
