// SPDX-License-Identifier: GPL-2.0-only
/*
 * radio: the time of frames on the CPU of their node (kernel/hooks/program_cpu.c).
 *
 *	received	interrupt: frame ... CPU ... mac80211; the next frame
 *	ath9k		the frames of a PPDU ... CPU ... hardware queue
 *	others		mac80211 ... CPU ... firmware; then the driver takes the next frame
 *
 * The driver of ath9k builds aggregates itself, so a PPDU enters its hardware queue when the CPU
 * has built it from all its frames, including retransmissions. It counts towards the limit of the
 * hardware's aggregates from the beginning. With firmware, frames pass the CPU one by one, and
 * the firmware builds aggregates from them in no time.
 *
 * Frames that arrive while the CPU receives others are taken after them, without an interrupt.
 * Beacons, and frames that bypass the firmware's queues, take no time.
 */
#include <linux/slab.h>
#include "radio.h"
#include "radio_trace.h"

static u64 radio_cpu_book(const struct radio_phy *phy, enum hourglass_cpu_work work, u32 frames)
{
	return hourglass_cpu_book(wiphy_net(phy->hw->wiphy), work, frames);
}

/* Gives the first received frame to mac80211. */
static void radio_cpu_give(struct radio_phy *phy)
{
	struct sk_buff *copy = __skb_dequeue(&phy->cpu.received);

	trace_radio_given(copy);
	rcu_read_lock();
	ieee80211_rx_napi(phy->hw, NULL, copy, NULL);
	rcu_read_unlock();
}

/* Gives the received frames to mac80211, each when the CPU has processed it. */
void radio_cpu_receive(struct radio_phy *phy)
{
	struct radio_cpu *cpu = &phy->cpu;

	while (!cpu->receiving && !skb_queue_empty(&cpu->received)) {
		u64 received_ns = radio_cpu_book(phy, HOURGLASS_CPU_RECEIVED, 1);

		if (received_ns) {
			cpu->receiving = true;
			radio_timer_set(&cpu->receive, received_ns);
		} else {
			radio_cpu_give(phy);
		}
	}
}

static enum hrtimer_restart radio_cpu_received(struct hrtimer *timer)
{
	struct radio_phy *phy = container_of(timer, struct radio_phy, cpu.receive);

	radio_cpu_give(phy);
	phy->cpu.receiving = false;
	radio_rx_drain(phy);
	return HRTIMER_NORESTART;
}

/* Returns true if the CPU puts the PPDU into its hardware queue later. */
bool radio_cpu_builds(struct radio_ppdu *ppdu)
{
	struct radio_queue *queue = ppdu->queue;
	struct radio_phy *phy = queue->phy;

	if (phy->chip->firmware || queue->ac == RADIO_BEACONS)
		return false;
	ppdu->queued_ns = radio_cpu_book(phy, HOURGLASS_CPU_SENT, ppdu->count);
	if (!ppdu->queued_ns)
		return false;
	if (list_empty(&phy->cpu.building))
		radio_timer_set(&phy->cpu.send, ppdu->queued_ns);
	list_add_tail(&ppdu->list, &phy->cpu.building);
	return true;
}

/* Hands a frame to the firmware when the CPU has processed it. */
void radio_cpu_hand(struct radio_phy *phy, struct radio_mpdu *mpdu)
{
	mpdu->queued_ns = radio_cpu_book(phy, HOURGLASS_CPU_SENT, 1);
	if (!mpdu->queued_ns) {
		phy->chip->handed(phy, mpdu);
		return;
	}
	if (list_empty(&phy->cpu.handing))
		radio_timer_set(&phy->cpu.send, mpdu->queued_ns);
	list_add_tail(&mpdu->list, &phy->cpu.handing);
}

bool radio_cpu_hands(const struct radio_phy *phy)
{
	return !list_empty(&phy->cpu.handing);
}

static enum hrtimer_restart radio_cpu_sent(struct hrtimer *timer)
{
	struct radio_phy *phy = container_of(timer, struct radio_phy, cpu.send);
	struct radio_cpu *cpu = &phy->cpu;
	u64 now_ns = ktime_get_ns();
	struct radio_ppdu *ppdu;
	struct radio_mpdu *mpdu;

	rcu_read_lock();
	while ((ppdu = list_first_entry_or_null(&cpu->building, struct radio_ppdu, list)) &&
	       ppdu->queued_ns <= now_ns) {
		list_del_init(&ppdu->list);
		radio_queue_add(ppdu);
	}
	while ((mpdu = list_first_entry_or_null(&cpu->handing, struct radio_mpdu, list)) &&
	       mpdu->queued_ns <= now_ns) {
		list_del_init(&mpdu->list);
		phy->chip->handed(phy, mpdu);
	}
	rcu_read_unlock();
	ppdu = list_first_entry_or_null(&cpu->building, struct radio_ppdu, list);
	if (ppdu)
		radio_timer_set(timer, ppdu->queued_ns);
	else if (!list_empty(&cpu->handing))
		radio_timer_set(timer, list_first_entry(&cpu->handing, struct radio_mpdu,
							list)->queued_ns);
	return HRTIMER_NORESTART;
}

void radio_cpu_setup(struct radio_phy *phy)
{
	__skb_queue_head_init(&phy->cpu.received);
	INIT_LIST_HEAD(&phy->cpu.building);
	INIT_LIST_HEAD(&phy->cpu.handing);
	radio_timer_setup(&phy->cpu.receive, radio_cpu_received);
	radio_timer_setup(&phy->cpu.send, radio_cpu_sent);
}

/* Drops received frames and frames on their way to the firmware: the radio stops. */
void radio_cpu_stop(struct radio_phy *phy)
{
	struct radio_cpu *cpu = &phy->cpu;
	bool hands = radio_cpu_hands(phy);

	hrtimer_cancel(&cpu->receive);
	hrtimer_cancel(&cpu->send);
	local_bh_disable();
	radio_rx_purge(phy, &cpu->received);
	cpu->receiving = false;
	radio_discard(phy, &cpu->handing);
	local_bh_enable();
	if (hands && !phy->usb.stopped)
		ieee80211_wake_queues(phy->hw);
}
