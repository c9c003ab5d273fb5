// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transmitted frames: completion, retransmission and status reports.
 *
 * The order at the end of a PPDU is ath9k's (ath_tx_complete_aggr, Linux 6.1):
 *	1. frames for retransmission return to their TID
 *	2. a BAR is sent if a frame of a session was given up
 *	3. the hardware is refilled from the queues above
 *	4. completed frames are reported and freed, which wakes TCP Small Queues; data that
 *	   TCP then sends comes after the refill
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include "radio.h"
#include "radio_trace.h"

/* Returns a radio_mpdu for a frame of mac80211; frees @skb and returns NULL if memory is short. */
struct radio_mpdu *radio_mpdu_make(struct radio_phy *phy, struct radio_tid *tid,
				   struct sk_buff *skb)
{
	struct ieee80211_hdr *header = (struct ieee80211_hdr *)skb->data;
	struct radio_mpdu *mpdu = kzalloc(sizeof(*mpdu), GFP_ATOMIC);

	if (!mpdu) {
		phy->stats.tx_no_memory++;
		ieee80211_free_txskb(phy->hw, skb);
		return NULL;
	}
	INIT_LIST_HEAD(&mpdu->list);
	mpdu->skb = skb;
	mpdu->tid = tid;
	mpdu->bytes = skb->len + RADIO_FCS;
	mpdu->taken_ns = ktime_get_ns();
	mpdu->ampdu = tid && IEEE80211_SKB_CB(skb)->flags & IEEE80211_TX_CTL_AMPDU;
	if (!ieee80211_is_ctl(header->frame_control))
		mpdu->seq = IEEE80211_SEQ_TO_SN(le16_to_cpu(header->seq_ctrl));
	phy->unreported++;
	phy->unreported_bytes += mpdu->bytes;
	trace_radio_taken(mpdu);
	return mpdu;
}

/* Frees a radio_mpdu. The caller has taken its skb. */
void radio_mpdu_free(struct radio_phy *phy, struct radio_mpdu *mpdu)
{
	phy->unreported--;
	phy->unreported_bytes -= mpdu->bytes;
	kfree(mpdu);
}

static enum radio_ack radio_ack_of(struct sk_buff *skb)
{
	const struct ieee80211_hdr *header = (const void *)skb->data;

	if (is_multicast_ether_addr(header->addr1) ||
	    IEEE80211_SKB_CB(skb)->flags & IEEE80211_TX_CTL_NO_ACK)
		return RADIO_NO_ACK;
	return ieee80211_is_back_req(header->frame_control) ? RADIO_BLOCK_ACK :
							      RADIO_NORMAL_ACK;
}

/* Returns a PPDU of one frame; frees the frame and returns NULL if memory is short. */
struct radio_ppdu *radio_ppdu_make(struct radio_queue *queue,
				   struct ieee80211_sta *sta,
				   struct radio_mpdu *first)
{
	struct radio_ppdu *ppdu = kzalloc(sizeof(*ppdu), GFP_ATOMIC);

	if (!ppdu) {
		LIST_HEAD(dropped);

		list_add(&first->list, &dropped);
		queue->phy->stats.tx_no_memory++;
		radio_discard(queue->phy, &dropped);
		return NULL;
	}
	INIT_LIST_HEAD(&ppdu->list);
	INIT_LIST_HEAD(&ppdu->mpdus);
	list_add_tail(&first->list, &ppdu->mpdus);
	ppdu->queue = queue;
	ppdu->sta = sta;
	ppdu->count = 1;
	ppdu->ack = radio_ack_of(first->skb);
	radio_ppdu_rates(ppdu, first->skb);
	ppdu->bytes = first->bytes;
	/* since 802.11ac even a single frame has a delimiter */
	if (ppdu->rates[0].mode >= RADIO_VHT)
		ppdu->bytes += RADIO_DELIMITER;
	return ppdu;
}

/* Sends a single frame. */
bool radio_ppdu_send(struct radio_queue *queue, struct ieee80211_sta *sta,
		     struct radio_mpdu *mpdu)
{
	struct radio_ppdu *ppdu = radio_ppdu_make(queue, sta, mpdu);

	if (!ppdu)
		return false;
	radio_medium_enqueue(ppdu);
	return true;
}

/* Adds a hash of the PPDU's start, length and headers to the digest, like wire. */
void radio_digest(struct radio_phy *phy, const struct radio_ppdu *ppdu)
{
	const struct radio_mpdu *mpdu;
	u64 digest = 0xcbf29ce484222325ULL;

	digest = (digest ^ ppdu->start_ns) * 0x100000001b3ULL;
	digest = (digest ^ ppdu->bytes) * 0x100000001b3ULL;
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		u8 head[64] __aligned(8) = {};
		const u64 *blocks = (const u64 *)head;
		unsigned int i;

		memcpy(head, mpdu->skb->data,
		       min_t(u32, skb_headlen(mpdu->skb), sizeof(head)));
		for (i = 0; i < sizeof(head) / sizeof(*blocks); i++)
			digest = ((digest ^ blocks[i]) * 0x100000001b3ULL) ^
				 (digest >> 29);
	}
	phy->stats.tx_digest += digest;
}

/* Frees frames without a report. */
void radio_discard(struct radio_phy *phy, struct list_head *mpdus)
{
	struct radio_mpdu *mpdu, *next;

	list_for_each_entry_safe(mpdu, next, mpdus, list) {
		struct sk_buff *skb = mpdu->skb;

		list_del(&mpdu->list);
		trace_radio_dropped(mpdu, "discarded");
		radio_mpdu_free(phy, mpdu);
		ieee80211_free_txskb(phy->hw, skb);
	}
}

static void radio_count(struct radio_phy *phy, const struct radio_ppdu *ppdu)
{
	struct radio_stats *stats = &phy->stats;

	phy->histogram[min_t(u32, ppdu->count, RADIO_SUBFRAMES)]++;
	if (ppdu->queue->ac == RADIO_BEACONS)
		stats->tx_beacons++;
	else if (ppdu->count > 1)
		stats->tx_aggregates++;
	else
		stats->tx_singles++;
	stats->tx_mpdus += ppdu->count;
}

/* Requests a block ack session after the first acknowledged frame. */
static void radio_session(struct radio_phy *phy, struct radio_ppdu *ppdu,
			  const struct radio_mpdu *mpdu)
{
	struct radio_tid *tid = mpdu->tid;

	if (!ppdu->sta || !tid || !tid->sta || tid->active || tid->ba_requested ||
	    !mpdu->acked || phy->params.mcs == RADIO_MINSTREL ||
	    ppdu->queue->ac == IEEE80211_AC_VO ||
	    ppdu->rates[0].mode <= RADIO_LEGACY ||
	    mpdu->skb->protocol == cpu_to_be16(ETH_P_PAE))
		return;
	tid->ba_requested = !ieee80211_start_tx_ba_session(ppdu->sta, tid->tid, 0);
}

/*
 * Returns whether software retransmits a frame without acknowledgment. The limit applies to the
 * tries before this PPDU (ath_tx_complete_aggr), so up to hw_tries more are possible.
 */
static bool radio_again(const struct radio_ppdu *ppdu, const struct radio_mpdu *mpdu)
{
	return mpdu->ampdu && mpdu->tid && mpdu->tid->active &&
		radio_tid_within(mpdu->tid, mpdu->seq) &&
		mpdu->tries - ppdu->sent < ppdu->queue->phy->params.sw_tries;
}

/* Sorts the frames of a PPDU into completed frames and frames for retransmission. */
static void radio_sort(struct radio_phy *phy, struct radio_ppdu *ppdu,
		       struct list_head *done, struct list_head *retry)
{
	struct radio_stats *stats = &phy->stats;
	struct radio_mpdu *mpdu, *next;
	bool first = true;
	u32 acked = 0;

	list_for_each_entry(mpdu, &ppdu->mpdus, list)
		acked += mpdu->acked;
	stats->tx_acked += acked;
	list_for_each_entry_safe(mpdu, next, &ppdu->mpdus, list) {
		if (!mpdu->acked && ppdu->ack != RADIO_NO_ACK) {
			stats->tx_failed++;
			if (radio_again(ppdu, mpdu)) {
				stats->tx_retries++;
				list_move_tail(&mpdu->list, retry);
				continue;
			}
			stats->tx_dropped++;
			trace_radio_lost(mpdu, "retry limit");
			if (mpdu->ampdu && mpdu->tid && mpdu->tid->active)
				mpdu->tid->bar = (mpdu->seq + 1) & 0xfff;
		}
		if (mpdu->skb->sk) {
			stats->tx_truesize += mpdu->skb->truesize;
			stats->tx_truesize_mpdus++;
		}
		if (mpdu->ampdu && mpdu->tid)
			radio_tid_done(mpdu->tid, mpdu);
		radio_session(phy, ppdu, mpdu);
		radio_status(phy, ppdu, mpdu, acked, first);
		first = false;
		list_move_tail(&mpdu->list, done);
	}
}

static void radio_bar(struct radio_phy *phy, struct radio_tid *tid,
		      struct ieee80211_vif *vif)
{
	u32 bar = tid->bar;

	if (bar == RADIO_NO_BAR)
		return;
	tid->bar = RADIO_NO_BAR;
	phy->stats.tx_bars++;
	/* the header's format: above the fragment number */
	ieee80211_send_bar(vif, tid->sta->addr, tid->tid, IEEE80211_SN_TO_SEQ(bar));
}

static void radio_airtime(struct radio_phy *phy, struct radio_ppdu *ppdu, u8 tid)
{
	if (ppdu->queue->ac >= IEEE80211_NUM_ACS)
		return;
	radio_station(ppdu->sta)->tx_ns[ppdu->queue->ac] += ppdu->air_ns;
	if (phy->params.fair)
		ieee80211_sta_register_airtime(ppdu->sta, tid,
					       div_u64(ppdu->air_ns, NSEC_PER_USEC), 0);
}

/* Completes the PPDU, in the order above. */
void radio_ppdu_complete(struct radio_ppdu *ppdu, bool answered)
{
	struct radio_queue *queue = ppdu->queue;
	struct radio_phy *phy = queue->phy;
	struct radio_mpdu *first = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	struct ieee80211_vif *vif = IEEE80211_SKB_CB(first->skb)->control.vif;
	struct radio_tid *tid = first->tid;
	struct radio_mpdu *mpdu;
	LIST_HEAD(retry);
	LIST_HEAD(done);

	if (!answered)
		list_for_each_entry(mpdu, &ppdu->mpdus, list)
			mpdu->acked = false;
	radio_count(phy, ppdu);
	rcu_read_lock();
	if (ppdu->sta && ieee80211_is_data(((struct ieee80211_hdr *)
					    first->skb->data)->frame_control))
		radio_station(ppdu->sta)->rate =
			ppdu->rates[min_t(u8, ppdu->series, IEEE80211_TX_MAX_RATES - 1)];
	if (ppdu->sta)
		radio_airtime(phy, ppdu, tid ? tid->tid : 0);
	radio_sort(phy, ppdu, &done, &retry);
	if (tid && !list_empty(&retry)) {
		list_splice_tail_init(&retry, &tid->retry);
		if (phy->chip->firmware)
			radio_firmware_add(tid, NULL);
		else
			ieee80211_schedule_txq(phy->hw, tid->sta->txq[tid->tid]);
	}
	if (tid && tid->sta)
		radio_bar(phy, tid, vif);
	kfree(ppdu);
	phy->chip->refill(queue);
	phy->chip->report(phy, &done);
	rcu_read_unlock();
	radio_rx_drain(phy);
}

/* Reports frames to mac80211 and frees them. */
void radio_report(struct radio_phy *phy, struct list_head *done)
{
	struct radio_mpdu *mpdu, *next;

	list_for_each_entry_safe(mpdu, next, done, list) {
		struct sk_buff *skb = mpdu->skb;
		struct ieee80211_hdr *header = (struct ieee80211_hdr *)skb->data;
		struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
		struct ieee80211_sta *sta = mpdu->tid ? mpdu->tid->sta : NULL;

		list_del(&mpdu->list);
		radio_mpdu_free(phy, mpdu);
		if (ieee80211_is_beacon(header->frame_control)) {
			dev_kfree_skb(skb);
		} else if (sta && phy->params.aql) {
			radio_status_priced(phy, sta, skb);
		} else if (!sta || phy->monitor ||
			   info->flags & IEEE80211_TX_CTL_REQ_TX_STATUS) {
			ieee80211_tx_status_skb(phy->hw, skb);
		} else {
			ieee80211_tx_status_noskb(phy->hw, sta, info);
			dev_kfree_skb(skb);
		}
	}
}
