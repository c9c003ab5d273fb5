// SPDX-License-Identifier: GPL-2.0-only
/*
 * Aggregation: the frames of a station's TID that are sent together, and its window.
 *
 * Frames of a block ack session have sequence numbers from mac80211. The window [seq_first,
 * seq_first + window) begins at the first frame that is neither acknowledged nor given up. A
 * frame beyond the window waits in `retry`, next to the frames for retransmission. An aggregate
 * takes frames from `retry` first, then from above (mac80211's TXQ, or the firmware's queue). It
 * ends where the next frame would exceed a limit: the personality's number of frames, the peer's
 * bytes, or the time on the air. That frame returns to `retry`. A single frame is no aggregate:
 * it is sent and acknowledged as an MPDU.
 *
 * Source: drivers/net/wireless/ath/ath9k/xmit.c of Linux 6.1 for the rules and their
 * order (ath_tx_sched_aggr, ath_tx_form_aggr); IEEE 802.11-2020, 10.25.
 * Left out: A-MSDU, fragments.
 */
#include <linux/slab.h>
#include "radio.h"

#define RADIO_SEQ_MASK	0xfff

static bool radio_within(u16 first, u16 size, u16 seq)
{
	return ((seq - first) & RADIO_SEQ_MASK) < size;
}

bool radio_tid_within(const struct radio_tid *tid, u16 seq)
{
	return radio_within(tid->seq_first, tid->window, seq);
}

void radio_tid_setup(struct radio_tid *tid, struct radio_queue *queue,
		     struct ieee80211_sta *sta, u8 number)
{
	tid->queue = queue;
	tid->sta = sta;
	tid->tid = number;
	tid->bar = RADIO_NO_BAR;
	INIT_LIST_HEAD(&tid->retry);
	INIT_LIST_HEAD(&tid->pending);
	INIT_LIST_HEAD(&tid->list);
}

/* Returns the TID of @skb; NULL for management frames and multicast. */
struct radio_tid *radio_tid_of(struct radio_phy *phy, struct ieee80211_sta *sta,
			       struct sk_buff *skb)
{
	struct ieee80211_hdr *header = (struct ieee80211_hdr *)skb->data;

	if (!sta || !ieee80211_is_data_qos(header->frame_control))
		return NULL;
	return &radio_station(sta)->tids[ieee80211_get_tid(header)];
}

void radio_tid_start(struct radio_tid *tid, u16 ssn)
{
	tid->active = true;
	tid->seq_first = ssn;
	tid->seq_next = ssn;
	tid->window = IEEE80211_MIN_AMPDU_BUF;
	tid->bar = RADIO_NO_BAR;
	bitmap_zero(tid->done, ARRAY_SIZE(tid->done) * BITS_PER_LONG);
}

/* Removes the frame from the window. */
void radio_tid_done(struct radio_tid *tid, struct radio_mpdu *mpdu)
{
	u16 size = ARRAY_SIZE(tid->done) * BITS_PER_LONG;

	if (!tid->active || !radio_tid_within(tid, mpdu->seq))
		return;
	set_bit(mpdu->seq % size, tid->done);
	while (tid->seq_first != tid->seq_next &&
	       test_and_clear_bit(tid->seq_first % size, tid->done))
		tid->seq_first = (tid->seq_first + 1) & RADIO_SEQ_MASK;
}

static struct radio_mpdu *radio_tid_take(struct radio_tid *tid,
					 struct ieee80211_txq *txq)
{
	struct list_head *from = list_empty(&tid->retry) ? &tid->pending : &tid->retry;
	struct radio_mpdu *mpdu;

	mpdu = list_first_entry_or_null(from, struct radio_mpdu, list);
	if (mpdu) {
		list_del_init(&mpdu->list);
		return mpdu;
	}
	return txq ? radio_dequeue(tid, txq) : NULL;
}

/* Returns the next frame for transmission; NULL if none is queued, or the window is full. */
static struct radio_mpdu *radio_tid_next(struct radio_tid *tid,
					 struct ieee80211_txq *txq)
{
	struct radio_mpdu *mpdu, *parked = NULL;

	while ((mpdu = radio_tid_take(tid, txq))) {
		mpdu->ampdu = mpdu->ampdu && tid->active;
		if (!mpdu->ampdu)
			return mpdu;
		if (radio_tid_within(tid, mpdu->seq)) {
			if (!radio_within(tid->seq_first,
					  (tid->seq_next - tid->seq_first) & RADIO_SEQ_MASK,
					  mpdu->seq))
				tid->seq_next = (mpdu->seq + 1) & RADIO_SEQ_MASK;
			return mpdu;
		}
		/* older frames may follow it */
		list_add_tail(&mpdu->list, &tid->retry);
		if (list_is_singular(&tid->retry) || mpdu == parked)
			return NULL;
		if (!parked)
			parked = mpdu;
	}
	return NULL;
}

/* Returns the maximum A-MPDU length of the peer. */
static u32 radio_peer_bytes(const struct ieee80211_sta *sta, u8 mode)
{
	const struct ieee80211_link_sta *caps = radio_link(sta);
	u32 exponent;

	if (mode <= RADIO_HT)
		return min((1U << (13 + caps->ht_cap.ampdu_factor)) - 1, 65535U);
	exponent = (caps->vht_cap.cap &
		    IEEE80211_VHT_CAP_MAX_A_MPDU_LENGTH_EXPONENT_MASK) >>
		   IEEE80211_VHT_CAP_MAX_A_MPDU_LENGTH_EXPONENT_SHIFT;
	if (mode == RADIO_HE)
		exponent += caps->he_cap.he_cap_elem.mac_cap_info[3] >> 3 & 3;
	return (1U << (13 + exponent)) - 1;
}

static u32 radio_limit_bytes(const struct radio_ppdu *ppdu)
{
	const struct radio_params *params = &ppdu->queue->phy->params;
	u64 ns = params->max_airtime_us * NSEC_PER_USEC;
	u32 limit = U32_MAX;
	unsigned int i;

	if (ppdu->queue->edca.txop_ns)
		ns = min(ns, ppdu->queue->edca.txop_ns);
	for (i = 0; i < IEEE80211_TX_MAX_RATES && ppdu->tries[i]; i++) {
		limit = min(limit, radio_peer_bytes(ppdu->sta, ppdu->rates[i].mode));
		limit = min(limit, radio_ppdu_bytes(&ppdu->rates[i], ns));
	}
	return limit;
}

static bool radio_ampdu_single(const struct radio_mpdu *mpdu)
{
	return !mpdu->ampdu || IEEE80211_SKB_CB(mpdu->skb)->flags &
	       IEEE80211_TX_CTL_RATE_CTRL_PROBE;
}

/* Adds frames to @ppdu, which has one, up to the limits. */
static void radio_ampdu_fill(struct radio_ppdu *ppdu, struct radio_tid *tid,
			     struct ieee80211_txq *txq)
{
	const struct radio_phy *phy = ppdu->queue->phy;
	const struct radio_rate *rate = &ppdu->rates[0];
	struct radio_mpdu *mpdu;
	u32 limit, frames, padded, bytes, pad;

	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	if (radio_ampdu_single(mpdu) || rate->mode <= RADIO_LEGACY)
		return;
	limit = radio_limit_bytes(ppdu);
	frames = min_t(u32, phy->params.max_subframes, tid->window);
	bytes = RADIO_DELIMITER + mpdu->bytes;
	mpdu->part_bytes = bytes;
	while (ppdu->count < frames) {
		padded = radio_subframe_bytes(rate, mpdu->bytes,
					      phy->chip->min_bytes,
					      phy->chip->density_us);
		pad = padded - RADIO_DELIMITER - mpdu->bytes;
		mpdu = radio_tid_next(tid, txq);
		if (!mpdu)
			break;
		if (bytes + pad + RADIO_DELIMITER + mpdu->bytes > limit ||
		    radio_ampdu_single(mpdu)) {
			list_add_tail(&mpdu->list, &tid->retry);
			break;
		}
		bytes += pad + RADIO_DELIMITER + mpdu->bytes;
		mpdu->part_bytes = bytes;
		list_add_tail(&mpdu->list, &ppdu->mpdus);
		ppdu->count++;
	}
	if (ppdu->count > 1) {
		ppdu->bytes = bytes;
		ppdu->ack = RADIO_BLOCK_ACK;
	}
}

/*
 * Sends one PPDU of the TID. Returns -EBUSY if the hardware is full, and -ENOENT if no frame is
 * queued or the window is full.
 */
int radio_tid_schedule(struct radio_tid *tid, struct ieee80211_txq *txq)
{
	struct radio_queue *queue = tid->queue;
	struct radio_phy *phy = queue->phy;
	struct radio_ppdu *ppdu;
	struct radio_mpdu *mpdu = radio_tid_next(tid, txq);

	if (!mpdu)
		return -ENOENT;
	if (mpdu->ampdu ? queue->aggregates >= phy->params.depth :
			  queue->aggregates + queue->singles >= phy->chip->singles) {
		list_add_tail(&mpdu->list, &tid->retry);
		return -EBUSY;
	}
	ppdu = radio_ppdu_make(queue, tid->sta, mpdu);
	if (!ppdu)
		return -ENOMEM;
	radio_ampdu_fill(ppdu, tid, txq);
	ppdu->ampdu = mpdu->ampdu;
	/* minstrel's probes do not count: bf_is_ampdu_not_probing() */
	ppdu->counted = mpdu->ampdu && !radio_ampdu_single(mpdu);
	if (phy->params.rts_bytes && ppdu->bytes > phy->params.rts_bytes &&
	    ppdu->ack != RADIO_NO_ACK)
		ppdu->rts = U8_MAX;
	radio_medium_enqueue(ppdu);
	return 0;
}

int radio_ampdu_action(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
		       struct ieee80211_ampdu_params *action)
{
	struct radio_tid *tid = &radio_station(action->sta)->tids[action->tid];

	switch (action->action) {
	case IEEE80211_AMPDU_RX_START:
	case IEEE80211_AMPDU_RX_STOP:
		return 0;
	case IEEE80211_AMPDU_TX_START:
		local_bh_disable();
		radio_tid_start(tid, action->ssn);
		local_bh_enable();
		return IEEE80211_AMPDU_TX_START_IMMEDIATE;
	case IEEE80211_AMPDU_TX_OPERATIONAL:
		tid->window = clamp_t(u16, action->buf_size, 1, RADIO_SUBFRAMES);
		return 0;
	case IEEE80211_AMPDU_TX_STOP_CONT:
	case IEEE80211_AMPDU_TX_STOP_FLUSH:
	case IEEE80211_AMPDU_TX_STOP_FLUSH_CONT:
		tid->active = false;
		tid->ba_requested = false;
		ieee80211_stop_tx_ba_cb_irqsafe(vif, action->sta->addr, action->tid);
		return 0;
	}
	return -EOPNOTSUPP;
}
