// SPDX-License-Identifier: GPL-2.0-only
/*
 * The medium: channel access, collisions and reception.
 *
 *	IDLE ----> PPDU ----------> ANSWER -------> IDLE
 *	 EDCA     [RTS, CTS], data   SIFS, ACK or block ack; or the timeout
 *
 * All radios of one medium hear each other: no station is hidden. One timer fires at the next
 * event. Transmissions that start at the same ns collide, and none of them is received. After a
 * collision all stations wait for the senders' response timeout. EIFS of the other stations,
 * which is 15 us longer at 5 GHz, and capture are left out. With collide=0 only one of the
 * colliding queues sends, and the seed decides which. The others continue with a counter of 0.
 *
 * After a successful exchange, a queue whose AC has a TXOP continues after SIFS while the next
 * exchange fits (10.23.2.8). Responses are never lost.
 * Beacons are sent one slot after SIFS, without backoff.
 */
#include <linux/slab.h>
#include "radio_medium.h"
#include "radio_trace.h"

static LIST_HEAD(radio_media);

u32 radio_backoff(struct radio_phy *phy)
{
	return radio_random_next(&phy->backoffs);
}

static bool radio_has_rts(const struct radio_ppdu *ppdu)
{
	return ppdu->rts & BIT(ppdu->series);
}

/* Returns the duration of an RTS or CTS: at the rate of the response, or at the chip's rate. */
static u64 radio_protection_ns(const struct radio_ppdu *ppdu, u32 bytes)
{
	const struct radio_phy *phy = ppdu->queue->phy;
	struct radio_rate lowest = radio_rate_lowest(phy);

	return radio_control_ns(phy->chip->rts_lowest ? &lowest :
				&ppdu->rates[ppdu->series], bytes);
}

/* Returns the time from the last bit of a PPDU to the last bit of its response, without
 * propagation.
 */
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
 * Counts busy time up to now, before the state changes. The medium is busy from the first bit of
 * an exchange to the last bit of its response, or to the next exchange of its TXOP. It is not
 * busy while senders wait for a missing response. Called with bottom halves off.
 */
const struct radio_busy *radio_medium_busy(struct radio_medium *medium)
{
	bool answers = medium->keeps_medium || (medium->state == RADIO_ANSWER && medium->answered);
	u64 now = ktime_get_ns(), spent = now - medium->busy.until_ns;

	medium->busy.until_ns = now;
	medium->busy.busy_ns += answers || medium->state == RADIO_PPDU ? spent : 0;
	medium->busy.answer_ns += answers ? spent : 0;
	return &medium->busy;
}

/* Sets the timer for the first queue that may start. */
void radio_medium_contend(struct radio_medium *medium)
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

/* Returns the queue of @phy with the highest priority that may start now. */
static struct radio_queue *radio_medium_winner(struct radio_medium *medium,
					       struct radio_phy *phy, u64 now)
{
	/* the order of the driver's queues is mac80211's: VO, VI, BE, BK; then beacons */
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

/* Starts the first PPDU of a queue and returns its end. */
static u64 radio_medium_launch(struct radio_queue *queue, bool collision, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	const struct radio_rate *rate = &ppdu->rates[ppdu->series];
	struct radio_stats *stats = &queue->phy->stats;
	struct radio_mpdu *mpdu;
	u64 before = 0;

	if (radio_has_rts(ppdu)) {
		stats->tx_rts++;
		before = radio_protection_ns(ppdu, RADIO_RTS);
		if (collision) {
			radio_stats_try(queue, before);
			return now + before;
		}
		before += 2 * RADIO_SIFS_NS + radio_protection_ns(ppdu, RADIO_CTS);
	}
	ppdu->start_ns = now + before;
	ppdu->end_ns = ppdu->start_ns + radio_ppdu_ns(rate, ppdu->bytes);
	ppdu->air_ns += ppdu->end_ns - now;
	radio_stats_try(queue, ppdu->end_ns - now);
	stats->tx_ppdus++;
	ppdu->sent++;
	list_for_each_entry(mpdu, &ppdu->mpdus, list) {
		mpdu->tries++;
		mpdu->head_ns = ppdu->head_ns;
		mpdu->start_ns = ppdu->start_ns;
		mpdu->end_ns = list_is_last(&mpdu->list, &ppdu->mpdus) ? ppdu->end_ns :
			ppdu->start_ns + radio_part_ns(rate, mpdu->part_bytes);
		mpdu->air_ns += ppdu->end_ns - ppdu->start_ns;
		radio_stats_sent(queue, mpdu);
	}
	trace_radio_sent(ppdu);
	radio_digest(queue->phy, ppdu);
	return ppdu->end_ns;
}

/* Draws which frames of @ppdu are lost. */
static void radio_medium_lose(struct radio_ppdu *ppdu)
{
	struct radio_phy *from = ppdu->queue->phy;
	const struct radio_phy *to;
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
}

/* Begins reception of the only PPDU on the air, at all radios that hear it. */
static void radio_medium_deliver(struct radio_medium *medium)
{
	struct radio_queue *queue = list_first_entry(&medium->senders, struct radio_queue,
						     on_air);
	struct radio_ppdu *ppdu = radio_first(queue);
	struct radio_mpdu *mpdu;
	struct radio_phy *phy;

	radio_medium_lose(ppdu);
	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	list_for_each_entry(phy, &medium->phys, list)
		if (phy != queue->phy && phy->running && radio_rx_tuned(queue->phy, phy) &&
		    radio_rx_wants(phy, mpdu->skb))
			radio_rx_begin(phy, ppdu);
}

/* Returns whether the receiver of @ppdu, which has ended, got a frame of it. */
static bool radio_medium_heard(struct radio_medium *medium, struct radio_ppdu *ppdu)
{
	struct radio_mpdu *mpdu;
	struct radio_phy *phy;
	bool answered = false;

	mpdu = list_first_entry(&ppdu->mpdus, struct radio_mpdu, list);
	list_for_each_entry(phy, &medium->phys, list)
		answered |= phy->heard == ppdu && radio_rx_answers(phy, mpdu->skb);
	if (answered)
		list_for_each_entry(mpdu, &ppdu->mpdus, list)
			if (mpdu->acked)
				return true;
	return false;
}

/* Ends the exchange: its PPDU has been received. */
static void radio_medium_received(struct radio_medium *medium)
{
	struct radio_phy *phy;

	list_for_each_entry(phy, &medium->phys, list)
		if (phy->heard)
			radio_rx_end(phy);
}

static void radio_medium_begin(struct radio_medium *medium, u64 now)
{
	struct radio_queue *queue;
	u64 end = now;

	if (!medium->keeps_medium)
		radio_medium_collect(medium, now);
	medium->keeps_medium = false;
	list_for_each_entry(queue, &medium->senders, on_air)
		end = max(end, radio_medium_launch(queue, medium->collision, now));
	if (list_empty(&medium->senders)) {
		radio_medium_contend(medium);
		return;
	}
	medium->state = RADIO_PPDU;
	if (!medium->collision)
		radio_medium_deliver(medium);
	radio_timer_set(&medium->timer, end);
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
	medium->answered = radio_medium_heard(medium, ppdu);
	if (ppdu->ack == RADIO_NO_ACK)
		wait = propagation;
	else if (medium->answered)
		wait = radio_answer_ns(ppdu) + 2 * propagation;
	else
		wait = radio_timeout_ns();
	radio_timer_set(&medium->timer, now + wait);
}

/* Returns whether the hardware retransmits the PPDU by itself. */
static bool radio_ppdu_again(struct radio_ppdu *ppdu)
{
	if (++ppdu->tries_spent < ppdu->tries[ppdu->series])
		return true;
	ppdu->tries_spent = 0;
	return ++ppdu->series < IEEE80211_TX_MAX_RATES &&
		ppdu->tries[ppdu->series];
}

/* Ends a sender's exchange. Returns the PPDU if it is complete. */
static struct radio_ppdu *radio_medium_settle(struct radio_medium *medium,
					      struct radio_queue *queue, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	struct radio_phy *phy = queue->phy;

	list_del_init(&queue->on_air);
	if (medium->answered || (ppdu->ack == RADIO_NO_ACK && !medium->collision)) {
		radio_edca_reset(&queue->edca, radio_backoff(phy));
		return radio_queue_remove(queue, now);
	}
	radio_stats_failed(queue, medium->collision);
	radio_edca_failed(&queue->edca, radio_backoff(phy));
	if (ppdu->ack != RADIO_NO_ACK && radio_ppdu_again(ppdu))
		return NULL;
	radio_edca_reset(&queue->edca, radio_backoff(phy));
	return radio_queue_remove(queue, now);
}

/* Lets the sender keep the medium if its next exchange fits into its TXOP. */
static void radio_medium_txop(struct radio_medium *medium,
			      struct radio_queue *queue, u64 started, u64 now)
{
	struct radio_ppdu *ppdu = radio_first(queue);
	u64 end;

	if (!medium->answered || !queue->edca.txop_ns || !ppdu || radio_has_rts(ppdu) ||
	    medium->state != RADIO_IDLE)
		return;
	end = now + RADIO_SIFS_NS + radio_answer_ns(ppdu) +
		radio_ppdu_ns(&ppdu->rates[ppdu->series], ppdu->bytes);
	if (end > started + queue->edca.txop_ns)
		return;
	queue->txop_start_ns = started;
	list_add_tail(&queue->on_air, &medium->senders);
	medium->keeps_medium = true;
	medium->collision = false;
	medium->state = RADIO_PPDU;	/* no other queue contends */
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
	if (!medium->collision)
		radio_medium_received(medium);
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
	if (medium->state == RADIO_IDLE || medium->keeps_medium)
		radio_medium_begin(medium, now);
	else if (medium->state == RADIO_PPDU)
		radio_medium_ended(medium, now);
	else
		radio_medium_answered(medium, now);
	return HRTIMER_NORESTART;
}

/* Returns the medium with that number, created at its first use. */
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
