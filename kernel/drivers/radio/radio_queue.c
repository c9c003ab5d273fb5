// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues, and the removal of PPDUs with their station, interface or radio.
 *
 *	station removed		its PPDUs stay queued, without a station
 *	interface removed	its PPDUs are dropped; a transmission is cut off
 *	radio stopped		all PPDUs are dropped; a transmission is cut off
 *
 * A PPDU stays in its queue until its exchange ends, so these functions find it there.
 */
#include <linux/slab.h>
#include "radio_medium.h"

/* Puts a PPDU into its hardware queue, at once or when the node's CPU has built it. */
void radio_medium_enqueue(struct radio_ppdu *ppdu)
{
	if (ppdu->counted)
		ppdu->queue->aggregates++;
	else
		ppdu->queue->singles++;
	if (!radio_cpu_builds(ppdu))
		radio_queue_add(ppdu);
}

/* Lets a PPDU contend for the medium after the earlier ones of its hardware queue. */
void radio_queue_add(struct radio_ppdu *ppdu)
{
	struct radio_queue *queue = ppdu->queue;
	struct radio_medium *medium = queue->phy->medium;
	struct radio_mpdu *mpdu;

	ppdu->queued_ns = ktime_get_ns();
	list_for_each_entry(mpdu, &ppdu->mpdus, list)
		mpdu->queued_ns = ppdu->queued_ns;
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
		ppdu->queue->singles--;
}

static void radio_queue_next(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	if (ppdu)
		ppdu->head_ns = now;
}

/* Removes the first PPDU from its queue. */
struct radio_ppdu *radio_queue_remove(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	radio_queue_unlink(ppdu);
	radio_queue_next(queue, now);
	return ppdu;
}

static void radio_ppdus_forget(struct list_head *ppdus, const struct ieee80211_sta *sta)
{
	struct radio_ppdu *ppdu;
	struct radio_mpdu *mpdu;

	list_for_each_entry(ppdu, ppdus, list) {
		if (ppdu->sta != sta)
			continue;
		ppdu->sta = NULL;
		list_for_each_entry(mpdu, &ppdu->mpdus, list)
			mpdu->tid = NULL;
	}
}

/* Detaches queued PPDUs and their frames from a removed station. */
void radio_medium_forget(struct radio_phy *phy, struct ieee80211_sta *sta)
{
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		radio_ppdus_forget(&phy->queues[i].ppdus, sta);
	radio_ppdus_forget(&phy->cpu.building, sta);
}

/* Ends the exchange on the air, unless other senders take part in it. */
static void radio_medium_clear(struct radio_medium *medium)
{
	if (list_empty(&medium->senders) && medium->state != RADIO_IDLE) {
		radio_medium_busy(medium);
		medium->state = RADIO_IDLE;
		medium->keeps_medium = false;
		medium->idle_ns = ktime_get_ns();
	}
	radio_medium_contend(medium);
}

/* Delivers the frames of @ppdu that have arrived so far to the radios that hear it. */
static void radio_queue_break(const struct radio_ppdu *ppdu)
{
	struct radio_phy *phy;

	list_for_each_entry(phy, &ppdu->queue->phy->medium->phys, list)
		if (phy->heard == ppdu)
			radio_rx_end(phy);
}

/* Drops the frames of a PPDU. A transmission is cut off. */
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

static void radio_ppdus_flush(struct list_head *ppdus, const struct ieee80211_vif *vif)
{
	struct radio_ppdu *ppdu, *next;

	list_for_each_entry_safe(ppdu, next, ppdus, list)
		if (!vif || radio_ppdu_of(ppdu, vif))
			radio_queue_drop(ppdu);
}

/* Drops the queued PPDUs of an interface that stops; of the whole radio if @vif is NULL. */
void radio_medium_flush(struct radio_phy *phy, const struct ieee80211_vif *vif)
{
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		radio_ppdus_flush(&phy->queues[i].ppdus, vif);
	radio_ppdus_flush(&phy->cpu.building, vif);
	radio_medium_clear(phy->medium);
}

bool radio_queues_empty(const struct radio_phy *phy)
{
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		if (!list_empty(&phy->queues[i].ppdus))
			return false;
	return list_empty(&phy->cpu.building);
}
