// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arrival: frames that were received wait for the interrupt, then mac80211 has them.
 *
 * The interrupt comes rx_last_us after the last frame, or rx_first_us after the
 * first, whichever is earlier; a completion of the same radio's transmission serves
 * received frames too. Reordering, and duplicates, are mac80211's.
 * The receiver gets a copy that has no owner: the sender's frame is alive, and counts
 * against its socket, until its own completion.
 * Source: Linux 6.1, drivers/net/wireless/ath/ath9k/hw.c (AR_RIMT).
 */
#include <linux/etherdevice.h>
#include "radio.h"
#include "radio_trace.h"

bool radio_rx_answers(const struct radio_phy *phy, const struct sk_buff *skb)
{
	const struct ieee80211_hdr *header = (const void *)skb->data;
	const struct radio_vif *vif;

	list_for_each_entry(vif, &phy->vifs, list)
		if (ether_addr_equal(header->addr1, vif->address))
			return true;
	return false;
}

bool radio_rx_wants(const struct radio_phy *phy, const struct sk_buff *skb)
{
	const struct ieee80211_hdr *header = (const void *)skb->data;

	return is_multicast_ether_addr(header->addr1) || phy->monitor ||
		radio_rx_answers(phy, skb);
}

/* Whether both have the same primary channel. */
bool radio_rx_tuned(const struct radio_phy *phy, const struct radio_phy *to)
{
	const struct ieee80211_channel *ours = phy->hw->conf.chandef.chan;
	const struct ieee80211_channel *theirs = to->hw->conf.chandef.chan;

	return ours && theirs && ours->center_freq == theirs->center_freq;
}

/* dBm over -91: thermal noise and the receiver's own at 20 MHz. */
s8 radio_rx_signal(const struct radio_phy *phy)
{
	return clamp_t(s64, -91 + div_s64(phy->params.snr_cdb, 100), -100, -20);
}

static void radio_rx_status(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			    struct ieee80211_rx_status *status)
{
	static const u8 widths[] = { RATE_INFO_BW_20, RATE_INFO_BW_40,
				     RATE_INFO_BW_80, RATE_INFO_BW_160 };
	const struct radio_rate *rate = &ppdu->rates[ppdu->series];

	memset(status, 0, sizeof(*status));
	status->mactime = div_u64(ppdu->start_ns, NSEC_PER_USEC);
	status->flag = RX_FLAG_MACTIME_START;
	status->freq = phy->hw->conf.chandef.chan->center_freq;
	status->band = phy->hw->conf.chandef.chan->band;
	status->signal = radio_rx_signal(phy);
	status->nss = rate->streams;
	status->bw = widths[rate->width];
	status->rate_idx = rate->mcs;
	switch (rate->mode) {
	case RADIO_LEGACY:
		if (status->band == NL80211_BAND_2GHZ)
			status->rate_idx += 4;
		break;
	case RADIO_HT:
		status->encoding = RX_ENC_HT;
		status->rate_idx += 8 * (rate->streams - 1);
		break;
	case RADIO_VHT:
		status->encoding = RX_ENC_VHT;
		break;
	default:
		status->encoding = RX_ENC_HE;
		status->he_gi = rate->gi;
	}
	if (rate->gi && rate->mode != RADIO_HE)
		status->enc_flags = RX_ENC_FLAG_SHORT_GI;
	if (ppdu->count > 1) {
		status->flag |= RX_FLAG_AMPDU_DETAILS | RX_FLAG_AMPDU_LAST_KNOWN;
		status->ampdu_reference = phy->ampdu_reference;
	}
}

static void radio_rx_mpdu(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			  const struct radio_mpdu *mpdu)
{
	struct sk_buff *copy = skb_copy(mpdu->skb, GFP_ATOMIC);

	if (!copy)
		return;
	skb_scrub_packet(copy, true);
	copy->dev = NULL;
	copy->priority = 0;
	copy->queue_mapping = 0;
	copy->truesize = max_t(int, copy->truesize,
			       SKB_TRUESIZE(phy->chip->rx_buffer));
	copy->ip_summed = CHECKSUM_NONE;
	radio_rx_status(phy, ppdu, IEEE80211_SKB_RXCB(copy));
	if (list_is_last(&mpdu->list, &ppdu->mpdus))
		IEEE80211_SKB_RXCB(copy)->flag |= ppdu->count > 1 ?
						  RX_FLAG_AMPDU_IS_LAST : 0;
	__skb_queue_tail(&phy->arrived, copy);
	phy->stats.rx_mpdus++;
}

static void radio_rx_account(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			     const u8 *sender)
{
	u64 air = ppdu->end_ns - ppdu->start_ns;
	struct ieee80211_sta *sta;

	phy->stats.rx_ppdus++;
	phy->stats.rx_ns += air;
	rcu_read_lock();
	sta = ieee80211_find_sta_by_ifaddr(phy->hw, sender, NULL);
	if (sta && ppdu->queue->ac < IEEE80211_NUM_ACS) {
		struct radio_mpdu *mpdu = list_first_entry(&ppdu->mpdus,
							   struct radio_mpdu, list);

		radio_station(sta)->rx_ns[ppdu->queue->ac] += air;
		if (phy->params.fair && mpdu->tid)
			ieee80211_sta_register_airtime(sta, mpdu->tid->tid, 0,
						       div_u64(air, NSEC_PER_USEC));
	}
	rcu_read_unlock();
}

/* A PPDU arrives with its last bit at @arrival_ns. */
void radio_rx_ppdu(struct radio_phy *phy, struct radio_ppdu *ppdu, u64 arrival_ns)
{
	const struct radio_params *params = &phy->params;
	bool waiting = !skb_queue_empty(&phy->arrived);
	struct radio_mpdu *mpdu;
	u64 due;

	phy->ampdu_reference++;
	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	radio_rx_account(phy, ppdu,
			 ((struct ieee80211_hdr *)mpdu->skb->data)->addr2);
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		if (!mpdu->acked) {
			phy->stats.rx_errors++;
			continue;
		}
		radio_rx_mpdu(phy, ppdu, mpdu);
		trace_radio_arrived(phy, ppdu, mpdu, arrival_ns);
	}
	if (skb_queue_empty(&phy->arrived))
		return;
	if (!waiting)
		phy->rx_first_ns = arrival_ns;
	phy->rx_last_ns = arrival_ns;
	due = min(phy->rx_first_ns + params->rx_first_us * NSEC_PER_USEC,
		  arrival_ns + params->rx_last_us * NSEC_PER_USEC);
	radio_timer_set(&phy->rx_interrupt, due);
}

/* Gives all that has arrived to mac80211. In a bottom half. */
void radio_rx_drain(struct radio_phy *phy)
{
	struct sk_buff_head frames;
	struct sk_buff *skb;

	if (skb_queue_empty(&phy->arrived) || phy->rx_last_ns > ktime_get_ns())
		return;
	__skb_queue_head_init(&frames);
	skb_queue_splice_init(&phy->arrived, &frames);
	hrtimer_try_to_cancel(&phy->rx_interrupt);
	phy->stats.rx_interrupts++;
	trace_radio_interrupt(phy);
	rcu_read_lock();
	while ((skb = __skb_dequeue(&frames)))
		ieee80211_rx_napi(phy->hw, NULL, skb, NULL);
	rcu_read_unlock();
}

static enum hrtimer_restart radio_rx_interrupt(struct hrtimer *timer)
{
	radio_rx_drain(container_of(timer, struct radio_phy, rx_interrupt));
	return HRTIMER_NORESTART;
}

void radio_rx_setup(struct radio_phy *phy)
{
	__skb_queue_head_init(&phy->arrived);
	radio_timer_setup(&phy->rx_interrupt, radio_rx_interrupt);
}

/* The radio stops. */
void radio_rx_flush(struct radio_phy *phy)
{
	hrtimer_cancel(&phy->rx_interrupt);
	local_bh_disable();
	trace_radio_missed(phy);
	__skb_queue_purge(&phy->arrived);
	local_bh_enable();
}
