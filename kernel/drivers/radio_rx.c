// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arrival: frames that were received wait for the interrupt, then mac80211 has them.
 *
 *	PPDU   |preamble|  1  |  2  | ... | 24  | 25  | ... | 32  |
 *	first           |-----.-- rx_first_us --.---|  interrupt: 1 to 24
 *	last                                              |- rx_last_us -|  25 to 32
 *
 * A frame of an aggregate is there with its own last bit: the chip gives it to memory while
 * the rest is still in the air. (That of `generic` speaks once for a PPDU, with its last bit,
 * as ath10k's firmware: htt_rx.c, ath10k_htt_rx_proc_rx_ind.) The interrupt comes rx_last_us
 * after the last frame, or rx_first_us after the first, whichever is earlier; a completion
 * of the same radio's transmission serves received frames too. Reordering, and duplicates,
 * are mac80211's.
 *
 * The receiver gets a copy that has no owner: the sender's frame is alive, and counts
 * against its socket, until its own completion. The copy is as large as the chip's buffer is
 * (struct radio_personality), which is what the receiver's socket is charged.
 * Source: Linux 6.1, drivers/net/wireless/ath/ath9k/hw.c (AR_RIMT), recv.c (ath_rx_init).
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
	case RADIO_DSSS:
	case RADIO_LEGACY:
		status->rate_idx = radio_rate_index(phy, rate);
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

/* What the chip's driver has of @skb; NULL without memory. */
static struct sk_buff *radio_rx_copy(const struct radio_phy *phy, const struct sk_buff *skb)
{
	u32 buffer = phy->chip->rx_buffer ?: skb->len + phy->chip->rx_header;
	struct sk_buff *copy = dev_alloc_skb(max(buffer, skb->len));

	if (copy)
		skb_copy_bits(skb, 0, skb_put(copy, skb->len), skb->len);
	return copy;
}

static void radio_rx_mpdu(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			  const struct radio_mpdu *mpdu)
{
	struct sk_buff *copy = radio_rx_copy(phy, mpdu->skb);

	if (!copy)
		return;
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

/* When @phy has a frame of what it hears. */
static u64 radio_rx_arrival(const struct radio_phy *phy, const struct radio_mpdu *mpdu)
{
	const struct radio_ppdu *ppdu = phy->heard;
	u64 end = phy->chip->rx_whole ? ppdu->end_ns : mpdu->end_ns;

	return end + ppdu->queue->phy->params.propagation_ns;
}

static u64 radio_rx_due(const struct radio_phy *phy, u64 first_ns, u64 last_ns)
{
	return min(first_ns + phy->params.rx_first_us * NSEC_PER_USEC,
		   last_ns + phy->params.rx_last_us * NSEC_PER_USEC);
}

/* Sets the timer of the next interrupt, by what has arrived and what is about to. */
static void radio_rx_arm(struct radio_phy *phy)
{
	u64 first = phy->rx_first_ns, due = U64_MAX;
	struct radio_mpdu *mpdu = phy->heard_next;

	if (!skb_queue_empty(&phy->arrived))
		due = radio_rx_due(phy, first, phy->rx_last_ns);
	if (phy->heard)
		list_for_each_entry_from(mpdu, &phy->heard->mpdus, list) {
			u64 arrival = radio_rx_arrival(phy, mpdu);

			if (!mpdu->acked)
				continue;
			if (arrival > due)
				break;
			if (due == U64_MAX)
				first = arrival;
			due = radio_rx_due(phy, first, arrival);
		}
	if (due == U64_MAX)
		hrtimer_try_to_cancel(&phy->rx_interrupt);
	else
		radio_timer_set(&phy->rx_interrupt, due);
}

/* Takes the frames that are there until @until_ns of what is heard. */
static void radio_rx_take(struct radio_phy *phy, u64 until_ns)
{
	struct radio_ppdu *ppdu = phy->heard;

	if (!ppdu)
		return;
	list_for_each_entry_from(phy->heard_next, &ppdu->mpdus, list) {
		u64 arrival = radio_rx_arrival(phy, phy->heard_next);

		if (arrival > until_ns)
			return;
		if (!phy->heard_next->acked) {
			phy->stats.rx_errors++;
			continue;
		}
		if (skb_queue_empty(&phy->arrived))
			phy->rx_first_ns = arrival;
		phy->rx_last_ns = arrival;
		radio_rx_mpdu(phy, ppdu, phy->heard_next);
		trace_radio_arrived(phy, ppdu, phy->heard_next, arrival);
	}
}

/* A PPDU starts that @phy hears; it is drawn already which of its frames get lost. */
void radio_rx_begin(struct radio_phy *phy, struct radio_ppdu *ppdu)
{
	struct radio_mpdu *first = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);

	phy->ampdu_reference++;
	phy->heard = ppdu;
	phy->heard_next = first;
	radio_rx_account(phy, ppdu, ((struct ieee80211_hdr *)first->skb->data)->addr2);
	radio_rx_arm(phy);
}

/* The exchange of what @phy heard is over, or the radio turns to something else. */
void radio_rx_end(struct radio_phy *phy)
{
	radio_rx_take(phy, ktime_get_ns());
	phy->heard = NULL;
	radio_rx_arm(phy);
}

/* Gives all that has arrived to mac80211. In a bottom half. */
void radio_rx_drain(struct radio_phy *phy)
{
	struct sk_buff_head frames;
	struct sk_buff *skb;

	radio_rx_take(phy, ktime_get_ns());
	if (skb_queue_empty(&phy->arrived))
		return;
	__skb_queue_head_init(&frames);
	skb_queue_splice_init(&phy->arrived, &frames);
	radio_rx_arm(phy);
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
	local_bh_disable();
	phy->heard = NULL;
	local_bh_enable();
	hrtimer_cancel(&phy->rx_interrupt);
	local_bh_disable();
	trace_radio_missed(phy);
	__skb_queue_purge(&phy->arrived);
	local_bh_enable();
}
