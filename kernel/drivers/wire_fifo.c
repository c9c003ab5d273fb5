// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transmit memory of a NIC: frames wait in it between DMA and cable.
 *
 *	     ring in memory            the NIC's memory        cable
 *	[ chain ][ chain ][ chain ] -> [ frame | frame | fr ] ======>
 *	          ^ fetched: reported          ^ still to be sent
 *
 * DMA takes no time, so the memory is full whenever the ring is not empty, and a
 * frame is fetched at the instant at which enough of those before it have left. The
 * driver hears of it then: BQL and TCP Small Queues count the ring, and what stands in
 * the NIC's memory is beyond them. A frame gives its memory back when its last bit,
 * and the gap behind it, have left. Frames are counted as they are in memory: with the
 * header, padded, without preamble and FCS.
 *
 * A frame larger than the memory is fetched while it leaves, and counts as fetched
 * when it has left; so does every frame when @size is 0.
 *
 * No locks, no clock, no device: proved in kernel/tests/wire_fifo_test.c.
 */
#include <linux/if_ether.h>
#include <linux/kernel.h>
#include "wire_fifo.h"

u32 wire_fifo_room(u32 size)
{
	return size / ETH_ZLEN + 2;
}

/* A place of the circle; @place is below twice as many. */
static u32 wire_fifo_place(const struct wire_fifo *fifo, u32 place)
{
	return place < fifo->room ? place : place - fifo->room;
}

static u64 wire_fifo_release(struct wire_fifo *fifo)
{
	const struct wire_held *held = &fifo->held[fifo->first];

	fifo->used -= held->bytes;
	fifo->first = wire_fifo_place(fifo, fifo->first + 1);
	fifo->count--;
	return held->until_ns;
}

u64 wire_fifo_fetch(struct wire_fifo *fifo, u64 now_ns, u64 end_ns, u32 bytes)
{
	if (!fifo->size)
		return end_ns;
	while (fifo->count && fifo->held[fifo->first].until_ns <= now_ns)
		wire_fifo_release(fifo);
	fifo->held[wire_fifo_place(fifo, fifo->first + fifo->count)] =
		(struct wire_held){ .until_ns = end_ns, .bytes = bytes };
	fifo->count++;
	fifo->used += bytes;
	fifo->fetched_ns = max(fifo->fetched_ns, now_ns);
	while (fifo->used > fifo->size)
		fifo->fetched_ns = wire_fifo_release(fifo);
	return fifo->fetched_ns;
}

void wire_fifo_reset(struct wire_fifo *fifo)
{
	fifo->first = 0;
	fifo->count = 0;
	fifo->used = 0;
	fifo->fetched_ns = 0;
}
