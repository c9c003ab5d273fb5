// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: packets that end early.
 *
 * The kernel drops through kfree_skb(), whose tracepoint says why since 5.17
 * and where since ever; our drivers say it themselves. Where a packet was when
 * it was dropped its slot knows, which is better than what can be guessed from
 * the call. TCP data keeps its slot until it is sent again: what it waited
 * before belongs to the retransmission. mac80211's queue gives no reason: what goes
 * when the driver takes a frame is CoDel's, all else that of the queue's limit.
 *
 * A merged skb's pieces are freed by kfree_skb() too although nothing is lost
 * (skb_release_data(), frag_list): their data begin behind the network header,
 * which at no place but the end a packet's do.
 *
 * skb->dev cannot be trusted in an skb that is freed. Its place is that of the links
 * of trees (TCP's out-of-order queue, fq, netem) and of UDP's notes on a queued
 * datagram, and who purges such a queue does not restore it. So the devices that
 * exist are known here, and what is none of them is nothing. A packet that is purged
 * from a qdisc is then found by where its slot is.
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
#if QDISC_TELLS_DROPS
#include <trace/events/qdisc.h>
#endif

/* In place of a place: the slot knows it (-1 too); the packet has no link header. */
#define PROBE_WITHOUT_LINK (-2)

struct probe_device {
	struct hlist_node hash;
	const struct net_device *dev;
};

static DEFINE_HASHTABLE(devices, 8);

/* The device that @dev is; NULL if it is none. */
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
		return slot->node == slot->watch->way[slot->way].final ?
			       PROBE_AT_SOCKET :
			       PROBE_AT_STACK;
	}
}

/*
 * ... of one that is freed. @whole: without a link header, which what is in a qdisc has;
 * its first fragment is there, and the IP layer gives up the rest.
 */
static enum probe_place probe_place_of(const struct probe_slot *slot, bool whole)
{
	enum probe_place place = probe_place(slot);

	return whole && place == PROBE_AT_QDISC ? PROBE_AT_STACK : place;
}

static void probe_end_slot(struct probe_slot *slot)
{
	probe_slot_counts(slot)->dropped++;
	if (slot->content == PROBE_DATA)
		probe_lose(slot);
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

/* The packet in one of @states, of @likely ones if there is one: equal ones may be in several. */
static struct probe_slot *probe_dropped(u64 who, u64 what, int states, int likely, int node)
{
	return probe_slot_find(who, what, states & likely, node, S64_MAX) ?:
	       probe_slot_find(who, what, states, node, S64_MAX);
}

/*
 * Ends the packets of a watched stream that are in one of @states at @node, or
 * on a cable to it; @node -1: wherever the first of them is.
 */
static void probe_drop_watched(const struct probe_packets *packets, const struct net_device *dev,
			       int node, int states, int likely, int place, const char *reason)
{
	u32 i, dropped = 0, bytes = 0;
	u64 who = probe_who(packets);

	for (i = 0; i < packets->count; i++) {
		u64 what = probe_what(packets, i);
		struct probe_slot *slot = probe_dropped(who, what, states, likely, node);

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
	if (place == PROBE_AT_TXQ)
		reason = probe_radio_dequeues() ? "codel" : "overlimit";
	if (dropped)
		probe_record_drop(dev, node, place, reason,
				  (struct probe_stream){ .id = packets->watch->id,
							 .way = packets->way },
				  dropped, bytes);
}

static void probe_drop_any(const struct sk_buff *skb, int offset, const struct net_device *dev,
			   int states, int place, const char *reason)
{
	/* mac80211's own queue has frames of 802.11, but for what it is given this very moment */
	int likely = offset > ETH_HLEN	    ? PROBE_IN_TXQ :
		     probe_just_given(skb) ? PROBE_IN_TXQ | PROBE_IN_RING :
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
	/* with a link header it is on its way out */
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

/* A cable loses the frame whose packet is @packet (NULL: nobody's) for @reason. */
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

/* A device loses the packet of @slot. */
void probe_slot_drop(struct probe_slot *slot, const struct net_device *dev, enum probe_place place,
		     const char *reason)
{
	probe_record_drop(dev, probe_node(dev_net(dev)), place, reason, probe_slot_stream(slot), 1,
			  slot->bytes);
	probe_end_slot(slot);
}

/*
 * TCP has pulled the IP header, and may have forgotten the device: the packet is
 * at its end. Anywhere else it is a piece of a merged skb.
 */
static void probe_freed_behind(const struct sk_buff *skb, const struct net_device *dev, int offset,
			       const char *reason)
{
	struct probe_packets packets;
	struct sk_buff whole = *skb;
	int final;

	whole.data += offset;
	whole.len -= offset;
	if (!probe_parse(&whole, 0, &packets))
		return;
	final = packets.watch->way[packets.way].final;
	if (final >= 0 && (!dev || probe_node(dev_net(dev)) == final))
		probe_drop_watched(&packets, dev, final, PROBE_RECEIVED, ~0, PROBE_AT_SOCKET,
				   reason);
}

/* A packet is purged from a queue whose device is forgotten. */
static void probe_purged(const struct sk_buff *skb, int offset, const char *reason)
{
	struct probe_packets packets;

	if (probe_parse(skb, offset, &packets))
		probe_drop_watched(&packets, NULL, -1, PROBE_IN_QDISC, ~0, PROBE_AT_QDISC, reason);
}

/* In whatever of @states it was: equal acknowledgments may be in several. */
static void probe_freed(const struct sk_buff *skb, int states, const char *reason)
{
	const struct net_device *dev = probe_device(skb->dev);
	int offset = probe_offset(skb);

	if (skb->protocol != htons(ETH_P_IP) && skb->protocol != htons(ETH_P_IPV6) &&
	    skb->protocol != htons(ETH_P_ARP) && !probe_forwarded(skb))
		return;
	if (offset < 0)
		probe_freed_behind(skb, dev, offset, reason);
	else if (!skb_mac_header_was_set(skb) && !skb->network_header)
		return;
	else if (dev)
		probe_drop_any(skb, offset, dev, states, -1, reason);
	else
		probe_purged(skb, offset, reason);
}

#if QDISC_TELLS_DROPS
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

/* Whether @reason is that of an skb of which probe_qdisc_drop() knows. */
static bool probe_qdisc_told(enum skb_drop_reason reason)
{
	return reason == SKB_DROP_REASON_QDISC_DROP;
}

static int probe_qdisc_start(void)
{
	return register_trace_qdisc_drop(probe_qdisc_drop, NULL);
}
#else
#define probe_qdisc_told(reason) false

static int probe_qdisc_start(void)
{
	return 0;
}
#endif

static void probe_kfree_skb(KFREE_SKB_ARGS)
{
	if (probe_on && !probe_qdisc_told(reason))
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
