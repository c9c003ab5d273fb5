// SPDX-License-Identifier: GPL-2.0-only
/*
 * Personalities whose frames come out of mac80211's TXQs.
 *
 * ath9k (AR9580 class, PCIe): the driver builds aggregates. Two are in the hardware:
 * one on the air, one ready; more wait in mac80211's FQ-CoDel. Each frame that is
 * put into a TXQ, and each aggregate that ends, makes the driver look: one aggregate
 * per TXQ and look. 32 frames at most, half of the window of 64.
 *
 * generic (mt76, ath10k class): the driver takes what mac80211's airtime queue limits
 * (AQL) let it take, and the hardware builds an aggregate when the one before is over, of
 * all that the window of the block ack lets it.
 *
 * Source: Linux 6.1, drivers/net/wireless/ath/ath9k/xmit.c (ath_txq_schedule),
 * ath9k.h, hw.c (interrupt mitigation); net/mac80211/tx.c (AQL).
 */
#include <net/codel.h>
#include "radio.h"

/* mac80211 is asked for a frame: what it frees meanwhile, CoDel drops. */
bool radio_dequeues;

/* The next frame of mac80211's queue. */
struct radio_mpdu *radio_dequeue(struct radio_tid *tid, struct ieee80211_txq *txq)
{
	struct radio_phy *phy = tid->queue->phy;
	struct radio_mpdu *mpdu;
	struct sk_buff *skb;

	do {
		codel_time_t since;

		radio_dequeues = true;
		skb = ieee80211_tx_dequeue(phy->hw, txq);
		radio_dequeues = false;
		if (!skb)
			return NULL;
		since = IEEE80211_SKB_CB(skb)->control.enqueue_time;
		mpdu = radio_mpdu_make(phy, tid, skb);
		if (mpdu)
			mpdu->txq_ns = (u64)(codel_get_time() - since) << CODEL_SHIFT;
	} while (!mpdu);
	return mpdu;
}

static struct radio_tid *radio_txq_tid(struct ieee80211_txq *txq)
{
	if (!txq->sta)
		return &radio_vif(txq->vif)->tid;
	return &radio_station(txq->sta)->tids[txq->tid % IEEE80211_NUM_TIDS];
}

static void radio_ath9k_refill(struct radio_queue *queue)
{
	struct ieee80211_hw *hw = queue->phy->hw;
	struct ieee80211_txq *txq;
	struct radio_tid *tid;

	if (queue->ac == RADIO_BEACONS || !queue->phy->running)
		return;
	rcu_read_lock();
	ieee80211_txq_schedule_start(hw, queue->ac);
	while ((txq = ieee80211_next_txq(hw, queue->ac))) {
		tid = radio_txq_tid(txq);
		radio_tid_schedule(tid, txq);
		ieee80211_return_txq(hw, txq, !list_empty(&tid->retry));
	}
	ieee80211_txq_schedule_end(hw, queue->ac);
	rcu_read_unlock();
}

static void radio_txq_wake(struct radio_phy *phy, struct ieee80211_txq *txq)
{
	phy->chip->refill(&phy->queues[txq->ac]);
}

/* Frames that come past the TXQs: management, above all. */
static void radio_direct_tx(struct radio_phy *phy, struct ieee80211_sta *sta,
			    struct sk_buff *skb)
{
	struct radio_mpdu *mpdu = radio_mpdu_make(phy, NULL, skb);

	if (mpdu)
		radio_ppdu_send(&phy->queues[skb_get_queue_mapping(skb) %
					     IEEE80211_NUM_ACS], sta, mpdu);
}

/* Puts a frame (NULL: those in `retry`) where the firmware finds it. */
void radio_firmware_add(struct radio_tid *tid, struct radio_mpdu *mpdu)
{
	if (mpdu)
		list_add_tail(&mpdu->list, &tid->pending);
	if (list_empty(&tid->list))
		list_add_tail(&tid->list, &tid->queue->tids);
}

/* Builds aggregates from what the firmware has, its TIDs taking turns. */
void radio_firmware_refill(struct radio_queue *queue)
{
	struct radio_tid *tid, *stuck = NULL;

	while (!queue->pausing && !list_empty(&queue->tids)) {
		int err;

		tid = list_first_entry(&queue->tids, struct radio_tid, list);
		if (tid == stuck)
			return;
		err = radio_tid_schedule(tid, NULL);
		if (err == -EBUSY)
			return;
		list_del_init(&tid->list);
		if (list_empty(&tid->retry) && list_empty(&tid->pending))
			continue;
		list_add_tail(&tid->list, &queue->tids);
		if (err && !stuck)
			stuck = tid;
		else if (!err)
			stuck = NULL;
	}
}

static void radio_generic_refill(struct radio_queue *queue)
{
	struct ieee80211_hw *hw = queue->phy->hw;
	struct ieee80211_txq *txq;
	struct radio_mpdu *mpdu;
	struct radio_tid *tid;

	if (queue->ac == RADIO_BEACONS || !queue->phy->running)
		return;
	rcu_read_lock();
	ieee80211_txq_schedule_start(hw, queue->ac);
	while ((txq = ieee80211_next_txq(hw, queue->ac))) {
		tid = radio_txq_tid(txq);
		while (ieee80211_txq_airtime_check(hw, txq) &&
		       (mpdu = radio_dequeue(tid, txq)))
			radio_firmware_add(tid, mpdu);
		ieee80211_return_txq(hw, txq, false);
	}
	ieee80211_txq_schedule_end(hw, queue->ac);
	radio_firmware_refill(queue);
	rcu_read_unlock();
}

/* A report gives airtime back, so that there may be more to take. */
static void radio_generic_report(struct radio_phy *phy, struct list_head *done)
{
	unsigned int i;

	radio_report(phy, done);
	for (i = 0; i < IEEE80211_NUM_ACS; i++)
		radio_generic_refill(&phy->queues[i]);
}

const struct radio_personality radio_ath9k = {
	.name = "ath9k",
	.least_bytes = 256,
	.density_us = 8,
	.others = 8,
	/* ath_rx_init(), ath_rxbuf_alloc(): half of 3,852, a status of 48, alignment of 63 */
	.rx_buffer = 2037,
	.rts_lowest = true,
	.params = {
		.rx_last_us = 500, .rx_first_us = 2000, .max_subframes = 32,
		.max_airtime_us = 4096, .depth = 2, .sw_tries = 30,
	},
	.refill = radio_ath9k_refill,
	.report = radio_report,
	.wake = radio_txq_wake,
	.tx = radio_direct_tx,
};

const struct radio_personality radio_generic = {
	.name = "generic",
	.firmware = true,
	.others = 8,
	/* mt76: fragments of 2,048, of which the skb has 320 at its end and 64 in front */
	.rx_buffer = 1664,
	.rx_whole = true,
	.params = {
		.max_airtime_us = 5484, .depth = 1, .sw_tries = 30, .aql = 1,
	},
	.refill = radio_generic_refill,
	.report = radio_generic_report,
	.wake = radio_txq_wake,
	.tx = radio_direct_tx,
};
