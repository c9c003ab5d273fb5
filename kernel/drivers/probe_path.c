// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: the events that move packets on.
 *
 * event			from				layer that ends
 * net_dev_queue		tracepoint			the socket's, or stack
 * net_dev_start_xmit		tracepoint			qdisc
 * wire_sent		tracepoint of wire: in advance	ring, contention, wire, shaper, propagation
 * radio_...		tracepoints of radio		txq ... propagation, rx
 * netif_receive_skb		tracepoint			rx (GRO is over); resequence
 * probe_duplicated()		hook of netem: two packets from here on
 *
 * A packet that arrives may be redirected to an ifb, queue there, and come to the
 * stack of its device a second time: until then it is not at its end, and what it
 * waited is the qdisc's layer of that node.
 *
 * Datagrams and bare acknowledgments end when the stack has them: from there to
 * the socket it takes no time, and how long a datagram waits for its reader is
 * the reader's affair. TCP data ends when it is read (probe_tcp.c).
 */
#include <linux/etherdevice.h>
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

/* Within a cell: from the access point's receive path onto its queue. */
static void probe_queue_forwarded(const struct probe_packets *packets, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_find(probe_who(packets), probe_what(packets, 0),
						  PROBE_IN_MAC80211, -1, now);

	if (!slot) {
		probe_unmatched(packets);
		return;
	}
	probe_slot_visit(slot, node);
	probe_slot_spend(slot, HOP_RESEQUENCE, now);
	probe_slot_ecn(slot, packets->ecn, NULL, PROBE_AT_STACK);
	slot->state = PROBE_IN_QDISC;
}

/*
 * The packet in the queue of another device at @node, where one is above another
 * (a bridge): still the first one's.
 */
static struct probe_slot *probe_stacked(u64 who, u64 what, const struct sk_buff *skb, int node,
					s64 now)
{
	struct probe_slot *slot = probe_slot_find(who, what, PROBE_IN_QDISC | PROBE_IN_RING,
						  node, now);

	if (!slot || slot->device == skb->dev->ifindex)
		return NULL;
	return skb->skb_iif || slot->at_ns == now ? slot : NULL;
}

/* Whether the packet has been counted as one that ended, and is counted as one that did not. */
static bool probe_again(const struct probe_packets *packets)
{
	struct probe_program *program = packets->watch->program;

	if (!program || !program->again)
		return false;
	program->again = false;
	packets->watch->way[packets->way].of[packets->ecn].sent--;
	packets->watch->way[packets->way].of[packets->ecn].delivered--;
	return true;
}

static void probe_queue_one(const struct probe_packets *packets, u32 index, struct sk_buff *skb,
			    int node, s64 now)
{
	u64 who = probe_who(packets), what = probe_what(packets, index);
	enum probe_hop spent = HOP_STACK;
	struct probe_slot *slot;

	if (probe_forwarded(skb)) {
		probe_queue_forwarded(packets, node, now);
		return;
	}
	slot = skb->skb_iif ? probe_slot_find(who, what, PROBE_RECEIVED, node, now) : NULL;
	if (!slot) {
		slot = probe_stacked(who, what, skb, node, now);
		spent = HOP_QDISC;
	}
	if (!slot && skb->skb_iif && !probe_again(packets)) {
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
		probe_queue_one(&packets, i, skb, node, now);
}

/* A qdisc makes two packets of one; what it does with the second it does with the first. */
void __probe_duplicated(const struct sk_buff *copy)
{
	int node = probe_node(dev_net(copy->dev));
	struct probe_packets packets;
	s64 now = probe_now();
	u32 i;

	if (node < 0 || !probe_parse(copy, probe_offset(copy), &packets))
		return;
	for (i = 0; i < packets.count; i++) {
		struct probe_slot *slot = probe_slot_find(probe_who(&packets),
							  probe_what(&packets, i),
							  PROBE_IN_QDISC, node, now);

		if (slot)
			probe_slot_twin(slot);
		else
			probe_unmatched(&packets);
	}
}

/* Where a frame is that a device has been given. */
static enum probe_state probe_below(const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_CFG80211)
	if (dev->ieee80211_ptr)
		return PROBE_IN_TXQ;
#endif
	return PROBE_IN_RING;
}

/* The skb that a device was given last, which may drop it at once. */
static const struct sk_buff *given;
static s64 given_ns;

bool probe_just_given(const struct sk_buff *skb)
{
	return skb == given && given_ns == probe_now();
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
	given = skb;
	given_ns = now;
	for (i = 0; i < packets.count; i++) {
		u64 who = probe_who(&packets), what = probe_what(&packets, i);
		struct probe_slot *slot = probe_slot_find(who, what, PROBE_IN_QDISC, node, now);

		if (!slot) {
			probe_unmatched(&packets);
			continue;
		}
		probe_slot_spend(slot, HOP_QDISC, now);
		probe_slot_ecn(slot, packets.ecn, dev, PROBE_AT_QDISC);
		slot->state = probe_below(dev);
	}
}

/* The slot of a frame, which is one packet, in one of @states at the node of @dev. */
static struct probe_slot *probe_frame_slot(const struct sk_buff *frame,
					   const struct net_device *dev, int states, int node,
					   s64 now)
{
	struct probe_packets packets;

	if (!probe_parse(frame, skb_network_offset(frame), &packets))
		return NULL;
	return probe_slot_find(probe_who(&packets), probe_what(&packets, 0), states, node, now);
}

/*
 * Completes the checksum that TCP or UDP left to the NIC (CHECKSUM_PARTIAL) in the
 * @captured bytes of @frame at @data, which begin at @offset. Only here: nobody else
 * reads it, and the frame stays as it is.
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
 * Records a frame as it is on the cable or in the air at @t_ns, its data from @offset
 * (negative: the header was pulled), behind @head_bytes of @head. Gives what was
 * recorded, or NULL.
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
	record->settled_ns = wire_rx_seen(dev, ktime_get_ns());
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
	/* the header is still in the buffer when it was pulled */
	if (offset < 0)
		memcpy(data, frame->data + offset, min_t(u32, snaplen, -offset));
	if (snaplen > -offset)
		skb_copy_bits(frame, 0, data - offset, snaplen + offset);
	if (frame->ip_summed == CHECKSUM_PARTIAL)
		probe_complete_checksum(frame, offset, data, snaplen);
	return data - head_bytes;
}

/* The frame's bits leave: gives its slot, or NULL. */
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
		/* the tracepoint is before wire_mark() */
		if (flight->congested && slot->ecn != PROBE_ECN_NOT_ECT)
			probe_slot_ecn(slot, PROBE_ECN_CE, from, PROBE_AT_WIRE);
		probe_slot_spend(slot, HOP_PROPAGATION, flight->arrival_ns);
		slot->node = probe_node(dev_net(to));
		if (flight->copies > 1)
			probe_slot_twin(slot);
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

/*
 * Whether @packets end at @node; asked of the routing tables until the answer
 * is yes for the first time.
 */
static bool probe_final(const struct probe_packets *packets, const struct sk_buff *skb, int offset,
			struct net *net, int node)
{
	struct probe_way *way = &packets->watch->way[packets->way];

	if (way->final < 0 && !probe_program_sent_on(packets->watch, skb, offset) &&
	    probe_local(skb, offset, net))
		way->final = node;
	return way->final == node;
}

/* What arrives by a cable, a radio, or a device without either, such as veth. */
static struct probe_slot *probe_arriving(u64 who, u64 what, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_find(who, what, PROBE_ON_WIRE, node, now) ?:
				  probe_slot_find(who, what, PROBE_IN_RING | PROBE_IN_MAC80211,
						  -1, now);

	if (!slot)
		return NULL;
	probe_slot_visit(slot, node);
	probe_slot_spend(slot, slot->state == PROBE_IN_MAC80211 ? HOP_RESEQUENCE : HOP_RX, now);
	return slot;
}

/* What an ifb gives back to the device that it came by. */
static struct probe_slot *probe_given_back(u64 who, u64 what, int node, s64 now)
{
	struct probe_slot *slot = probe_slot_find(who, what, PROBE_IN_RING, node, now);

	if (slot)
		probe_slot_spend(slot, HOP_QDISC, now);
	return slot;
}

static void probe_netif_receive_skb(void *data, struct sk_buff *skb)
{
	struct net *net = dev_net(skb->dev);
	struct probe_packets packets;
	int node = probe_node(net);
	s64 now = probe_now();
	bool given_back = skb->tc_skip_classify, final;
	u32 i;

	/* the network header begins where the data does: the link header was pulled */
	if (!probe_on || node < 0 || !probe_parse(skb, 0, &packets))
		return;
	final = (given_back || !filters_ingress(skb->dev)) &&
		probe_final(&packets, skb, 0, net, node);
	for (i = 0; i < packets.count; i++) {
		u64 who = probe_who(&packets), what = probe_what(&packets, i);
		struct probe_slot *slot = given_back ? probe_given_back(who, what, node, now) :
						       probe_arriving(who, what, node, now);

		if (!slot) {
			probe_unmatched(&packets);
			continue;
		}
		probe_slot_ecn(slot, packets.ecn, skb->dev,
			       given_back ? PROBE_AT_QDISC : PROBE_AT_RX);
		slot->state = PROBE_RECEIVED;
		if (!final)
			continue;
		if (packets.content != PROBE_DATA || !probe_tcp_received(&packets, slot))
			probe_slot_finish(slot);
	}
}

/* Only a capture asks for a frame between its arrival and the stack. */
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
