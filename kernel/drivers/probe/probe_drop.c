// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: dropped packets.
 *
 * The kernel drops packets by kfree_skb(), whose tracepoint reports the location and, since
 * 5.17, the reason. The drivers report their drops. The slot of a packet has its position, which
 * is more reliable than a guess from the location. TCP data keeps its slot until it is
 * retransmitted, since its earlier waiting time belongs to the retransmission. mac80211's queue
 * gives no reason. Drops while the driver dequeues a frame are CoDel's; all others are those of
 * the queue's limit.
 *
 * kfree_skb() also frees the parts of a merged skb (skb_release_data(), frag_list), although no
 * packet is lost. Their data begins after the network header. For a packet this is only the case
 * at its destination.
 *
 * skb->dev is not reliable in a freed skb. It shares memory with the links of trees (TCP's
 * out-of-order queue, fq, netem) and with UDP's data of a queued datagram. Code that purges such
 * a queue does not restore it. So this file has a list of the existing devices and ignores any
 * other pointer. A packet that is purged from a qdisc is located by its slot.
 */
#include <linux/hashtable.h>
#include <linux/if_ether.h>
#include <linux/kallsyms.h>
#include <linux/slab.h>
#include <net/hourglass_probe.h>
#include <net/sock.h>
#include <trace/events/skb.h>
#include "probe.h"
#include "wire_trace.h"
#if QDISC_REPORTS_DROPS
#include <trace/events/qdisc.h>
#endif

/* Instead of a place: it is the slot's (as with -1), and the packet has no link header. */
#define PROBE_WITHOUT_LINK (-2)

struct probe_device {
	struct hlist_node hash;
	const struct net_device *dev;
};

static DEFINE_HASHTABLE(devices, 8);

/* Returns @dev if it is an existing device, else NULL. */
static const struct net_device *probe_device(const struct net_device *dev)
{
	const struct probe_device *device;

	hash_for_each_possible(devices, device, hash, (unsigned long)dev)
		if (device->dev == dev)
			return dev;
	return NULL;
}

static void probe_device_forget(const struct net_device *dev)
{
	struct probe_device *device;
	struct hlist_node *next;

	hash_for_each_possible_safe(devices, device, next, hash, (unsigned long)dev) {
		if (device->dev == dev) {
			hash_del(&device->hash);
			kfree(device);
		}
	}
}

static int probe_device_event(struct notifier_block *block, unsigned long event, void *info)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct probe_device *device;

	if (event != NETDEV_REGISTER && event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	device = event == NETDEV_REGISTER ? kmalloc(sizeof(*device), GFP_KERNEL) : NULL;
	local_bh_disable();
	probe_device_forget(dev);
	if (device) {
		device->dev = dev;
		hash_add(devices, &device->hash, (unsigned long)dev);
	}
	local_bh_enable();
	return NOTIFY_DONE;
}

static struct notifier_block probe_device_block = {
	.notifier_call = probe_device_event,
};

static enum probe_place probe_place(const struct probe_slot *slot)
{
	switch (slot->state) {
	case PROBE_IN_QDISC:
		return PROBE_AT_QDISC;
	case PROBE_IN_RING:
		return PROBE_AT_RING;
	case PROBE_ON_WIRE:
		return PROBE_AT_WIRE;
	case PROBE_IN_TXQ:
		return PROBE_AT_TXQ;
	default:
		return slot->node == slot->watch->oneway[slot->direction].final ?
			       PROBE_AT_SOCKET :
			       PROBE_AT_STACK;
	}
}

/*
 * Returns the place of a freed packet. @without_link: it has no link header, unlike packets in a
 * qdisc. If its first fragment is in the qdisc, the IP layer drops the others.
 */
static enum probe_place probe_place_of(const struct probe_slot *slot, bool without_link)
{
	enum probe_place place = probe_place(slot);

	return without_link && place == PROBE_AT_QDISC ? PROBE_AT_STACK : place;
}

static void probe_end_slot(struct probe_slot *slot)
{
	probe_slot_counts(slot)->dropped++;
	if (slot->content == PROBE_DATA)
		probe_keep_lost(slot);
	else
		probe_slot_free(slot);
}

static void probe_record_drop(const struct net_device *dev, int node, enum probe_place place,
			      const char *reason, struct probe_stream stream, u32 packets,
			      u32 bytes)
{
	struct probe_drop *drop = probe_emit(PROBE_DROP, sizeof(*drop));

	if (!drop)
		return;
	if (place == PROBE_AT_TXQ)
		reason = probe_radio_dequeues() ? "codel" : "overlimit";
	drop->t_ns = ktime_get_ns();
	drop->stream = stream;
	drop->node = node;
	drop->place = place;
	drop->packets = packets;
	drop->bytes = bytes;
	if (dev)
		strscpy(drop->device, dev->name, sizeof(drop->device));
	strscpy(drop->reason, reason, sizeof(drop->reason));
}

/* Returns the packet in one of @states, preferably in @likely: equal packets may be in several. */
static struct probe_slot *probe_dropped(u64 owner, u64 ident, int states, int likely,
					int node)
{
	return probe_slot_find(owner, ident, states & likely, node, S64_MAX) ?:
	       probe_slot_find(owner, ident, states, node, S64_MAX);
}

/*
 * Ends the packets of a watched stream that are in one of @states at @node, or on a cable to it.
 * With @node -1 they are at the node of the first one.
 */
static void probe_drop_watched(const struct probe_packets *packets, const struct net_device *dev,
			       int node, int states, int likely, int place, const char *reason)
{
	u32 i, dropped = 0, bytes = 0;
	u64 owner = probe_owner(packets);

	for (i = 0; i < packets->count; i++) {
		u64 ident = probe_ident(packets, i);
		struct probe_slot *slot = probe_dropped(owner, ident, states, likely, node);

		if (!slot)
			continue;
		if (place < 0)
			place = probe_place_of(slot, place == PROBE_WITHOUT_LINK);
		if (node < 0)
			node = slot->node;
		dropped++;
		bytes += slot->bytes;
		probe_end_slot(slot);
	}
	if (dropped)
		probe_record_drop(dev, node, place, reason,
				  (struct probe_stream){ .id = packets->watch->id,
							 .way = packets->direction },
				  dropped, bytes);
}

static void probe_drop_any(const struct sk_buff *skb, int offset, const struct net_device *dev,
			   int states, int place, const char *reason)
{
	/* mac80211's queue contains 802.11 frames, except the skb that is being enqueued */
	int likely = offset > ETH_HLEN	    ? PROBE_IN_TXQ :
		     probe_just_queued(skb) ? PROBE_IN_TXQ | PROBE_IN_RING :
					     ~PROBE_IN_TXQ;
	const struct probe_stream nobody = { .id = PROBE_NO_STREAM };
	int node = probe_node(dev_net(dev));
	struct probe_packets packets;

	if (node < 0)
		return;
	if (probe_parse(skb, offset, &packets)) {
		if (place < 0 && !offset)
			place = PROBE_WITHOUT_LINK;
		probe_drop_watched(&packets, dev, node, states, likely, place, reason);
		return;
	}
	if (place < 0 && probe_radio_queued(skb, offset, dev))
		place = PROBE_AT_TXQ;
	/* an skb with a link header is about to be transmitted */
	if (place < 0)
		place = offset == ETH_HLEN ? PROBE_AT_QDISC : PROBE_AT_STACK;
	probe_record_drop(dev, node, place, reason, nobody,
			  max_t(u32, skb_shinfo(skb)->gso_segs, 1), skb->len);
}

static void probe_wire_tx_dropped(void *data, const struct sk_buff *frame,
				  const struct net_device *dev, const char *reason)
{
	if (probe_on)
		probe_drop_any(frame, skb_network_offset(frame), dev, PROBE_IN_RING,
			       PROBE_AT_RING, reason);
}

static void probe_wire_rx_dropped(void *data, const struct sk_buff *frame,
				  const struct net_device *dev, const char *reason)
{
	if (probe_on)
		probe_drop_any(frame, skb_network_offset(frame), dev, PROBE_ON_WIRE,
			       PROBE_AT_RX, reason);
}

/* A cable loses a frame. @packet: its packet, or NULL if that is not watched. */
void probe_wire_lost(struct probe_slot *packet, const struct sk_buff *frame,
		     const struct net_device *dev, const char *reason)
{
	const struct probe_stream nobody = { .id = PROBE_NO_STREAM };

	probe_record_drop(dev, probe_node(dev_net(dev)), PROBE_AT_WIRE, reason,
			  packet ? probe_slot_stream(packet) : nobody, 1,
			  packet ? packet->bytes : frame->len);
	if (packet)
		probe_end_slot(packet);
}

/* A device (NULL: unknown) of the current node drops the packet of @slot. */
void probe_slot_drop(struct probe_slot *slot, const struct net_device *dev, enum probe_place place,
		     const char *reason)
{
	probe_record_drop(dev, slot->node, place, reason, probe_slot_stream(slot), 1, slot->bytes);
	probe_end_slot(slot);
}

/*
 * Handles an skb whose IP header TCP has pulled, perhaps without a device: the packet is at its
 * destination. At any other node the skb is a part of a merged skb.
 */
static void probe_freed_at_end(const struct sk_buff *skb, const struct net_device *dev, int offset,
			       const char *reason)
{
	struct probe_packets packets;
	struct sk_buff piece = *skb;
	int final;

	piece.data += offset;
	piece.len -= offset;
	if (!probe_parse(&piece, 0, &packets))
		return;
	final = packets.watch->oneway[packets.direction].final;
	if (final >= 0 && (!dev || probe_node(dev_net(dev)) == final))
		probe_drop_watched(&packets, dev, final, PROBE_RECEIVED, ~0, PROBE_AT_SOCKET,
				   reason);
}

/* Handles a packet that is purged from a queue, without a reliable device. */
static void probe_purged(const struct sk_buff *skb, int offset, const char *reason)
{
	struct probe_packets packets;

	if (probe_parse(skb, offset, &packets))
		probe_drop_watched(&packets, NULL, -1, PROBE_IN_QDISC, ~0, PROBE_AT_QDISC, reason);
}

/* Ends the packet in any of @states, since equal acknowledgments may be in several. */
static void probe_freed(const struct sk_buff *skb, int states, const char *reason)
{
	const struct net_device *dev = probe_device(skb->dev);
	int offset = probe_offset(skb);

	if (skb->protocol != htons(ETH_P_IP) && skb->protocol != htons(ETH_P_IPV6) &&
	    skb->protocol != htons(ETH_P_ARP) && !probe_forwarded(skb))
		return;
	if (offset < 0)
		probe_freed_at_end(skb, dev, offset, reason);
	else if (!skb_mac_header_was_set(skb) && !skb->network_header)
		return;
	else if (dev)
		probe_drop_any(skb, offset, dev, states, -1, reason);
	else
		probe_purged(skb, offset, reason);
}

#if QDISC_REPORTS_DROPS
#define QDISC_REASON(reason)	"QDISC_" #reason,
static const char *const qdisc_reasons[] = {
	DEFINE_QDISC_DROP_REASON(QDISC_REASON, QDISC_REASON)
};

static void probe_qdisc_drop(void *data, struct Qdisc *qdisc, const struct netdev_queue *queue,
			     struct net_device *dev, struct sk_buff *skb,
			     enum qdisc_drop_reason reason)
{
	unsigned int number = reason & ~SKB_DROP_REASON_SUBSYS_MASK;

	if (probe_on)
		probe_freed(skb, PROBE_IN_QDISC,
			    number < ARRAY_SIZE(qdisc_reasons) ? qdisc_reasons[number] :
								 NO_REASON);
}

/* Returns whether probe_qdisc_drop() has already handled skbs freed with @reason. */
static bool probe_qdisc_reported(enum skb_drop_reason reason)
{
	return reason == SKB_DROP_REASON_QDISC_DROP;
}

static int probe_qdisc_start(void)
{
	return register_trace_qdisc_drop(probe_qdisc_drop, NULL);
}
#else
#define probe_qdisc_reported(reason) false

static int probe_qdisc_start(void)
{
	return 0;
}
#endif

static void probe_kfree_skb(KFREE_SKB_ARGS)
{
	if (probe_on && !probe_qdisc_reported(reason))
		probe_freed(skb, PROBE_IN_QDISC | PROBE_IN_RING | PROBE_IN_TXQ | PROBE_RECEIVED,
			    drop_reason_name(reason));
}

void __probe_filtered(const struct sk_buff *skb)
{
	probe_freed(skb, PROBE_IN_QDISC, "ack_filter");
}

int probe_drop_start(void)
{
	return register_netdevice_notifier(&probe_device_block)			     ?:
		       probe_qdisc_start()					     ?:
		       register_trace_kfree_skb(probe_kfree_skb, NULL)		     ?:
		       register_trace_wire_tx_dropped(probe_wire_tx_dropped, NULL) ?:
		       register_trace_wire_rx_dropped(probe_wire_rx_dropped, NULL);
}
