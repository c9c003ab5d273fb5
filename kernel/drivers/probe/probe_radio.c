// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: packets of radios, from mac80211's queue to its receive path.
 *
 * event	at					layer that ends
 * taken	the driver dequeues a frame from mac80211	txq
 * sent		its PPDU's first transmission begins	ring, contention
 *		a retransmission begins			retry
 * arrived	its PPDU has ended			air, propagation
 * given	mac80211 of the receiver has it		rx, of the receiver
 *
 * From `taken` to `arrived` the cookie of a frame's radio_mpdu is the slot of its packet. No
 * other event may end this slot, since of two equal packets (a retransmission) the later one may
 * arrive first. Then `dev_scratch` of the receiver's copy is the slot, until interrupt and CPU are
 * over. In mac80211 it is again identified by the content of the packet (probe_path.c).
 */
#include <linux/etherdevice.h>
#include "probe_radio.h"
#include "radio_trace.h"

static struct net_device *probe_radio_device(const struct radio_mpdu *mpdu)
{
	struct ieee80211_vif *vif = IEEE80211_SKB_CB(mpdu->skb)->control.vif;

	return vif ? ieee80211_vif_to_wdev(vif)->netdev : NULL;
}

static void probe_radio_taken(void *data, struct radio_mpdu *mpdu)
{
	const struct net_device *dev = probe_radio_device(mpdu);
	int node = dev ? probe_node(dev_net(dev)) : -1;
	int offset = probe_offset_80211(mpdu->skb);
	struct probe_packets packets;
	struct probe_slot *packet;

	if (!probe_on || node < 0 || offset < 0 || !probe_parse(mpdu->skb, offset, &packets))
		return;
	packet = probe_slot_find(probe_owner(&packets), probe_ident(&packets, 0),
				 PROBE_IN_TXQ, node, mpdu->taken_ns);
	if (!packet) {
		probe_unmatched(&packets);
		return;
	}
	probe_slot_spend(packet, HOP_TXQ, mpdu->taken_ns);
	probe_slot_ecn(packet, packets.ecn, dev, PROBE_AT_TXQ);
	packet->state = PROBE_IN_RADIO;
	mpdu->cookie = packet;
}

/* Adds a frame to the capture of @dev, with the retry bit as it is in the air. */
static void probe_radio_capture(const struct radio_ppdu *ppdu, const struct radio_mpdu *mpdu,
				const struct net_device *dev, const struct radio_phy *to,
				u64 t_ns)
{
	u8 head[PROBE_RADIOTAP], *record;
	bool captured;
	u32 bytes;

	probe_snaplen(dev, &captured);
	if (!captured)
		return;
	bytes = probe_radiotap(head, ppdu, mpdu, to);
	record = probe_capture(mpdu->skb, dev, 0, t_ns, to, mpdu->cookie, head, bytes);
	if (record && mpdu->tries > 1)
		record[bytes + 1] |= IEEE80211_FCTL_RETRY >> 8;
}

static void probe_radio_sent(void *data, const struct radio_ppdu *ppdu)
{
	const struct radio_mpdu *mpdu;

	if (!probe_on)
		return;
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		const struct net_device *dev = probe_radio_device(mpdu);
		struct probe_slot *packet = mpdu->cookie;

		if (packet && mpdu->tries == 1) {
			probe_slot_spend(packet, HOP_RING, ppdu->head_ns);
			probe_slot_spend(packet, HOP_CONTENTION, ppdu->start_ns);
		} else if (packet) {
			probe_slot_spend(packet, HOP_RETRY, ppdu->start_ns);
		}
		if (dev && probe_node(dev_net(dev)) >= 0)
			probe_radio_capture(ppdu, mpdu, dev, NULL, ppdu->start_ns);
	}
}

static void probe_radio_arrived(void *data, const struct radio_phy *phy,
				const struct radio_ppdu *ppdu, struct radio_mpdu *mpdu,
				struct sk_buff *copy, u64 arrival_ns)
{
	const struct ieee80211_hdr *header = (const void *)mpdu->skb->data;
	bool answers = radio_rx_answers(phy, mpdu->skb);
	struct probe_slot *packet = mpdu->cookie;
	const struct net_device *receiver = NULL;
	const struct radio_vif *interface;

	if (!probe_on)
		return;
	if (packet && answers) {
		probe_slot_spend(packet, HOP_AIR,
				 arrival_ns - ppdu->queue->phy->params.propagation_ns);
		probe_slot_spend(packet, HOP_PROPAGATION, arrival_ns);
	}
	list_for_each_entry(interface, &phy->vifs, list) {
		const struct net_device *dev = ieee80211_vif_to_wdev(interface->vif)->netdev;
		bool addressed = ether_addr_equal(header->addr1, interface->address);

		if (!dev || probe_node(dev_net(dev)) < 0)
			continue;
		if (addressed)
			receiver = dev;
		if (addressed || is_multicast_ether_addr(header->addr1))
			probe_radio_capture(ppdu, mpdu, dev, phy, arrival_ns);
	}
	if (!packet || !answers)
		return;
	mpdu->cookie = NULL;
	if (!receiver)
		return;
	probe_slot_visit(packet, probe_node(dev_net(receiver)));
	packet->device = receiver->ifindex;
	copy->dev_scratch = (unsigned long)packet;
}

/* Returns the slot of an arrived frame, or NULL, and clears its reference. */
static struct probe_slot *probe_radio_take(struct sk_buff *copy)
{
	struct probe_slot *slot = (void *)copy->dev_scratch;

	copy->dev_scratch = 0;
	return probe_on ? slot : NULL;
}

static void probe_radio_given(void *data, struct sk_buff *copy)
{
	struct probe_slot *slot = probe_radio_take(copy);

	if (!slot)
		return;
	probe_slot_spend(slot, HOP_RX, ktime_get_ns());
	slot->state = PROBE_IN_MAC80211;
}

static void probe_radio_end(struct radio_mpdu *mpdu, enum probe_place place, const char *reason)
{
	if (mpdu->cookie)
		probe_slot_drop(mpdu->cookie, probe_radio_device(mpdu), place, reason);
	mpdu->cookie = NULL;
}

static void probe_radio_lost(void *data, struct radio_mpdu *mpdu, const char *reason)
{
	probe_radio_end(mpdu, PROBE_AT_AIR, reason);
}

static void probe_radio_dropped(void *data, struct radio_mpdu *mpdu, const char *reason)
{
	probe_radio_end(mpdu, PROBE_AT_RING, reason);
}

static void probe_radio_missed(void *data, const struct radio_phy *phy, struct sk_buff *copy)
{
	struct probe_slot *slot = probe_radio_take(copy);

	if (!slot)
		return;
	rcu_read_lock();
	probe_slot_drop(slot, dev_get_by_index_rcu(wiphy_net(phy->hw->wiphy), slot->device),
			PROBE_AT_RX, "down");
	rcu_read_unlock();
}

static void probe_radio_sampled(void *data, const struct net_device *dev,
				const struct radio_backlog *backlog)
{
	struct probe_queue *queue = probe_queue_of(dev);

	if (!queue)
		return;
	queue->ring_skbs = backlog->ring_skbs;
	queue->ring_bytes = backlog->ring_bytes;
	queue->txq_packets = backlog->txq_packets;
	queue->txq_bytes = backlog->txq_bytes;
}

void probe_radio_sample(void)
{
	radio_sample();
}

/* Returns whether the driver is dequeuing: a frame that is freed now is CoDel's drop. */
bool probe_radio_dequeues(void)
{
	return radio_dequeues;
}

/* Returns whether @skb, with its packet at @offset, is an 802.11 frame from mac80211's queue. */
bool probe_radio_queued(const struct sk_buff *skb, int offset, const struct net_device *dev)
{
	const struct ieee80211_tx_info *info = (const void *)skb->cb;

	return offset > ETH_HLEN && dev->ieee80211_ptr && info->control.enqueue_time;
}

int probe_radio_start(void)
{
	return register_trace_radio_taken(probe_radio_taken, NULL)	   ?:
		       register_trace_radio_sent(probe_radio_sent, NULL)	   ?:
		       register_trace_radio_arrived(probe_radio_arrived, NULL)	   ?:
		       register_trace_radio_given(probe_radio_given, NULL)	   ?:
		       register_trace_radio_missed(probe_radio_missed, NULL)	   ?:
		       register_trace_radio_lost(probe_radio_lost, NULL)	   ?:
		       register_trace_radio_dropped(probe_radio_dropped, NULL)	   ?:
		       register_trace_radio_sampled(probe_radio_sampled, NULL);
}
