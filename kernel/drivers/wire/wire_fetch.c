// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the turns of several transmit queues.
 *
 *	ring 0  [ chain ][ chain ]  \
 *	ring 1  [ chain ]            +-- one frame of each in turn --> the NIC's memory ====> cable
 *	ring 2                       |
 *	ring 3  [ chain ][ chain ]  /
 *
 * The chip fetches a frame as soon as its memory has room; a chip without memory, when the line is
 * free. Then it is the next queue's turn (82575EB manual 324632-003, 5.11: round robin). So each
 * busy queue sends as many frames as the others, whatever their lengths and flows. The frames of a
 * TSO skb alternate with those of other queues: no manual says whether the chip does so.
 *
 * What is fetched later depends on what arrives until then. So there is an event per fetch, unlike
 * with one queue.
 */
#include <linux/etherdevice.h>
#include "wire.h"

/* Returns the next queue with a frame to fetch, or NULL. */
static struct wire_queue *wire_fetch_turn(const struct wire_nic *nic)
{
	u32 i;

	for (i = 0; i < nic->queue_count; i++) {
		struct wire_queue *queue = &nic->queues[(nic->turn + i) % nic->queue_count];

		if (queue->slots_fetched < queue->slot_count)
			return queue;
	}
	return NULL;
}

/* Returns when the chip can fetch @frame. */
static u64 wire_fetch_due(const struct wire_nic *nic, const struct sk_buff *frame, u64 now_ns)
{
	if (!nic->peer)
		return now_ns;
	if (!nic->fifo.size)
		return max(now_ns, nic->line.free_ns);
	return wire_fifo_room_ns(&nic->fifo, now_ns, max_t(u32, frame->len, ETH_ZLEN));
}

/* Fetches frames in turn, as long as there is room for them. */
void wire_fetch(struct wire_nic *nic, u64 now_ns)
{
	struct wire_queue *queue;

	while ((queue = wire_fetch_turn(nic))) {
		struct wire_slot *slot = wire_slot(queue, queue->slots_fetched);
		u64 due_ns = wire_fetch_due(nic, slot->waiting, now_ns), done_ns;

		if (due_ns > now_ns) {
			if (due_ns != WIRE_NEVER)
				hrtimer_start(&nic->fetching, ns_to_ktime(due_ns),
					      HRTIMER_MODE_ABS_SOFT);
			return;
		}
		nic->turn = (queue->index + 1) % nic->queue_count;
		queue->tx_frames += !!nic->peer;
		done_ns = wire_send_frame(nic, wire_take_frame(slot), slot->queued_ns, now_ns);
		if (slot->waiting)
			continue;
		slot->done_ns = done_ns;
		queue->slots_fetched++;
		wire_tx_arm(queue);
	}
}

static enum hrtimer_restart wire_fetch_again(struct hrtimer *timer)
{
	wire_fetch(container_of(timer, struct wire_nic, fetching), ktime_get_ns());
	return HRTIMER_NORESTART;
}

void wire_fetch_setup(struct wire_nic *nic)
{
	hrtimer_setup(&nic->fetching, wire_fetch_again, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}
