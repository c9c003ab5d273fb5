// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transmit memory of a NIC, in which frames wait between DMA and cable.
 *
 *	     ring in memory            the NIC's memory        cable
 *	[ chain ][ chain ][ chain ] -> [ frame | frame | fr ] ======>
 *	          ^ fetched: reported          ^ still to be sent
 *
 * DMA takes no time, so the memory is full whenever the ring is not empty. A frame is fetched at
 * the instant at which enough earlier frames have left. The driver gets its completion then: BQL
 * and TCP Small Queues count the ring, and not the NIC's memory. A frame frees its memory when
 * its last bit and the gap have left. The size of a frame here includes the header and padding,
 * without preamble and FCS.
 *
 * A frame larger than the memory is fetched while it leaves, and counts as fetched when it has
 * left. If @size is 0, this applies to every frame.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_fifo_test.c.
 */
#include <linux/if_ether.h>
#include <linux/kernel.h>
#include "wire_fifo.h"

u32 wire_fifo_room(u32 size)
{
	return size / ETH_ZLEN + 2;
}

/* Returns the position in the circular buffer; @index is below twice its size. */
static u32 wire_fifo_index(const struct wire_fifo *fifo, u32 index)
{
	return index < fifo->room ? index : index - fifo->room;
}

static u64 wire_fifo_release(struct wire_fifo *fifo)
{
	const struct wire_fifo_entry *entry = &fifo->entries[fifo->first];

	fifo->used -= entry->bytes;
	fifo->first = wire_fifo_index(fifo, fifo->first + 1);
	fifo->count--;
	return entry->until_ns;
}

u64 wire_fifo_fetch(struct wire_fifo *fifo, u64 now_ns, u64 end_ns, u32 bytes)
{
	if (!fifo->size)
		return end_ns;
	while (fifo->count && fifo->entries[fifo->first].until_ns <= now_ns)
		wire_fifo_release(fifo);
	fifo->entries[wire_fifo_index(fifo, fifo->first + fifo->count)] =
		(struct wire_fifo_entry){ .until_ns = end_ns, .bytes = bytes };
	fifo->count++;
	fifo->used += bytes;
	fifo->fetched_ns = max(fifo->fetched_ns, now_ns);
	while (fifo->used > fifo->size)
		fifo->fetched_ns = wire_fifo_release(fifo);
	return fifo->fetched_ns;
}

u64 wire_fifo_room_ns(const struct wire_fifo *fifo, u64 now_ns, u32 bytes)
{
	u64 room_ns = max(now_ns, fifo->fetched_ns);
	u32 index = fifo->first, left = fifo->count, used = fifo->used;

	for (; left && used + bytes > fifo->size; left--) {
		room_ns = max(room_ns, fifo->entries[index].until_ns);
		used -= fifo->entries[index].bytes;
		index = wire_fifo_index(fifo, index + 1);
	}
	return room_ns;
}

void wire_fifo_reset(struct wire_fifo *fifo)
{
	fifo->first = 0;
	fifo->count = 0;
	fifo->used = 0;
	fifo->fetched_ns = 0;
}
