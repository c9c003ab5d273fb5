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
 * With gates, launch times or traffic classes in the chip (wire_offload.c), the first queue has
 * priority over the second, and so on; with classes, the highest class has it (igc_tsn.c of Linux
 * 6.15, igc_tsn_tx_arb(), igc_tsn_disable_offload()). The frames of a queue stay in order. The
 * chip then decides when the line is free, and a frame is complete when it starts. The chip's
 * small memory of each queue, 5 KB of igc, is left out.
 *
 * What is fetched later depends on what arrives until then. So there is an event per fetch, unlike
 * with one queue.
 */
#include <linux/etherdevice.h>
#include "wire.h"

/* Returns whether queues have priorities instead of turns. */
static bool wire_fetch_ranked(const struct wire_nic *nic)
{
	return nic->schedule || nic->timed || nic->classes;
}

/*
 * Returns since when the frame waits for the line, if it starts at @start_ns. A frame that waited
 * for its launch time or gate did not wait for the line.
 */
static u64 wire_fetch_since(const struct wire_nic *nic, const struct wire_slot *slot, u64 start_ns)
{
	return start_ns > nic->line.free_ns ? start_ns : slot->queued_ns;
}

/*
 * Returns the launch time of @frame in CLOCK_MONOTONIC; 0: it has none. Like the chips, it counts
 * within a second: a frame waits for at most one.
 */
static u64 wire_fetch_launch(const struct wire_queue *queue, const struct sk_buff *frame,
			     u64 now_ns)
{
	const struct wire_nic *nic = queue->nic;
	u64 launch_ns = ktime_to_ns(frame->tstamp), clock_ns;

	if (!queue->timed || !launch_ns)
		return 0;
	launch_ns -= launch_ns % nic->launch_time;
	clock_ns = wire_clock_read(&nic->clock, now_ns);
	if (launch_ns >= clock_ns + NSEC_PER_SEC)
		launch_ns = clock_ns + (launch_ns - clock_ns) % NSEC_PER_SEC;
	return wire_clock_when(&nic->clock, launch_ns);
}

/*
 * Returns when the gate of @queue lets a frame pass that can start at @start_ns. At that time, or
 * when the line's rate changes, its duration may be another one.
 */
static u64 wire_fetch_gate(const struct wire_queue *queue, const struct wire_slot *slot, u32 bytes,
			   u64 start_ns)
{
	const struct wire_nic *nic = queue->nic;
	struct wire_line line = nic->line;
	u64 end_ns = wire_line_send(&line, wire_fetch_since(nic, slot, start_ns), bytes);
	u64 clock_ns = wire_clock_read(&nic->clock, start_ns), duration_ns = 0, opens_ns;

	if (end_ns == WIRE_NEVER)
		return start_ns;
	/* at opportunities, frames leave in no time */
	if (line.trace.kind != WIRE_OPPORTUNITY)
		duration_ns = wire_clock_read(&nic->clock, end_ns) - clock_ns;
	opens_ns = wire_schedule_start(nic->schedule, queue->index, clock_ns, duration_ns);
	if (opens_ns == clock_ns)
		return start_ns;
	if (opens_ns != U64_MAX)
		opens_ns = wire_clock_when(&nic->clock, opens_ns);
	return min(opens_ns, wire_line_changes(&nic->line, start_ns));
}

/* Returns when the chip can fetch the queue's next frame: @now_ns, or a time to look again. */
static u64 wire_fetch_due(const struct wire_queue *queue, u64 now_ns)
{
	const struct wire_slot *slot = wire_slot(queue, queue->slots_fetched);
	const struct wire_nic *nic = queue->nic;
	u32 padded = max_t(u32, slot->waiting->len, ETH_ZLEN);
	u64 due_ns = max(now_ns, nic->line.free_ns);

	if (!nic->peer)
		return now_ns;
	if (!wire_fetch_ranked(nic))
		return nic->fifo.size ? wire_fifo_room_ns(&nic->fifo, now_ns, padded) : due_ns;
	due_ns = max(due_ns, wire_fetch_launch(queue, slot->waiting, now_ns));
	if (nic->schedule)
		due_ns = wire_fetch_gate(queue, slot, padded + WIRE_OVERHEAD, due_ns);
	return due_ns;
}

/* Returns the next queue with a frame to fetch, or NULL, and when it can be fetched in *@due_ns. */
static struct wire_queue *wire_fetch_turn(const struct wire_nic *nic, u64 now_ns, u64 *due_ns)
{
	bool ranked = wire_fetch_ranked(nic);
	struct wire_queue *next = NULL;
	u32 i;

	for (i = 0; i < nic->queue_count; i++) {
		struct wire_queue *queue = &nic->queues[(nic->turn + i) % nic->queue_count];
		u64 queue_due_ns;

		if (queue->slots_fetched == queue->slot_count)
			continue;
		queue_due_ns = wire_fetch_due(queue, now_ns);
		if (next && (queue_due_ns > *due_ns ||
			     (queue_due_ns == *due_ns && queue->rank > next->rank)))
			continue;
		next = queue;
		*due_ns = queue_due_ns;
		if (!ranked)
			break;
	}
	return next;
}

/* Fetches frames as long as there are some that can be fetched. */
void wire_fetch(struct wire_nic *nic, u64 now_ns)
{
	struct wire_queue *queue;
	u64 due_ns, done_ns;

	while ((queue = wire_fetch_turn(nic, now_ns, &due_ns))) {
		struct wire_slot *slot = wire_slot(queue, queue->slots_fetched);

		if (due_ns > now_ns) {
			if (due_ns != WIRE_NEVER)
				hrtimer_start(&nic->fetching, ns_to_ktime(due_ns),
					      HRTIMER_MODE_ABS_SOFT);
			return;
		}
		nic->turn = (queue->index + 1) % nic->queue_count;
		queue->tx_frames += !!nic->peer;
		done_ns = wire_send_frame(nic, wire_take_frame(slot),
					  wire_fetch_since(nic, slot, now_ns), now_ns);
		if (slot->waiting)
			continue;
		slot->done_ns = done_ns;
		wire_sent(queue, slot);
		wire_tx_arm(queue);
	}
}

/* Looks again after a change of clock, gates or priorities, and allows bottom halves. Returns 0. */
int wire_fetch_changed(struct wire_nic *nic)
{
	wire_fetch(nic, ktime_get_ns());
	local_bh_enable();
	return 0;
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
