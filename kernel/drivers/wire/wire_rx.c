// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: from the cable to the network stack.
 *
 * Frames wait in a queue by time of arrival; those that have arrived are in the queue's ring.
 * The interrupt comes rx_usecs after the first of them or when the rx_frames-th arrives,
 * whichever is earlier. NAPI then takes all arrived frames, and GRO merges them. Unless the node
 * has a CPU on which frames take time (wire_cpu.c), code takes no time in the guest, so the ring
 * overflows only if it is shorter than the moderation.
 */
#include <linux/etherdevice.h>
#include "wire.h"
#include "wire_trace.h"

static u64 wire_arrival(const struct sk_buff *frame)
{
	return ((const struct wire_cb *)frame->cb)->arrival_ns;
}

/* Drops a frame that has arrived or is in flight. */
static void wire_rx_drop(struct wire_nic *nic, struct sk_buff *frame,
			 const char *reason)
{
	trace_wire_rx_dropped(frame, nic->dev, reason);
	consume_skb(frame);
}

/* Returns when the receive interrupt is due. */
u64 wire_rx_due(const struct wire_queue *queue)
{
	const struct wire_moderation *moderation = &queue->nic->rx_moderation;
	const struct sk_buff *frame = skb_peek(&queue->frames);
	u64 due;
	u32 i;

	if (!frame)
		return WIRE_NEVER;
	if (queue->nic->law != WIRE_DELAY)
		return max(wire_arrival(frame), queue->rx_vector.itr.next_ns);
	due = wire_arrival(frame) + (u64)moderation->usecs * NSEC_PER_USEC;
	if (!moderation->frames || skb_queue_len(&queue->frames) < moderation->frames)
		return due;
	for (i = 1; i < moderation->frames; i++) {
		frame = frame->next;
		if (wire_arrival(frame) >= due)
			return due;
	}
	return min(due, wire_arrival(frame));
}

/* Returns the queue that receives @frame. */
static struct wire_queue *wire_rx_queue(struct wire_nic *nic, struct sk_buff *frame)
{
	struct wire_rss *rss = &wire_cb(frame)->rss;
	u32 queues = nic->dev->real_num_rx_queues;

	if (queues == 1)
		return nic->queues;
	*rss = wire_rss(frame, &nic->faults);
	return &nic->queues[wire_rss_queue(rss, queues)];
}

/* Puts @frame in flight to @nic. */
void wire_rx_enqueue(struct wire_nic *nic, struct sk_buff *frame)
{
	u64 arrival = wire_arrival(frame);
	struct wire_queue *queue = wire_rx_queue(nic, frame);
	struct sk_buff *before = skb_peek_tail(&queue->frames);

	if (!netif_running(nic->dev)) {
		nic->stats.rx_missed++;
		wire_rx_drop(nic, frame, "down");
		return;
	}
	if (!before || wire_arrival(before) <= arrival) {
		u32 length;

		__skb_queue_tail(&queue->frames, frame);
		length = skb_queue_len(&queue->frames);
		if (length > 1 && length != nic->rx_moderation.frames)
			return;		/* the interrupt is already armed */
	} else {
		while (before && wire_arrival(before) > arrival)
			before = skb_queue_is_first(&queue->frames, before) ?
				 NULL : skb_queue_prev(&queue->frames, before);
		if (before)
			__skb_queue_after(&queue->frames, before, frame);
		else
			__skb_queue_head(&queue->frames, frame);
	}
	wire_rx_arm(queue);
}

/*
 * Drops the youngest arrived frames beyond the ring's descriptors. Reads only frames that have
 * arrived, since thousands may be in flight on a long, fast cable.
 */
static void wire_rx_overflow(struct wire_queue *queue, u64 now_ns)
{
	struct wire_nic *nic = queue->nic;
	struct sk_buff *frame, *next;
	u32 arrived = 0;

	if (skb_queue_len(&queue->frames) <= nic->rx_ring)
		return;
	skb_queue_walk_safe(&queue->frames, frame, next) {
		if (wire_arrival(frame) > now_ns)
			break;
		if (arrived++ < nic->rx_ring)
			continue;
		__skb_unlink(frame, &queue->frames);
		wire_rx_drop(nic, frame, "ring is full");
		nic->stats.rx_missed++;
	}
}

/*
 * Writes the checksum into a frame, if a program on the device reads all frames. On the cable a
 * frame has only the pseudo header's sum (CHECKSUM_PARTIAL), which the stack itself accepts.
 */
static void wire_rx_checksum(const struct wire_nic *nic, struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL && dev_nit_active(nic->dev) &&
	    !skb_checksum_help(skb))
		skb->ip_summed = CHECKSUM_UNNECESSARY;
}

/* Gives an intact frame to the stack, in a buffer like the driver's. */
static void wire_rx_give(struct wire_queue *queue, struct sk_buff *frame)
{
	struct wire_cb cb = *wire_cb(frame);
	struct wire_nic *nic = queue->nic;
	struct sk_buff *skb = wire_buffer_receive(nic, frame);

	if (!skb) {
		nic->stats.rx_missed++;
		wire_rx_drop(nic, frame, "no memory");
		return;
	}
	nic->stats.rx_frames++;
	queue->rx_frames++;
	nic->stats.rx_bytes += skb->len;
	memset(skb->cb, 0, sizeof(skb->cb));
	wire_stamp_received(nic, skb, &cb);
	skb->protocol = eth_type_trans(skb, nic->dev);
	wire_rx_checksum(nic, skb);
	if (nic->dev->real_num_rx_queues > 1) {
		skb_record_rx_queue(skb, queue->index);
		skb_set_hash(skb, cb.rss.hash,
			     cb.rss.ports ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
	}
	napi_gro_receive(&queue->rx_vector.napi, skb);
}

/* Gives arrived frames to the stack, up to the first one that the CPU has not received yet. */
void wire_rx_poll(struct wire_queue *queue, u64 now_ns, int budget)
{
	struct wire_work *work = &queue->rx_vector.itr.work[WIRE_RX];
	struct wire_nic *nic = queue->nic;
	struct sk_buff *frame;

	wire_rx_overflow(queue, now_ns);
	while (queue->polled < budget && (frame = skb_peek(&queue->frames)) &&
	       wire_arrival(frame) <= now_ns &&
	       (wire_cb(frame)->corrupted || wire_cpu_received(queue, now_ns))) {
		__skb_unlink(frame, &queue->frames);
		trace_wire_received(frame, nic->dev, wire_arrival(frame));
		queue->polled++;
		if (wire_cb(frame)->corrupted) {
			nic->stats.rx_corrupted++;
			wire_rx_drop(nic, frame, "wrong FCS");
			continue;
		}
		work->packets++;
		work->bytes += frame->len;
		wire_rx_give(queue, frame);
	}
}

/* Returns the time up to which the NIC has taken all arrivals out of its rings. For a device that
 * is not a wire NIC, this is @now_ns.
 */
u64 wire_rx_settled_ns(const struct net_device *dev, u64 now_ns)
{
	const struct wire_nic *nic = netdev_priv(dev);
	const struct wire_queue *queue;

	if (dev->ethtool_ops != &wire_ethtool_ops)
		return now_ns;
	wire_for_each_queue(queue, nic) {
		const struct sk_buff *next = skb_peek(&queue->frames);

		if (next)
			now_ns = min(now_ns, wire_arrival(next));
	}
	return now_ns;
}

/* Drops frames in flight: the device goes down, or the cable is unplugged. */
void wire_rx_flush(struct wire_nic *nic)
{
	struct wire_queue *queue;
	struct sk_buff *frame;

	wire_for_each_queue(queue, nic)
		while ((frame = __skb_dequeue(&queue->frames))) {
			nic->stats.rx_missed++;
			wire_rx_drop(nic, frame, "down");
		}
}

/* Drops frames that have not left the peer at @now_ns: the peer goes down. */
void wire_rx_recall(struct wire_nic *nic, u64 now_ns)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic) {
		struct sk_buff *frame, *next;

		skb_queue_walk_safe(&queue->frames, frame, next) {
			if (wire_cb(frame)->departure_ns <= now_ns)
				continue;
			__skb_unlink(frame, &queue->frames);
			nic->stats.rx_missed++;
			wire_rx_drop(nic, frame, "cut off");
		}
		wire_rx_arm(queue);
	}
}
