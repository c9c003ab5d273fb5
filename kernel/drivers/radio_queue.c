// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues: PPDUs in them, and what becomes of these when those who know them go.
 *
 *	a station goes	its PPDUs stay, and are sent to nobody in particular
 *	an interface goes	its PPDUs are dropped; the one on the air ends there
 *	a radio stops	all are dropped, what is on the air breaks off
 *
 * A PPDU is in its queue until its exchange is over, so that these find it there.
 */
#include <linux/slab.h>
#include "radio_medium.h"

/* Puts a PPDU into its hardware queue. */
void radio_medium_enqueue(struct radio_ppdu *ppdu)
{
	struct radio_queue *queue = ppdu->queue;
	struct radio_medium *medium = queue->phy->medium;
	struct radio_mpdu *mpdu;

	ppdu->queued_ns = ktime_get_ns();
	list_for_each_entry(mpdu, &ppdu->mpdus, list)
		mpdu->queued_ns = ppdu->queued_ns;
	if (ppdu->counted)
		queue->aggregates++;
	else
		queue->others++;
	if (list_empty(&queue->ppdus)) {
		ppdu->head_ns = ppdu->queued_ns;
		if (medium->state != RADIO_IDLE && !queue->edca.backoff)
			radio_edca_draw(&queue->edca, radio_backoff(queue->phy));
	}
	list_add_tail(&ppdu->list, &queue->ppdus);
	radio_medium_contend(medium);
}

static void radio_queue_unlink(struct radio_ppdu *ppdu)
{
	list_del_init(&ppdu->list);
	if (ppdu->counted)
		ppdu->queue->aggregates--;
	else
		ppdu->queue->others--;
}

static void radio_queue_next(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	if (ppdu)
		ppdu->head_ns = now;
}

/* Takes the first PPDU out of its queue. */
struct radio_ppdu *radio_queue_remove(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	radio_queue_unlink(ppdu);
	radio_queue_next(queue, now);
	return ppdu;
}

/* The station is gone: what waits for the air for it is not its any more. */
void radio_medium_forget(struct radio_phy *phy, struct ieee80211_sta *sta)
{
	struct radio_ppdu *ppdu;
	struct radio_mpdu *mpdu;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++) {
		list_for_each_entry(ppdu, &phy->queues[i].ppdus, list) {
			if (ppdu->sta != sta)
				continue;
			ppdu->sta = NULL;
			list_for_each_entry(mpdu, &ppdu->mpdus, list)
				mpdu->tid = NULL;
		}
	}
}

/* The exchanges that were on the air are gone, unless others have some there too. */
static void radio_medium_clear(struct radio_medium *medium)
{
	if (list_empty(&medium->senders) && medium->state != RADIO_IDLE) {
		radio_medium_busy(medium);
		medium->state = RADIO_IDLE;
		medium->goes_on = false;
		medium->idle_ns = ktime_get_ns();
	}
	radio_medium_contend(medium);
}

/* Who hears @ppdu has what has arrived of it so far. */
static void radio_queue_break(const struct radio_ppdu *ppdu)
{
	struct radio_phy *phy;

	list_for_each_entry(phy, &ppdu->queue->phy->medium->phys, list)
		if (phy->heard == ppdu)
			radio_rx_end(phy);
}

/* Its frames are gone; if it is on the air, it breaks off. */
static void radio_queue_drop(struct radio_ppdu *ppdu)
{
	struct radio_queue *queue = ppdu->queue;
	bool head = ppdu == radio_first(queue);

	if (head && !list_empty(&queue->on_air)) {
		radio_queue_break(ppdu);
		list_del_init(&queue->on_air);
		queue->txop_start_ns = 0;
	}
	radio_queue_unlink(ppdu);
	if (head)
		radio_queue_next(queue, ktime_get_ns());
	radio_usb_forget(queue->phy, &ppdu->mpdus);
	radio_discard(queue->phy, &ppdu->mpdus);
	kfree(ppdu);
}

static bool radio_ppdu_of(const struct radio_ppdu *ppdu, const struct ieee80211_vif *vif)
{
	const struct radio_mpdu *mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);

	return IEEE80211_SKB_CB(mpdu->skb)->control.vif == vif;
}

/* The interface, or with NULL the radio, stops: what is in its queues is gone. */
void radio_medium_flush(struct radio_phy *phy, const struct ieee80211_vif *vif)
{
	struct radio_ppdu *ppdu, *next;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		list_for_each_entry_safe(ppdu, next, &phy->queues[i].ppdus, list)
			if (!vif || radio_ppdu_of(ppdu, vif))
				radio_queue_drop(ppdu);
	radio_medium_clear(phy->medium);
}

bool radio_queues_empty(const struct radio_phy *phy)
{
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		if (!list_empty(&phy->queues[i].ppdus))
			return false;
	return true;
}
