// SPDX-License-Identifier: GPL-2.0-only
/*
 * The air: who sends when, and what arrives.
 *
 *	IDLE ----> PPDU ----------> ANSWER -------> IDLE
 *	 EDCA     [RTS, CTS], data   SIFS, ACK or block ack; or the timeout
 *
 * All radios of one medium hear each other: no station is hidden. One timer
 * stands for the next thing that happens. What starts at the same ns collides, and
 * nothing of it arrives; after that all wait for the senders' timeout (the EIFS of
 * the others, which is 15 us longer at 5 GHz, is left out, and so is capture).
 * With collide=0 one of the colliding queues, drawn from the seed, sends, and the
 * others go on with a counter of 0.
 *
 * After an exchange that was answered, a queue whose AC has a TXOP goes on SIFS
 * later while the next exchange fits (10.23.2.8). Answers are never lost.
 * Beacons start one slot after SIFS, without backoff.
 */
#include <linux/slab.h>
#include "radio.h"
#include "radio_trace.h"

enum radio_medium_state { RADIO_IDLE, RADIO_PPDU, RADIO_ANSWER };

struct radio_medium {
	struct list_head list;
	u64 number;
	struct list_head phys;
	struct hrtimer timer;
	enum radio_medium_state state;
	u64 idle_ns;			/* since when, in IDLE */
	struct list_head senders;	/* queues whose first PPDU is on the air */
	struct radio_busy busy;
	bool collision;
	bool answered;
	bool goes_on;			/* the sender keeps the medium */
};

static LIST_HEAD(radio_media);

static struct radio_ppdu *radio_first(struct radio_queue *queue)
{
	return list_first_entry_or_null(&queue->ppdus, struct radio_ppdu, list);
}

u32 radio_backoff(struct radio_phy *phy)
{
	return radio_random_next(&phy->backoffs);
}

static u64 radio_rts_ns(const struct radio_ppdu *ppdu)
{
	return radio_control_ns(&ppdu->rates[ppdu->series], RADIO_RTS);
}

static u64 radio_cts_ns(const struct radio_ppdu *ppdu)
{
	return 2 * RADIO_SIFS_NS +
		radio_control_ns(&ppdu->rates[ppdu->series], RADIO_CTS);
}

/* From the last bit of a PPDU to that of its answer, propagation apart. */
static u64 radio_answer_ns(const struct radio_ppdu *ppdu)
{
	u32 bytes = RADIO_ACK;

	if (ppdu->ack == RADIO_NO_ACK)
		return 0;
	if (ppdu->ack == RADIO_BLOCK_ACK)
		bytes = ppdu->queue->phy->params.max_subframes > 64 &&
			ppdu->rates[ppdu->series].mode == RADIO_HE ?
			RADIO_BA_256 : RADIO_BA;
	return RADIO_SIFS_NS +
		radio_control_ns(&ppdu->rates[ppdu->series], bytes);
}

static u64 radio_timeout_ns(void)
{
	return RADIO_SIFS_NS + RADIO_SLOT_NS + RADIO_PHY_START_NS;
}

/*
 * Counts up to now, before the state changes. The air is busy from the first bit of an exchange to
 * the last of its answer, or to the next exchange of its TXOP; not while senders wait for an
 * answer that does not come. With bottom halves off.
 */
const struct radio_busy *radio_medium_busy(struct radio_medium *medium)
{
	bool answers = medium->goes_on || (medium->state == RADIO_ANSWER && medium->answered);
	u64 now = ktime_get_ns(), spent = now - medium->busy.until_ns;

	medium->busy.until_ns = now;
	medium->busy.busy_ns += answers || medium->state == RADIO_PPDU ? spent : 0;
	medium->busy.answer_ns += answers ? spent : 0;
	return &medium->busy;
}

/* Sets the timer for the first that may start. */
static void radio_medium_contend(struct radio_medium *medium)
{
	u64 now = ktime_get_ns(), first = U64_MAX;
	struct radio_phy *phy;
	unsigned int i;

	if (medium->state != RADIO_IDLE)
		return;
	list_for_each_entry(phy, &medium->phys, list)
		for (i = 0; i < RADIO_QUEUES; i++)
			if (!list_empty(&phy->queues[i].ppdus))
				first = min(first,
					    radio_edca_start(&phy->queues[i].edca,
							     medium->idle_ns, now));
	if (first == U64_MAX)
		hrtimer_try_to_cancel(&medium->timer);
	else
		radio_timer_set(&medium->timer, first);
}

/* Puts a PPDU into its hardware queue. */
void radio_medium_enqueue(struct radio_ppdu *ppdu)
{
	struct radio_queue *queue = ppdu->queue;
	struct radio_medium *medium = queue->phy->medium;
	struct radio_mpdu *mpdu;

	ppdu->queued_ns = ktime_get_ns();
	list_for_each_entry(mpdu, &ppdu->mpdus, list)
		mpdu->queued_ns = ppdu->queued_ns;
	if (ppdu->ampdu)
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

/* The queue of @phy that may start now, highest priority first. */
static struct radio_queue *radio_medium_winner(struct radio_medium *medium,
					       struct radio_phy *phy, u64 now)
{
	/* radio's queues are mac80211's: VO, VI, BE, BK; then beacons */
	static const u8 order[RADIO_QUEUES] = {
		RADIO_BEACONS, IEEE80211_AC_VO, IEEE80211_AC_VI,
		IEEE80211_AC_BE, IEEE80211_AC_BK,
	};
	struct radio_queue *winner = NULL;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++) {
		struct radio_queue *queue = &phy->queues[order[i]];

		if (list_empty(&queue->ppdus) ||
		    radio_edca_start(&queue->edca, medium->idle_ns, now) > now) {
			radio_edca_freeze(&queue->edca, medium->idle_ns, now);
		} else if (winner) {
			phy->stats.tx_internal++;
			radio_edca_failed(&queue->edca, radio_backoff(phy));
		} else {
			winner = queue;
		}
	}
	return winner;
}

static void radio_medium_collect(struct radio_medium *medium, u64 now)
{
	struct radio_queue *queue, *next;
	struct radio_phy *phy;
	u32 senders = 0, chosen, i = 0;

	list_for_each_entry(phy, &medium->phys, list) {
		queue = radio_medium_winner(medium, phy, now);
		if (queue) {
			list_add_tail(&queue->on_air, &medium->senders);
			senders++;
		}
	}
	medium->collision = senders > 1;
	if (!medium->collision)
		return;
	queue = list_first_entry(&medium->senders, struct radio_queue, on_air);
	if (queue->phy->params.collide)
		return;
	chosen = (u64)radio_backoff(queue->phy) * senders >> 32;
	list_for_each_entry_safe(queue, next, &medium->senders, on_air)
		if (i++ != chosen) {
			list_del_init(&queue->on_air);
			radio_edca_freeze(&queue->edca, medium->idle_ns, now);
		}
	medium->collision = false;
}

/* A queue's first PPDU starts; returns when it ends. */
static u64 radio_medium_launch(struct radio_queue *queue, bool collision, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	const struct radio_rate *rate = &ppdu->rates[ppdu->series];
	struct radio_stats *stats = &queue->phy->stats;
	struct radio_mpdu *mpdu;
	u64 before = 0;

	if (ppdu->rts) {
		stats->tx_rts++;
		if (collision) {
			radio_stats_try(queue, radio_rts_ns(ppdu));
			return now + radio_rts_ns(ppdu);
		}
		before = radio_rts_ns(ppdu) + radio_cts_ns(ppdu);
	}
	ppdu->start_ns = now + before;
	ppdu->end_ns = ppdu->start_ns + radio_ppdu_ns(rate, ppdu->bytes);
	ppdu->air_ns += ppdu->end_ns - now;
	radio_stats_try(queue, ppdu->end_ns - now);
	stats->tx_ppdus++;
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		mpdu->tries++;
		mpdu->head_ns = ppdu->head_ns;
		mpdu->start_ns = ppdu->start_ns;
		mpdu->end_ns = ppdu->end_ns;
		mpdu->air_ns += ppdu->end_ns - ppdu->start_ns;
		radio_stats_sent(queue, mpdu);
	}
	trace_radio_sent(ppdu);
	radio_digest(queue->phy, ppdu);
	return ppdu->end_ns;
}

static void radio_medium_begin(struct radio_medium *medium, u64 now)
{
	struct radio_queue *queue;
	u64 end = now;

	if (!medium->goes_on)
		radio_medium_collect(medium, now);
	medium->goes_on = false;
	list_for_each_entry(queue, &medium->senders, on_air)
		end = max(end, radio_medium_launch(queue, medium->collision, now));
	if (list_empty(&medium->senders)) {
		radio_medium_contend(medium);
		return;
	}
	medium->state = RADIO_PPDU;
	radio_timer_set(&medium->timer, end);
}

/* Gives a PPDU to all who hear it; true if the one that has to answers. */
static bool radio_medium_deliver(struct radio_medium *medium,
				 struct radio_queue *queue, u64 arrival)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	struct radio_phy *from = queue->phy, *phy;
	const struct radio_phy *to;
	bool answered = false;
	struct radio_mpdu *mpdu;
	u64 per_ppm, snr_cdb;

	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	to = radio_phy_peer(from, ((struct ieee80211_hdr *)mpdu->skb->data)->addr1) ?: from;
	per_ppm = max(from->params.per_ppm, to->params.per_ppm);
	snr_cdb = min(from->params.snr_cdb, to->params.snr_cdb);
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		u32 ppm = max_t(u64, per_ppm,
				radio_error_ppm(&ppdu->rates[ppdu->series], snr_cdb,
						mpdu->bytes));
		u32 draw = radio_random_next(&from->errors);

		mpdu->acked = ((u64)draw * RADIO_PPM >> 32) >= ppm;
	}
	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	list_for_each_entry(phy, &medium->phys, list) {
		if (phy == from || !phy->running || !radio_rx_tuned(from, phy) ||
		    !radio_rx_wants(phy, mpdu->skb))
			continue;
		radio_rx_ppdu(phy, ppdu, arrival);
		answered |= radio_rx_answers(phy, mpdu->skb);
	}
	if (answered)
		list_for_each_entry(mpdu, &ppdu->mpdus, list)
			if (mpdu->acked)
				return true;
	list_for_each_entry(mpdu, &ppdu->mpdus, list)
		mpdu->acked = false;
	return false;
}

static void radio_medium_ended(struct radio_medium *medium, u64 now)
{
	struct radio_queue *queue;
	struct radio_ppdu *ppdu;
	u64 wait, propagation;

	medium->state = RADIO_ANSWER;
	medium->answered = false;
	if (medium->collision) {
		radio_timer_set(&medium->timer, now + radio_timeout_ns());
		return;
	}
	queue = list_first_entry(&medium->senders, struct radio_queue, on_air);
	ppdu = radio_first(queue);
	propagation = queue->phy->params.propagation_ns;
	medium->answered = radio_medium_deliver(medium, queue, now + propagation);
	if (ppdu->ack == RADIO_NO_ACK)
		wait = 0;
	else if (medium->answered)
		wait = radio_answer_ns(ppdu) + 2 * propagation;
	else
		wait = radio_timeout_ns();
	radio_timer_set(&medium->timer, now + wait);
}

/* Whether the hardware sends the PPDU once more by itself. */
static bool radio_ppdu_again(struct radio_ppdu *ppdu)
{
	if (++ppdu->tried < ppdu->tries[ppdu->series])
		return true;
	ppdu->tried = 0;
	return ++ppdu->series < IEEE80211_TX_MAX_RATES &&
		ppdu->tries[ppdu->series];
}

static void radio_medium_next(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	if (ppdu)
		ppdu->head_ns = now;
}

/* Takes the first PPDU out of its queue. */
static struct radio_ppdu *radio_medium_remove(struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);

	list_del_init(&ppdu->list);
	if (ppdu->ampdu)
		queue->aggregates--;
	else
		queue->others--;
	radio_medium_next(queue, now);
	return ppdu;
}

/* A sender's exchange is over: gives the PPDU if it is done with. */
static struct radio_ppdu *radio_medium_settle(struct radio_medium *medium,
					      struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	struct radio_phy *phy = queue->phy;

	list_del_init(&queue->on_air);
	if (medium->answered || (ppdu->ack == RADIO_NO_ACK && !medium->collision)) {
		radio_edca_reset(&queue->edca, radio_backoff(phy));
		return radio_medium_remove(queue, now);
	}
	radio_stats_failed(queue, medium->collision);
	radio_edca_failed(&queue->edca, radio_backoff(phy));
	if (ppdu->ack != RADIO_NO_ACK && radio_ppdu_again(ppdu))
		return NULL;
	radio_edca_reset(&queue->edca, radio_backoff(phy));
	return radio_medium_remove(queue, now);
}

/* The sender keeps the medium if its TXOP has room for its next exchange. */
static void radio_medium_txop(struct radio_medium *medium,
			      struct radio_queue *queue, u64 started, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	u64 end;

	if (!medium->answered || !queue->edca.txop_ns || !ppdu || ppdu->rts ||
	    medium->state != RADIO_IDLE)
		return;
	end = now + RADIO_SIFS_NS + radio_answer_ns(ppdu) +
		radio_ppdu_ns(&ppdu->rates[ppdu->series], ppdu->bytes);
	if (end > started + queue->edca.txop_ns)
		return;
	queue->txop_start_ns = started;
	list_add_tail(&queue->on_air, &medium->senders);
	medium->goes_on = true;
	medium->collision = false;
	medium->state = RADIO_PPDU;	/* nobody else contends */
	radio_timer_set(&medium->timer, now + RADIO_SIFS_NS);
}

static void radio_medium_answered(struct radio_medium *medium, u64 now)
{
	struct radio_queue *queue, *next, *only;
	LIST_HEAD(done);
	struct radio_ppdu *ppdu;
	u64 started = 0;

	only = list_first_entry(&medium->senders, struct radio_queue, on_air);
	if (radio_first(only))
		started = only->txop_start_ns ?: radio_first(only)->start_ns;
	only->txop_start_ns = 0;
	list_for_each_entry_safe(queue, next, &medium->senders, on_air) {
		ppdu = radio_medium_settle(medium, queue, now);
		if (ppdu)
			list_add_tail(&ppdu->list, &done);
	}
	medium->state = RADIO_IDLE;
	medium->idle_ns = now;
	if (!medium->collision)
		radio_medium_txop(medium, only, started, now);
	while ((ppdu = list_first_entry_or_null(&done, struct radio_ppdu, list))) {
		list_del_init(&ppdu->list);
		radio_ppdu_complete(ppdu, medium->answered && !medium->collision);
	}
	radio_medium_contend(medium);
}

static enum hrtimer_restart radio_medium_timer(struct hrtimer *timer)
{
	struct radio_medium *medium = container_of(timer, struct radio_medium,
						   timer);
	u64 now = ktime_get_ns();

	radio_medium_busy(medium);
	if (medium->state == RADIO_IDLE || medium->goes_on)
		radio_medium_begin(medium, now);
	else if (medium->state == RADIO_PPDU)
		radio_medium_ended(medium, now);
	else
		radio_medium_answered(medium, now);
	return HRTIMER_NORESTART;
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

/* The radio stops: what is in its queues is gone, what is on the air collides. */
void radio_medium_flush(struct radio_phy *phy)
{
	struct radio_medium *medium = phy->medium;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++) {
		struct radio_queue *queue = &phy->queues[i];
		struct radio_ppdu *ppdu, *next;

		list_for_each_entry_safe(ppdu, next, &queue->ppdus, list) {
			list_del(&ppdu->list);
			radio_discard(phy, &ppdu->mpdus);
			kfree(ppdu);
		}
		queue->aggregates = 0;
		queue->others = 0;
		list_del_init(&queue->on_air);
	}
	if (list_empty(&medium->senders) && medium->state != RADIO_IDLE) {
		radio_medium_busy(medium);
		medium->state = RADIO_IDLE;
		medium->goes_on = false;
		medium->idle_ns = ktime_get_ns();
	}
	radio_medium_contend(medium);
}

/* The medium of that number, made when it is first asked for. */
struct radio_medium *radio_medium_join(struct radio_phy *phy, u64 number)
{
	struct radio_medium *medium;

	list_for_each_entry(medium, &radio_media, list)
		if (medium->number == number)
			goto found;
	medium = kzalloc(sizeof(*medium), GFP_KERNEL);
	if (!medium)
		return NULL;
	medium->number = number;
	INIT_LIST_HEAD(&medium->phys);
	INIT_LIST_HEAD(&medium->senders);
	radio_timer_setup(&medium->timer, radio_medium_timer);
	list_add_tail(&medium->list, &radio_media);
found:
	local_bh_disable();
	list_add_tail(&phy->list, &medium->phys);
	local_bh_enable();
	return medium;
}
