// SPDX-License-Identifier: GPL-2.0-only
/*
 * Personalities that pull frames from mac80211's TXQs.
 *
 * ath9k (AR9580 class, PCIe): the driver builds aggregates. Two are in the hardware: one on the
 * air, one ready. All other frames wait in mac80211's FQ-CoDel. When a frame enters a TXQ, and
 * when an aggregate ends, the driver schedules one aggregate per TXQ. An aggregate has at most
 * 32 frames, half of the window of 64.
 *
 * generic (mt76, ath10k class): the driver takes as many frames as mac80211's airtime queue
 * limits (AQL) allow. When the previous aggregate ends, the hardware builds the next one, of all
 * frames that the block ack window allows.
 *
 * Source: Linux 6.1, drivers/net/wireless/ath/ath9k/xmit.c (ath_txq_schedule),
 * ath9k.h, hw.c (interrupt mitigation); net/mac80211/tx.c (AQL).
 */
#include <net/codel.h>
#include "radio.h"

/* True while mac80211 dequeues a frame: skbs that it frees meanwhile are CoDel's drops. */
bool radio_dequeues;

/* Returns the next frame of mac80211's queue. */
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

/*
 * Calls @pull for each TXQ of the queue in the order of mac80211's airtime scheduler, under RCU.
 * @pull returns whether the TXQ stays scheduled although it may be empty.
 */
static void radio_txqs_pull(struct radio_queue *queue,
			    bool (*pull)(struct radio_tid *tid, struct ieee80211_txq *txq))
{
	struct ieee80211_hw *hw = queue->phy->hw;
	struct ieee80211_txq *txq;

	ieee80211_txq_schedule_start(hw, queue->ac);
	while ((txq = ieee80211_next_txq(hw, queue->ac)))
		ieee80211_return_txq(hw, txq, pull(radio_txq_tid(txq), txq));
	ieee80211_txq_schedule_end(hw, queue->ac);
}

/* Returns whether the queue takes frames from TXQs now. */
static bool radio_has_txqs(const struct radio_queue *queue)
{
	return queue->ac != RADIO_BEACONS && queue->phy->running;
}

static bool radio_ath9k_pull(struct radio_tid *tid, struct ieee80211_txq *txq)
{
	radio_tid_schedule(tid, txq);
	return !list_empty(&tid->retry);
}

static void radio_ath9k_refill(struct radio_queue *queue)
{
	if (!radio_has_txqs(queue))
		return;
	rcu_read_lock();
	radio_txqs_pull(queue, radio_ath9k_pull);
	rcu_read_unlock();
}

static void radio_txq_wake(struct radio_phy *phy, struct ieee80211_txq *txq)
{
	phy->chip->refill(&phy->queues[txq->ac]);
}

/* Sends frames that bypass the TXQs, mainly management frames. */
static void radio_direct_tx(struct radio_phy *phy, struct ieee80211_sta *sta,
			    struct sk_buff *skb)
{
	struct radio_mpdu *mpdu = radio_mpdu_make(phy, NULL, skb);

	if (mpdu)
		radio_ppdu_send(&phy->queues[skb_get_queue_mapping(skb) %
					     IEEE80211_NUM_ACS], sta, mpdu);
}

/* Puts a frame (NULL: those in `retry`) into the firmware's queue. */
void radio_firmware_add(struct radio_tid *tid, struct radio_mpdu *mpdu)
{
	if (mpdu)
		list_add_tail(&mpdu->list, &tid->pending);
	if (list_empty(&tid->list))
		list_add_tail(&tid->list, &tid->queue->tids);
}

/* Builds aggregates from the firmware's queues, round robin over its TIDs. */
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

static bool radio_generic_pull(struct radio_tid *tid, struct ieee80211_txq *txq)
{
	struct radio_phy *phy = tid->queue->phy;
	struct radio_mpdu *mpdu;

	while (!radio_cpu_hands(phy) && ieee80211_txq_airtime_check(phy->hw, txq) &&
	       (mpdu = radio_dequeue(tid, txq)))
		radio_cpu_hand(phy, mpdu);
	return false;
}

static void radio_generic_refill(struct radio_queue *queue)
{
	if (!radio_has_txqs(queue))
		return;
	rcu_read_lock();
	radio_txqs_pull(queue, radio_generic_pull);
	radio_firmware_refill(queue);
	rcu_read_unlock();
}

static void radio_generic_refill_all(struct radio_phy *phy)
{
	unsigned int i;

	for (i = 0; i < IEEE80211_NUM_ACS; i++)
		radio_generic_refill(&phy->queues[i]);
}

/* A report returns airtime, so more frames may be available. */
static void radio_generic_report(struct radio_phy *phy, struct list_head *done)
{
	radio_report(phy, done);
	radio_generic_refill_all(phy);
}

/* Gives a frame to the firmware. If it was on the CPU, the CPU is now free. */
static void radio_generic_handed(struct radio_phy *phy, struct radio_mpdu *mpdu)
{
	bool waited = mpdu->queued_ns;

	if (mpdu->tid) {
		radio_firmware_add(mpdu->tid, mpdu);
	} else {
		LIST_HEAD(dropped);

		list_add(&mpdu->list, &dropped);	/* its station was removed */
		radio_discard(phy, &dropped);
	}
	if (waited)
		radio_generic_refill_all(phy);
}

const struct radio_personality radio_ath9k = {
	.name = "ath9k",
	.min_bytes = 256,
	.density_us = 8,
	.singles = 8,
	/* ath_rx_init(), ath_rxbuf_alloc(): half of 3,852, 48 of status, 63 of alignment */
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
	.singles = 8,
	/* mt76: fragments of 2,048, less 320 at the end and 64 of headroom for the skb */
	.rx_buffer = 1664,
	.rx_per_ppdu = true,
	.params = {
		.max_airtime_us = 5484, .depth = 1, .sw_tries = 30, .aql = 1,
	},
	.refill = radio_generic_refill,
	.report = radio_generic_report,
	.wake = radio_txq_wake,
	.tx = radio_direct_tx,
	.handed = radio_generic_handed,
};
