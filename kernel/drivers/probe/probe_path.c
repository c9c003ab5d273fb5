// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: the events on the path of a packet.
 *
 * event			from				layer that ends
 * net_dev_queue		tracepoint			the socket's, or stack
 * net_dev_start_xmit		tracepoint			qdisc
 * wire_sent		tracepoint of wire: in advance	ring, contention, wire, shaper, propagation
 * radio_...		tracepoints of radio		txq ... propagation, rx
 * netif_receive_skb		tracepoint			rx (GRO is over); resequence
 * probe_duplicated()		hook of netem: two packets from here on
 * probe_flooded()		hook of bridges: the same
 *
 * An arriving packet may be redirected to an ifb, queue there, and enter the stack of its device
 * a second time. Until then it is not at its destination, and its waiting time belongs to the
 * qdisc layer of that node.
 *
 * Datagrams and bare acknowledgments end when the stack has them. From there to the socket they
 * take no time, and a datagram's wait for its reader depends only on the reader. TCP data ends
 * when it is read (probe_tcp.c).
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <net/hourglass_probe.h>
#include <net/sock.h>
#include <trace/events/net.h>
#include "probe.h"
#include "wire.h"
#include "wire_trace.h"

static s64 probe_now(void)
{
	return ktime_get_ns();
}

/* Handles forwarding within a cell, from the access point's receive path to its queue. */
static void probe_queue_forwarded(const struct probe_packets *packets, int node, int device,
				  s64 now)
{
	struct probe_slot *slot = probe_slot_find(probe_owner(packets), probe_ident(packets, 0),
						  PROBE_IN_MAC80211, node, now);

	if (!slot) {
		probe_unmatched(packets);
		return;
	}
	probe_slot_spend(slot, HOP_RESEQUENCE, now);
	probe_slot_ecn(slot, packets->ecn, NULL, PROBE_AT_STACK);
	slot->state = PROBE_IN_QDISC;
	slot->device = device;
}

/* Returns the packet if a device stacked on @dev, such as that of a VLAN, hands it to @dev now. */
static struct probe_slot *probe_from_above(u64 owner, u64 ident, struct net_device *dev, int node,
					   s64 now)
{
	struct net_device *upper;
	struct list_head *iter;

	netdev_for_each_upper_dev_rcu(dev, upper, iter) {
		struct probe_slot *slot = probe_slot_at(owner, ident, PROBE_IN_RING, node,
							upper->ifindex, now);

		if (slot)
			return slot;
	}
	return NULL;
}

/*
 * Returns the packet if it is in the queue of another device at @node: one device is stacked on
 * the other (a bridge, a VLAN).
 */
static struct probe_slot *probe_stacked(u64 owner, u64 ident,
					const struct sk_buff *skb, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_at(owner, ident, PROBE_IN_QDISC | PROBE_IN_RING, node,
						-skb->dev->ifindex, now);

	return slot && (skb->skb_iif || slot->at_ns == now) ? slot : NULL;
}

/* Returns whether a completed packet continues, and corrects the counts. */
static bool probe_recount(const struct probe_packets *packets)
{
	struct probe_program *program = packets->watch->program;

	if (!program || !program->recount)
		return false;
	program->recount = false;
	packets->watch->oneway[packets->direction].of[packets->ecn].sent--;
	packets->watch->oneway[packets->direction].of[packets->ecn].delivered--;
	return true;
}

static void probe_queue_packet(const struct probe_packets *packets, u32 index, struct sk_buff *skb,
			       int node, s64 now)
{
	u64 owner = probe_owner(packets), ident = probe_ident(packets, index);
	enum probe_hop spent = HOP_STACK;
	struct probe_slot *slot;

	if (probe_forwarded(skb)) {
		probe_queue_forwarded(packets, node, skb->dev->ifindex, now);
		return;
	}
	slot = probe_from_above(owner, ident, skb->dev, node, now);
	if (slot)
		spent = HOP_QDISC;
	else if (skb->skb_iif)
		slot = probe_slot_find(owner, ident, PROBE_RECEIVED, node, now);
	if (!slot) {
		slot = probe_stacked(owner, ident, skb, node, now);
		spent = HOP_QDISC;
	}
	if (!slot && skb->skb_iif && !probe_recount(packets)) {
		probe_unmatched(packets);
		return;
	}
	if (slot) {
		probe_slot_spend(slot, spent, now);
		probe_slot_ecn(slot, packets->ecn, spent == HOP_QDISC ? skb->dev : NULL,
			       spent == HOP_QDISC ? PROBE_AT_QDISC : PROBE_AT_STACK);
	} else {
		slot = probe_slot_new(packets, index, node, now);
		if (!slot)
			return;
		if (packets->content != PROBE_DATAGRAM)
			probe_tcp_sent(packets, skb->sk, slot, now);
	}
	slot->state = PROBE_IN_QDISC;
	slot->device = skb->dev->ifindex;
}

static void probe_net_dev_queue(void *data, struct sk_buff *skb)
{
	struct probe_packets packets;
	int node = probe_node(dev_net(skb->dev));
	s64 now = probe_now();
	u32 i;

	if (!probe_on || node < 0)
		return;
	if (probe_programs)
		probe_program_sends(skb, probe_offset(skb), node);
	if (!probe_parse(skb, probe_offset(skb), &packets))
		return;
	for (i = 0; i < packets.count; i++)
		probe_queue_packet(&packets, i, skb, node, now);
}

/* Duplicates the packets of @copy at its node, where they are in @state. */
static void probe_duplicate(const struct sk_buff *copy, enum probe_state state)
{
	int node = probe_node(dev_net(copy->dev));
	struct probe_packets packets;
	s64 now = probe_now();
	u32 i;

	if (node < 0 || !probe_parse(copy, probe_offset(copy), &packets))
		return;
	for (i = 0; i < packets.count; i++) {
		struct probe_slot *slot = probe_slot_find(probe_owner(&packets),
							  probe_ident(&packets, i), state, node,
							  now);

		if (slot)
			probe_slot_duplicate(slot);
		else if (state == PROBE_IN_QDISC)
			probe_unmatched(&packets);
	}
}

/* A qdisc duplicates a packet and treats the copy like the original. */
void __probe_duplicated(const struct sk_buff *copy)
{
	probe_duplicate(copy, PROBE_IN_QDISC);
}

/* A bridge duplicates a packet that it has received, or one that its own node sends. */
void __probe_flooded(const struct sk_buff *copy)
{
	probe_duplicate(copy, PROBE_RECEIVED);
}

/* Returns the state of a frame that a device has been given. */
static enum probe_state probe_below(const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_CFG80211)
	if (dev->ieee80211_ptr)
		return PROBE_IN_TXQ;
#endif
	return PROBE_IN_RING;
}

/* The skb that was enqueued last: the qdisc may drop it at once. */
static const struct sk_buff *last_queued;
static s64 last_queued_ns;

bool probe_just_queued(const struct sk_buff *skb)
{
	return skb == last_queued && last_queued_ns == probe_now();
}

static void probe_net_dev_start_xmit(void *data, const struct sk_buff *skb,
				     const struct net_device *dev)
{
	struct probe_packets packets;
	int node = probe_node(dev_net(dev));
	s64 now = probe_now();
	u32 i;

	if (!probe_on || node < 0 || !probe_parse(skb, probe_offset(skb), &packets))
		return;
	last_queued = skb;
	last_queued_ns = now;
	for (i = 0; i < packets.count; i++) {
		u64 owner = probe_owner(&packets), ident = probe_ident(&packets, i);
		struct probe_slot *slot = probe_slot_at(owner, ident, PROBE_IN_QDISC, node,
							dev->ifindex, now);

		if (!slot) {
			probe_unmatched(&packets);
			continue;
		}
		probe_slot_spend(slot, HOP_QDISC, now);
		probe_slot_ecn(slot, packets.ecn, dev, PROBE_AT_QDISC);
		slot->state = probe_below(dev);
	}
}

/* Returns the slot of a frame with one packet, in one of @states at the node of @dev. */
static struct probe_slot *probe_frame_slot(const struct sk_buff *frame,
					   const struct net_device *dev, int states, int node,
					   s64 now)
{
	struct probe_packets packets;

	if (!probe_parse(frame, skb_network_offset(frame), &packets))
		return NULL;
	return probe_slot_find(probe_owner(&packets), probe_ident(&packets, 0), states,
			       node, now);
}

/*
 * Completes the checksum that TCP or UDP left to the NIC (CHECKSUM_PARTIAL), in the captured
 * bytes at @data, which begin at @offset of @frame. The frame itself stays unchanged, since
 * nobody else reads the checksum.
 */
static void probe_complete_checksum(const struct sk_buff *frame, int offset, u8 *data,
				    u32 captured)
{
	int start = skb_checksum_start_offset(frame);
	u32 at = start - offset + frame->csum_offset;
	__sum16 sum;

	if (at + sizeof(sum) > captured)
		return;
	sum = csum_fold(skb_checksum(frame, start, frame->len - start, 0)) ?: CSUM_MANGLED_0;
	memcpy(data + at, &sum, sizeof(sum));
}

/*
 * Records a frame at @t_ns, as it is on the cable or in the air: @head_bytes of @head, then the
 * frame's data from @offset on (negative: the header was pulled). Returns the captured data, or
 * NULL.
 */
u8 *probe_capture(const struct sk_buff *frame, const struct net_device *dev, int offset, s64 t_ns,
		  bool received, const struct probe_slot *slot, const void *head, u32 head_bytes)
{
	u32 snaplen, length = frame->len - offset, visits = slot ? slot->visits : 0;
	struct probe_frame *record;
	bool captured;
	u8 *data;

	snaplen = probe_snaplen(dev, &captured);
	if (!captured)
		return NULL;
	snaplen = snaplen ? min(snaplen, length) : length;
	record = probe_emit(PROBE_FRAME,
			    struct_size(record, visit, visits) + head_bytes + snaplen);
	if (!record)
		return NULL;
	record->t_ns = t_ns;
	record->settled_ns = wire_rx_settled_ns(dev, ktime_get_ns());
	record->node = probe_node(dev_net(dev));
	record->stream.id = PROBE_NO_STREAM;
	record->received = received;
	record->length = head_bytes + length;
	record->captured = head_bytes + snaplen;
	record->visits = visits;
	strscpy(record->device, dev->name, sizeof(record->device));
	if (slot) {
		record->stream = probe_slot_stream(slot);
		record->number = slot->number;
		record->begin_ns = slot->begin_ns;
		probe_slot_layers(slot, record->visit);
	}
	data = (u8 *)&record->visit[visits];
	memcpy(data, head, head_bytes);
	data += head_bytes;
	/* a pulled header is still in the buffer */
	if (offset < 0)
		memcpy(data, frame->data + offset, min_t(u32, snaplen, -offset));
	if (snaplen > -offset)
		skb_copy_bits(frame, 0, data - offset, snaplen + offset);
	if (frame->ip_summed == CHECKSUM_PARTIAL)
		probe_complete_checksum(frame, offset, data, snaplen);
	return data - head_bytes;
}

/* Handles a frame that leaves. Returns its slot, or NULL. */
static struct probe_slot *probe_wire_leaves(const struct sk_buff *frame,
					    const struct net_device *from, int node,
					    const struct wire_flight *flight)
{
	struct probe_slot *slot = probe_frame_slot(frame, from, PROBE_IN_RING, node, probe_now());

	if (slot) {
		probe_slot_spend(slot, HOP_RING, flight->head_ns);
		probe_slot_spend(slot, HOP_CONTENTION, flight->start_ns);
	}
	probe_capture(frame, from, 0, flight->start_ns, false, slot, NULL, 0);
	if (slot) {
		probe_slot_spend(slot, HOP_WIRE, flight->end_ns);
		slot->state = PROBE_ON_WIRE;
	}
	return slot;
}

static void probe_wire_sent(void *data, const struct sk_buff *frame,
			    const struct net_device *from, const struct net_device *to,
			    const struct wire_flight *flight)
{
	int node = probe_node(dev_net(from));
	struct probe_slot *slot;

	if (!probe_on || node < 0)
		return;
	slot = probe_wire_leaves(frame, from, node, flight);
	if (!flight->copies) {
		probe_wire_lost(slot, frame, from, flight->lost);
	} else if (slot) {
		probe_slot_spend(slot, HOP_SHAPER, flight->leaves_ns);
		/* the tracepoint comes before wire_mark() */
		if (flight->congested && slot->ecn != PROBE_ECN_NOT_ECT)
			probe_slot_ecn(slot, PROBE_ECN_CE, from, PROBE_AT_WIRE);
		probe_slot_spend(slot, HOP_PROPAGATION, flight->arrival_ns);
		slot->node = probe_node(dev_net(to));
		if (flight->copies > 1)
			probe_slot_duplicate(slot);
	}
}

static void probe_wire_received(void *data, const struct sk_buff *frame,
				const struct net_device *to, u64 arrival_ns)
{
	bool captured;

	if (!probe_on)
		return;
	probe_snaplen(to, &captured);
	if (captured)
		probe_capture(frame, to, 0, arrival_ns, true,
			      probe_frame_slot(frame, to, PROBE_ON_WIRE,
					       probe_node(dev_net(to)), arrival_ns),
			      NULL, 0);
}

/* Returns whether @packets end at @node, by its routing tables. A positive result is cached. */
static bool probe_final(const struct probe_packets *packets, const struct sk_buff *skb, int offset,
			struct net *net, int node)
{
	struct probe_oneway *oneway = &packets->watch->oneway[packets->direction];

	if (oneway->final < 0 && !probe_redirects(packets->watch, skb, offset) &&
	    probe_local(skb, offset, net))
		oneway->final = node;
	return oneway->final == node;
}

/* Returns the slot of a packet that arrives by a cable, a radio, or another device such as veth. */
static struct probe_slot *probe_arriving(u64 owner, u64 ident, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_find(owner, ident, PROBE_ON_WIRE | PROBE_IN_MAC80211,
						  node, now) ?:
				  probe_slot_find(owner, ident, PROBE_IN_RING, -1, now);

	if (!slot)
		return NULL;
	if (slot->state == PROBE_IN_MAC80211) {
		probe_slot_spend(slot, HOP_RESEQUENCE, now);
		return slot;
	}
	probe_slot_visit(slot, node);
	probe_slot_spend(slot, HOP_RX, now);
	return slot;
}

/* Returns the slot of a packet that an ifb returns to the device of its arrival. */
static struct probe_slot *probe_reinjected(u64 owner, u64 ident, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_find(owner, ident, PROBE_IN_RING, node, now);

	if (slot)
		probe_slot_spend(slot, HOP_QDISC, now);
	return slot;
}

static void probe_netif_receive_skb(void *data, struct sk_buff *skb)
{
	/* the Ethernet header was pulled; the tag of a VLAN was not */
	int offset = eth_type_vlan(skb->protocol) ? VLAN_HLEN : 0;
	struct net *net = dev_net(skb->dev);
	struct probe_packets packets;
	int node = probe_node(net);
	s64 now = probe_now();
	bool reinjected = skb->tc_skip_classify, final;
	u32 i;

	/* a bridge passes a frame of a port to its own device */
	if (!probe_on || node < 0 || netif_is_bridge_master(skb->dev) ||
	    !probe_parse(skb, offset, &packets))
		return;
	final = (reinjected || !filters_ingress(skb->dev)) &&
		probe_final(&packets, skb, offset, net, node);
	for (i = 0; i < packets.count; i++) {
		u64 owner = probe_owner(&packets), ident = probe_ident(&packets, i);
		struct probe_slot *slot = reinjected ? probe_reinjected(owner, ident, node, now) :
						       probe_arriving(owner, ident, node, now);

		if (!slot) {
			probe_unmatched(&packets);
			continue;
		}
		probe_slot_ecn(slot, packets.ecn, skb->dev,
			       reinjected ? PROBE_AT_QDISC : PROBE_AT_RX);
		slot->state = PROBE_RECEIVED;
		if (!final)
			continue;
		if (packets.content != PROBE_DATA || !probe_tcp_received(&packets, slot))
			probe_slot_finish(slot);
	}
}

/* Subscribes to frames before the stack, which only captures need. */
int probe_path_capture(void)
{
	return register_trace_wire_received(probe_wire_received, NULL);
}

int probe_path_start(void)
{
	return register_trace_net_dev_queue(probe_net_dev_queue, NULL)			 ?:
		       register_trace_net_dev_start_xmit(probe_net_dev_start_xmit, NULL) ?:
		       register_trace_wire_sent(probe_wire_sent, NULL)			 ?:
		       register_trace_netif_receive_skb(probe_netif_receive_skb, NULL);
}
