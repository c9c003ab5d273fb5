/* SPDX-License-Identifier: GPL-2.0-only */
/* The transmit memory of a NIC; see wire_fifo.c. */
#ifndef _WIRE_FIFO_H
#define _WIRE_FIFO_H

#include <linux/types.h>

/* A frame that occupies memory. */
struct wire_fifo_entry {
	u64 until_ns;
	u32 bytes;
};

struct wire_fifo {
	/* parameters */
	u32 size;		/* bytes; 0: the NIC reports frames that have left */
	u32 room;		/* number of @entries */

	/* state */
	struct wire_fifo_entry *entries;
	u32 first, count;
	u32 used;		/* bytes in use at @fetched_ns */
	u64 fetched_ns;		/* when the last frame was completely in the memory */
};

/* Returns the maximum number of frames in the memory. */
u32 wire_fifo_room(u32 size);

/* Fetches a frame that was queued at @now_ns and leaves at @end_ns. Returns when the NIC has it. */
u64 wire_fifo_fetch(struct wire_fifo *fifo, u64 now_ns, u64 end_ns, u32 bytes);

/* Returns when @bytes more have room, or the memory is empty. Not for a memory of size 0. */
u64 wire_fifo_room_ns(const struct wire_fifo *fifo, u64 now_ns, u32 bytes);

/* Removes all frames. */
void wire_fifo_reset(struct wire_fifo *fifo);

#endif
