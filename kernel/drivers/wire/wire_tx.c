// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: from ndo_start_xmit to the cable, and completion.
 *
 * With one queue, a frame's departure is known when it enters the ring, since the ring is a FIFO
 * and the serialisation is exact. So there is no event per frame, only the completion interrupt.
 * Several queues take turns (wire_fetch.c). An skb
 * larger than a frame (TSO) takes one chain of descriptors and is segmented on the wire. After
 * its last bit comes an interrupt, which frees it and notifies BQL and TCP Small Queues, as in a
 * NIC that reports per chain. Frames have a copy of the header and share the payload's pages
 * with the sender, as a DMA engine reads them. A frame is complete when the NIC has fetched it
 * into its memory (wire_fifo.c); if it has no memory, when it has left the line.
 *
 * Left out: the time of DMA.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <net/ip.h>
#include "wire.h"
#include "wire_trace.h"

/* The maximum number of descriptors of an skb. */
#define WIRE_CHAIN	(MAX_SKB_FRAGS + 1)

/* The initial value of a frame's hash: FNV's offset basis. */
#define WIRE_DIGEST	0xcbf29ce484222325ULL

struct wire_slot *wire_slot(const struct wire_queue *queue, u32 index)
{
	u32 slot = queue->slot_first + index;	/* less than twice the ring */
	u32 ring = queue->nic->tx_ring;

	return &queue->slots[slot < ring ? slot : slot - ring];
}

/*
 * Adds a hash of a frame's departure, length and first bytes to the NIC's digest. Two runs with
 * equal digests sent the same frames at the same ns. The digest is a sum, so the difference of
 * two readings is the digest of the frames between them.
 */
static void wire_digest(struct wire_nic *nic, const struct sk_buff *frame,
			u64 departure_ns)
{
	u8 head[96] __aligned(8) = {};
	const u64 *blocks = (const u64 *)head;
	u64 digest = WIRE_DIGEST;
	unsigned int i;

	skb_copy_bits(frame, 0, head, min_t(u32, frame->len, sizeof(head)));
	digest = (digest ^ departure_ns) * 0x100000001b3ULL;
	digest = (digest ^ frame->len) * 0x100000001b3ULL;
	for (i = 0; i < sizeof(head) / sizeof(*blocks); i++)
		digest = ((digest ^ blocks[i]) * 0x100000001b3ULL) ^ (digest >> 29);
	nic->stats.tx_digest += digest;
}

/* Removes the sender's state from the frame. */
static void wire_forget(struct sk_buff *frame)
{
	skb_scrub_packet(frame, true);
	skb_clear_hash(frame);
	skb_hwtstamps(frame)->hwtstamp = 0;
	frame->priority = 0;
	frame->queue_mapping = 0;
	if (frame->ip_summed != CHECKSUM_PARTIAL)
		frame->ip_summed = CHECKSUM_UNNECESSARY;
}

/* Returns the arrival time of a frame that leaves at @departure_ns. */
static u64 wire_arrives(struct wire_nic *nic, const struct wire_fate *fate,
			u64 departure_ns)
{
	u64 arrival = departure_ns + nic->delay_ns + fate->jitter_ns;

	if (fate->reordered) {
		nic->stats.tx_reordered++;
		return arrival + nic->faults.reorder_ns;
	}
	nic->arrival_last_ns = max(arrival, nic->arrival_last_ns);
	return nic->arrival_last_ns;
}

static void wire_deliver(struct wire_nic *nic, struct sk_buff *frame,
			 const struct wire_fate *fate, struct wire_flight *flight)
{
	struct sk_buff *twin;

	wire_forget(frame);
	twin = fate->duplicated ? pskb_copy(frame, GFP_ATOMIC) : NULL;
	flight->arrival_ns = wire_arrives(nic, fate, flight->leaves_ns);
	flight->copies = twin ? 2 : 1;
	trace_wire_sent(frame, nic->dev, nic->peer->dev, flight);
	if (flight->congested) {
		nic->stats.tx_marked += wire_mark(frame);
		if (twin)
			wire_mark(twin);
	}
	*wire_cb(frame) = (struct wire_cb){ .arrival_ns = flight->arrival_ns,
					    .departure_ns = flight->end_ns,
					    .corrupted = fate->corrupted };
	if (twin) {
		nic->stats.tx_duplicated++;
		*wire_cb(twin) = *wire_cb(frame);
		wire_rx_enqueue(nic->peer, twin);
	}
	wire_rx_enqueue(nic->peer, frame);
}

/* Drops a frame that waits in a ring. */
static void wire_drop_frame(struct wire_nic *nic, struct sk_buff *frame, const char *reason)
{
	nic->stats.tx_no_carrier++;
	trace_wire_tx_dropped(frame, nic->dev, reason);
	consume_skb(frame);
}

/* Sends one frame, which waits since @queued_ns, and consumes it. Returns the ns at which the NIC
 * has fetched it, or has sent it.
 */
u64 wire_send_frame(struct wire_nic *nic, struct sk_buff *frame, u64 queued_ns, u64 now_ns)
{
	u32 padded = max_t(u32, frame->len, ETH_ZLEN);
	struct wire_fate fate = wire_fate(&nic->faults, nic->last_lost,
					  nic->stats.tx_frames);
	struct wire_flight flight;

	if (!nic->peer) {
		wire_drop_frame(nic, frame, "no carrier");
		return now_ns;
	}
	wire_fly(nic, frame, queued_ns, &flight);
	nic->last_lost = fate.lost;
	nic->stats.tx_frames++;
	nic->stats.tx_bytes += frame->len;
	nic->stats.tx_wire_bytes += padded + WIRE_OVERHEAD;
	wire_digest(nic, frame, flight.end_ns);
	if (flight.end_ns == WIRE_NEVER) {
		nic->stats.tx_lost++;
		trace_wire_tx_dropped(frame, nic->dev, "outage without end");
		consume_skb(frame);
	} else if (flight.lost || fate.lost) {
		if (!flight.lost) {
			nic->stats.tx_lost++;
			flight.lost = "loss";
		}
		trace_wire_sent(frame, nic->dev, nic->peer->dev, &flight);
		consume_skb(frame);
	} else {
		wire_deliver(nic, frame, &fate, &flight);
	}
	return wire_fifo_fetch(&nic->fifo, now_ns, flight.end_ns, padded);
}

/*
 * Returns whether @skb itself may be the frame: a forwarded packet without other users, whose
 * completion only BQL needs.
 */
static bool wire_is_frame(const struct sk_buff *skb)
{
	return !skb->destructor && !skb->sk && !skb_is_gso(skb) && !skb_cloned(skb) &&
	       !skb_shared(skb);
}

/*
 * Returns the frames of @skb as a list, each with its own header. @skb itself stays unchanged,
 * since TCP Small Queues needs its destructor at completion.
 */
static struct sk_buff *wire_frames(struct sk_buff *skb, struct net_device *dev)
{
	struct sk_buff *clone, *frames;

	if (!skb_is_gso(skb)) {
		if (skb->len <= WIRE_COPY_MAX)
			return skb_copy(skb, GFP_ATOMIC);
		return pskb_copy(skb, GFP_ATOMIC);
	}
	clone = skb_clone(skb, GFP_ATOMIC);
	if (!clone)
		return NULL;
	frames = skb_gso_segment(clone, dev->features & ~NETIF_F_GSO_MASK);
	consume_skb(clone);
	return IS_ERR(frames) ? NULL : frames;
}

static void wire_count(struct wire_work *work, const struct sk_buff *frame)
{
	work->packets++;
	work->bytes += frame->len;
}

/* Takes the next frame out of a chain. Returns NULL if it has none. */
struct sk_buff *wire_take_frame(struct wire_slot *slot)
{
	struct sk_buff *frame = slot->waiting;

	if (frame) {
		slot->waiting = frame->next;
		skb_mark_not_on_list(frame);
	}
	return frame;
}

/* The chip has fetched all frames of the next chain in the ring. */
void wire_sent(struct wire_queue *queue, const struct wire_slot *slot)
{
	struct wire_nic *nic = queue->nic;

	queue->slots_fetched++;
	if (unlikely(nic->stamped) && nic->stamped == slot->skb)
		wire_stamp_sent(nic, nic->line.free_ns);
}

/* Sends the frames of a chain, or leaves them to the turns of several queues. */
static void wire_launch(struct wire_queue *queue, struct wire_slot *slot)
{
	struct sk_buff *frame;

	slot->frames = (struct wire_work){ };
	if (queue->nic->queue_count > 1) {
		for (frame = slot->waiting; frame; frame = frame->next)
			wire_count(&slot->frames, frame);
		return;
	}
	while ((frame = wire_take_frame(slot))) {
		wire_count(&slot->frames, frame);
		slot->done_ns = wire_send_frame(queue->nic, frame, slot->queued_ns,
						slot->queued_ns);
	}
	wire_sent(queue, slot);
}

/* Returns whether the ring has room for any skb. */
bool wire_tx_room(const struct wire_queue *queue)
{
	const struct wire_nic *nic = queue->nic;

	return nic->tx_ring - queue->descriptors_used >= WIRE_CHAIN + nic->tx_context;
}

netdev_tx_t wire_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct wire_nic *nic = netdev_priv(dev);

	if (!wire_cpu_sends(nic, skb))
		wire_tx_ring(wire_queue_of(nic, skb), skb);
	return NETDEV_TX_OK;
}

/* Drops @skb before the ring. */
void wire_tx_refuse(struct wire_nic *nic, struct sk_buff *skb)
{
	nic->stats.tx_no_carrier += max_t(u32, skb_shinfo(skb)->gso_segs, 1);
	dev_kfree_skb_any(skb);
}

/* Puts @skb into the ring. */
void wire_tx_ring(struct wire_queue *queue, struct sk_buff *skb)
{
	struct wire_nic *nic = queue->nic;
	struct net_device *dev = nic->dev;
	struct sk_buff *frames;
	struct wire_slot *slot;

	if (!nic->peer) {
		wire_tx_refuse(nic, skb);
		return;
	}
	wire_stamp_request(nic, skb);
	skb_tx_timestamp(skb);
	frames = wire_is_frame(skb) ? skb : wire_frames(skb, dev);
	if (!frames) {
		if (nic->stamped == skb)
			wire_stamp_drop(nic);
		nic->stats.tx_no_memory++;
		dev_kfree_skb_any(skb);
		return;
	}
	nic->stats.tx_skbs++;
	nic->stats.tx_tso_skbs += skb_is_gso(skb);
	slot = wire_slot(queue, queue->slot_count++);
	slot->skb = frames == skb ? NULL : skb;
	slot->bytes = skb->len;
	slot->descriptors = skb_shinfo(skb)->nr_frags + 1;
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		slot->descriptors += nic->tx_context;
	slot->waiting = frames;
	slot->queued_ns = ktime_get_ns();
	slot->done_ns = WIRE_NEVER;
	wire_launch(queue, slot);
	if (nic->bql_headers)
		slot->bytes = slot->frames.bytes;
	queue->descriptors_used += slot->descriptors;
	netdev_tx_sent_queue(wire_txq(queue), slot->bytes);
	if (!wire_tx_room(queue)) {
		nic->stats.tx_stops++;
		netif_tx_stop_queue(wire_txq(queue));
	}
	if (nic->queue_count > 1)
		wire_fetch(nic, slot->queued_ns);
	if (queue->slot_count == 1 || queue->slot_count == nic->tx_moderation.frames)
		wire_tx_arm(queue);
}

/* Frees complete skbs at @now_ns and reports them to BQL. */
void wire_tx_reap(struct wire_queue *queue, u64 now_ns)
{
	struct wire_work *work = &wire_tx_vector(queue)->itr.work[WIRE_TX];
	struct netdev_queue *txq = wire_txq(queue);
	struct wire_nic *nic = queue->nic;
	unsigned int packets = 0, bytes = 0;

	while (queue->slots_fetched) {
		struct wire_slot *slot = wire_slot(queue, 0);

		if (slot->done_ns > now_ns)
			break;
		packets++;
		bytes += slot->bytes;
		work->packets += slot->frames.packets;
		work->bytes += slot->frames.bytes;
		queue->descriptors_used -= slot->descriptors;
		queue->slot_first = wire_slot(queue, 1) - queue->slots;
		queue->slot_count--;
		queue->slots_fetched--;
		napi_consume_skb(slot->skb, 1); /* NULL: the skb itself was the frame */
	}
	if (!packets)
		return;
	nic->stats.tx_interrupts++;
	netdev_tx_completed_queue(txq, packets, bytes);
	if (netif_tx_queue_stopped(txq) && !nic->handed &&
	    nic->tx_ring - queue->descriptors_used >=
	    clamp_t(u64, nic->tx_wake, WIRE_CHAIN + nic->tx_context, nic->tx_ring))
		netif_tx_wake_queue(txq);
}

/* Returns when the completion interrupt is due. */
u64 wire_tx_due(const struct wire_queue *queue)
{
	const struct wire_nic *nic = queue->nic;
	const struct wire_moderation *moderation = &nic->tx_moderation;
	u64 due, first;

	if (!queue->slot_count)
		return WIRE_NEVER;
	first = wire_slot(queue, 0)->done_ns;
	if (first == WIRE_NEVER)
		return WIRE_NEVER;
	if (nic->law != WIRE_DELAY)
		return max(first, (wire_shared(nic) ? &queue->rx_vector :
						      &queue->tx_vector)->itr.next_ns);
	due = first + (u64)moderation->usecs * NSEC_PER_USEC;
	if (moderation->frames && queue->slot_count >= moderation->frames)
		due = min(due, wire_slot(queue, moderation->frames - 1)->done_ns);
	return due;
}

/* Returns the bytes in the ring, unreported skbs included. */
u32 wire_tx_bytes(const struct wire_queue *queue)
{
	u32 i, bytes = 0;

	for (i = 0; i < queue->slot_count; i++)
		bytes += wire_slot(queue, i)->bytes;
	return bytes;
}

static void wire_tx_drop(struct wire_queue *queue)
{
	while (queue->slot_count) {
		struct wire_slot *slot = wire_slot(queue, 0);
		struct sk_buff *frame;

		while ((frame = wire_take_frame(slot)))
			wire_drop_frame(queue->nic, frame, "down");
		dev_kfree_skb_any(slot->skb);
		queue->slot_first = wire_slot(queue, 1) - queue->slots;
		queue->slot_count--;
	}
	queue->slots_fetched = 0;
	queue->descriptors_used = 0;
	netdev_tx_reset_queue(wire_txq(queue));
}

/* Drops the frames in the rings and the skbs that wait for completion: the device goes down. */
void wire_tx_flush(struct wire_nic *nic)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic)
		wire_tx_drop(queue);
	wire_fifo_reset(&nic->fifo);
}

/*
 * Ends a permanent outage after a change of the trace. Frames that were lost in it count as
 * sent, so that the ring continues.
 */
void wire_tx_revive(struct wire_nic *nic, u64 now_ns)
{
	struct wire_queue *queue;
	u32 i;

	if (nic->line.free_ns != WIRE_NEVER)
		return;
	local_bh_disable();
	wire_line_revive(&nic->line, now_ns);
	wire_fifo_reset(&nic->fifo);
	wire_for_each_queue(queue, nic) {
		for (i = 0; i < queue->slots_fetched; i++)
			if (wire_slot(queue, i)->done_ns == WIRE_NEVER)
				wire_slot(queue, i)->done_ns = now_ns;
		wire_tx_arm(queue);
	}
	wire_fetch(nic, now_ns);
	local_bh_enable();
}

/* Replaces the rings by those of @descriptors, only while the NIC is down. */
int wire_tx_resize(struct wire_nic *nic, u32 descriptors)
{
	struct wire_slot *slots = kvcalloc(nic->queue_count * descriptors, sizeof(*slots),
					   GFP_KERNEL);
	struct wire_queue *queue;

	if (!slots)
		return -ENOMEM;
	kvfree(nic->slots);
	nic->slots = slots;
	nic->tx_ring = descriptors;
	wire_for_each_queue(queue, nic) {
		queue->slots = slots + queue->index * descriptors;
		queue->slot_first = 0;
	}
	return 0;
}
