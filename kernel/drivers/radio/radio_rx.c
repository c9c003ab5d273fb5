// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reception: received frames wait for the interrupt, then mac80211 gets them.
 *
 *	PPDU   |preamble|  1  |  2  | ... | 24  | 25  | ... | 32  |
 *	first           |-----.-- rx_first_us --.---|  interrupt: 1 to 24
 *	last                                              |- rx_last_us -|  25 to 32
 *
 * A frame of an aggregate arrives with its own last bit: the chip writes it to memory during the
 * rest of the PPDU. The chip of `generic` reports once per PPDU, with its last bit, like
 * ath10k's firmware (htt_rx.c, ath10k_htt_rx_proc_rx_ind). The interrupt comes rx_last_us after
 * the last frame or rx_first_us after the first, whichever is earlier. A transmit completion of
 * the same radio also delivers received frames. mac80211 reorders frames and drops duplicates.
 *
 * The receiver gets a copy without an owner: the sender's frame exists, and is charged to its
 * socket, until its completion. The copy is as large as the chip's buffer (struct
 * radio_personality), which determines the charge to the receiver's socket.
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

/* Returns whether both have the same primary channel. */
bool radio_rx_tuned(const struct radio_phy *phy, const struct radio_phy *to)
{
	const struct ieee80211_channel *channel = phy->hw->conf.chandef.chan;
	const struct ieee80211_channel *peer_channel = to->hw->conf.chandef.chan;

	return channel && peer_channel && channel->center_freq == peer_channel->center_freq;
}

/* Returns the signal in dBm: @phy's SNR over -91 dBm, the noise at 20 MHz (thermal and
 * receiver).
 */
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

/* Returns the chip driver's copy of @skb; NULL if memory is short. */
static struct sk_buff *radio_rx_copy(const struct radio_phy *phy, const struct sk_buff *skb)
{
	u32 buffer = phy->chip->rx_buffer ?: skb->len + phy->chip->rx_header;
	struct sk_buff *copy = dev_alloc_skb(max(buffer, skb->len));

	if (copy)
		skb_copy_bits(skb, 0, skb_put(copy, skb->len), skb->len);
	return copy;
}

static void radio_rx_mpdu(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			  struct radio_mpdu *mpdu, u64 arrival_ns)
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
	trace_radio_arrived(phy, ppdu, mpdu, copy, arrival_ns);
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

/* Returns when a frame of the current PPDU is in @phy's memory. */
static u64 radio_rx_arrival(const struct radio_phy *phy, const struct radio_mpdu *mpdu)
{
	const struct radio_ppdu *ppdu = phy->heard;
	u64 end = phy->chip->rx_per_ppdu ? ppdu->end_ns : mpdu->end_ns;

	return end + ppdu->queue->phy->params.propagation_ns;
}

static u64 radio_rx_due(const struct radio_phy *phy, u64 first_ns, u64 last_ns)
{
	return min(first_ns + phy->params.rx_first_us * NSEC_PER_USEC,
		   last_ns + phy->params.rx_last_us * NSEC_PER_USEC);
}

/* Sets the timer of the next interrupt, by arrived and expected frames. */
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

/* Takes the frames of the current PPDU that arrive by @until_ns. */
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
		radio_rx_mpdu(phy, ppdu, phy->heard_next, arrival);
	}
}

/* Begins reception of a PPDU at @phy. Its losses are already drawn. */
void radio_rx_begin(struct radio_phy *phy, struct radio_ppdu *ppdu)
{
	struct radio_mpdu *first = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);

	phy->ampdu_reference++;
	phy->heard = ppdu;
	phy->heard_next = first;
	radio_rx_account(phy, ppdu, ((struct ieee80211_hdr *)first->skb->data)->addr2);
	radio_rx_arm(phy);
}

/* Ends reception: the exchange is over, or the radio leaves the channel. */
void radio_rx_end(struct radio_phy *phy)
{
	radio_rx_take(phy, ktime_get_ns());
	phy->heard = NULL;
	radio_rx_arm(phy);
}

/* Gives all arrived frames to mac80211, in a bottom half. */
void radio_rx_drain(struct radio_phy *phy)
{
	radio_rx_take(phy, ktime_get_ns());
	if (skb_queue_empty(&phy->cpu.received)) {
		if (skb_queue_empty(&phy->arrived))
			return;
		skb_queue_splice_init(&phy->arrived, &phy->cpu.received);
		radio_rx_arm(phy);
		phy->stats.rx_interrupts++;
	}
	radio_cpu_receive(phy);
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

/* Drops the received frames of a queue, since the radio stops. */
void radio_rx_purge(const struct radio_phy *phy, struct sk_buff_head *queue)
{
	struct sk_buff *copy;

	while ((copy = __skb_dequeue(queue))) {
		trace_radio_missed(phy, copy);
		kfree_skb(copy);
	}
}

/* Ends reception, and drops the frames that wait for the interrupt: the radio stops. */
void radio_rx_flush(struct radio_phy *phy)
{
	local_bh_disable();
	phy->heard = NULL;
	local_bh_enable();
	hrtimer_cancel(&phy->rx_interrupt);
	local_bh_disable();
	radio_rx_purge(phy, &phy->arrived);
	local_bh_enable();
}
