// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: packets of radios, from mac80211's queue to its receive path.
 *
 * event	at					layer that ends
 * taken	the driver takes a frame from mac80211	txq
 * sent		its PPDU begins for the first time	ring, contention
 *		... once more				retry
 * arrived	its PPDU has ended			air, propagation
 * interrupt	mac80211 of the receiver has it		rx
 *
 * From `taken` to `arrived` a frame's radio_mpdu names the slot of its packet, and
 * nobody else may end that: of two equal packets (a retransmission) the later may
 * arrive first. Then the slot waits in its radio's list for the interrupt. In mac80211
 * it is found by what stands in it again (probe_path.c).
 */
#include <linux/etherdevice.h>
#include "radio_probe.h"

bool probe_dequeues;

static struct net_device *probe_radio_device(const struct radio_mpdu *mpdu)
{
	struct ieee80211_vif *vif = IEEE80211_SKB_CB(mpdu->skb)->control.vif;

	return vif ? ieee80211_vif_to_wdev(vif)->netdev : NULL;
}

void __radio_probe_taken(struct radio_mpdu *mpdu)
{
	const struct net_device *dev = probe_radio_device(mpdu);
	int node = dev ? probe_node(dev_net(dev)) : -1;
	int offset = probe_offset_80211(mpdu->skb);
	struct probe_packets packets;
	s64 now = mpdu->taken_ns;

	if (node < 0 || offset < 0 || !probe_parse(mpdu->skb, offset, &packets))
		return;
	mpdu->packet = probe_slot_find(probe_who(&packets), probe_what(&packets, 0),
				       PROBE_IN_TXQ, node, now);
	if (!mpdu->packet) {
		packets.watch->way[packets.way].unmatched++;
		return;
	}
	probe_slot_spend(mpdu->packet, HOP_TXQ, now);
	mpdu->packet->state = PROBE_IN_RADIO;
}

/* Into the capture of @dev: with the retry bit, as it is in the air. */
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
	record = probe_capture(mpdu->skb, dev, 0, t_ns, to, mpdu->packet, head, bytes);
	if (record && mpdu->tries > 1)
		record[bytes + 1] |= IEEE80211_FCTL_RETRY >> 8;
}

void __radio_probe_sent(struct radio_ppdu *ppdu)
{
	struct radio_mpdu *mpdu;

	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		const struct net_device *dev = probe_radio_device(mpdu);
		struct probe_slot *packet = mpdu->packet;

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

void __radio_probe_arrived(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			   struct radio_mpdu *mpdu, u64 arrival_ns)
{
	const struct ieee80211_hdr *header = (const void *)mpdu->skb->data;
	bool answers = radio_rx_answers(phy, mpdu->skb);
	struct probe_slot *packet = mpdu->packet;
	const struct radio_vif *ours;

	if (packet && answers) {
		probe_slot_spend(packet, HOP_AIR, ppdu->end_ns);
		probe_slot_spend(packet, HOP_PROPAGATION, arrival_ns);
	}
	list_for_each_entry(ours, &phy->vifs, list) {
		const struct net_device *dev = ieee80211_vif_to_wdev(ours->vif)->netdev;

		if (dev && probe_node(dev_net(dev)) >= 0 &&
		    (is_multicast_ether_addr(header->addr1) ||
		     ether_addr_equal(header->addr1, ours->address)))
			probe_radio_capture(ppdu, mpdu, dev, phy, arrival_ns);
	}
	if (!packet || !answers)
		return;
	list_add_tail(&packet->received, &phy->packets);
	mpdu->packet = NULL;
}

void __radio_probe_interrupt(struct radio_phy *phy)
{
	struct probe_slot *slot, *next;
	s64 now = ktime_get_ns();

	list_for_each_entry_safe(slot, next, &phy->packets, received) {
		list_del_init(&slot->received);
		probe_slot_spend(slot, HOP_RX, now);
		slot->state = PROBE_IN_MAC80211;
	}
}

void __radio_probe_lost(struct radio_mpdu *mpdu, enum probe_place place, const char *reason)
{
	probe_slot_drop(mpdu->packet, probe_radio_device(mpdu), place, reason);
	mpdu->packet = NULL;
}

void __radio_probe_missed(struct radio_phy *phy)
{
	const struct radio_vif *ours = list_first_entry_or_null(&phy->vifs, struct radio_vif, list);
	struct probe_slot *slot, *next;

	if (!ours)
		return;
	list_for_each_entry_safe(slot, next, &phy->packets, received)
		probe_slot_drop(slot, ieee80211_vif_to_wdev(ours->vif)->netdev, PROBE_AT_RX,
				"down");
}

static void probe_radio_add(struct ieee80211_txq *txq, struct probe_queue *held)
{
	unsigned long frames, bytes;

	if (!txq)
		return;
	ieee80211_txq_get_depth(txq, &frames, &bytes);
	held->txq_packets += frames;
	held->txq_bytes += bytes;
}

static void probe_radio_held(const struct radio_phy *phy, const struct radio_vif *ours,
			     struct probe_queue *held)
{
	const struct radio_station *station;
	unsigned int i;

	held->ring_skbs = phy->held;
	held->ring_bytes = phy->held_bytes;
	if (phy->chip->wake)
		probe_radio_add(ours->vif->txq, held);
	list_for_each_entry(station, &phy->stations, list)
		for (i = 0; phy->chip->wake && i < ARRAY_SIZE(station->sta->txq); i++)
			probe_radio_add(station->sta->txq[i], held);
}

/* Calls @each with what every radio's device holds: its fields txq_* and ring_*. */
void probe_radio_queues(void (*each)(const struct net_device *dev, const struct probe_queue *held,
				     void *context),
			void *context)
{
	struct radio_phy *phy = NULL;

	while ((phy = radio_phy_next(phy))) {
		const struct radio_vif *ours =
			list_first_entry_or_null(&phy->vifs, struct radio_vif, list);
		struct probe_queue held = {};

		if (!ours || !ieee80211_vif_to_wdev(ours->vif)->netdev)
			continue;
		probe_radio_held(phy, ours, &held);
		each(ieee80211_vif_to_wdev(ours->vif)->netdev, &held, context);
	}
}
