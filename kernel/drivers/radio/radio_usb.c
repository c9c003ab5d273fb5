// SPDX-License-Identifier: GPL-2.0-only
/*
 * ath9k_htc (AR9271 class): a radio behind USB, for kernels to 6.1.
 *
 *	qdisc --> FIFO (246) --USB, 20 frames a transfer--> 33 buffers --> aggregates
 *	  ^                                                                  |
 *	  +------ report: an event over USB, 12 frames each ----------------+
 *
 * The driver has no TXQs, so packets wait in the qdisc above it. The driver takes frames until
 * `fifo` of them have no report yet. Then it stops all queues.
 *
 * One transfer is in progress at a time. The first transfer carries one frame. Each later one
 * carries the frames that the driver has taken since the previous transfer began. The firmware
 * takes a frame when it has a free buffer; otherwise the transfer waits.
 *
 * The firmware puts one aggregate of up to 17 frames into the hardware. After the end of this
 * aggregate it needs `gap_us` to build the next one.
 *
 * Since 6.2 mac80211 uses TXQs with every driver, so newer kernels refuse this personality.
 *
 * Source: Linux 6.1, drivers/net/wireless/ath/ath9k/{htc.h,hif_usb.c,htc_drv_txrx.c};
 * open-ath9k-htc-firmware, target_firmware/wlan/{if_owl.c,if_athvar.h}. Left out: reports that
 * the host loses (more than 24 at once), and rate control in the firmware.
 */
#include <linux/slab.h>
#include "radio.h"

#define RADIO_USB_FRAMES	20	/* MAX_TX_AGGR_NUM */
#define RADIO_USB_BYTES		32768	/* MAX_TX_BUF_SIZE */
#define RADIO_USB_BUFFERS	33	/* ATH_TXBUF */
#define RADIO_USB_REPORTS	24	/* two events of 12 */
#define RADIO_USB_POLL_NS	125000	/* the polling interval of the interrupt pipe */

static struct radio_phy *radio_usb_phy(struct radio_usb *usb)
{
	return container_of(usb, struct radio_phy, usb);
}

/* Starts a transfer unless one is in progress. */
static void radio_usb_kick(struct radio_phy *phy)
{
	struct radio_usb *usb = &phy->usb;
	struct radio_mpdu *mpdu, *next;
	u32 frames = 0, bytes = 0;

	if (usb->busy || list_empty(&usb->fifo))
		return;
	list_for_each_entry_safe(mpdu, next, &usb->fifo, list) {
		if (frames == RADIO_USB_FRAMES ||
		    bytes + mpdu->bytes > RADIO_USB_BYTES)
			break;
		list_move_tail(&mpdu->list, &usb->transfer);
		frames++;
		bytes += mpdu->bytes;
	}
	usb->busy = true;
	radio_timer_set(&usb->timer,
			ktime_get_ns() + bytes * phy->params.usb_ns);
}

/* Moves transferred frames to the firmware, as far as it has buffers. */
static void radio_usb_land(struct radio_phy *phy)
{
	struct radio_usb *usb = &phy->usb;
	struct radio_mpdu *mpdu;
	unsigned int i;

	while (usb->buffers && !list_empty(&usb->transfer)) {
		mpdu = list_first_entry(&usb->transfer, struct radio_mpdu, list);
		list_del_init(&mpdu->list);
		usb->buffers--;
		if (mpdu->tid)
			radio_firmware_add(mpdu->tid, mpdu);
		else
			radio_ppdu_send(&phy->queues[skb_get_queue_mapping(mpdu->skb) %
						     IEEE80211_NUM_ACS], NULL, mpdu);
	}
	for (i = 0; i < IEEE80211_NUM_ACS; i++)
		radio_firmware_refill(&phy->queues[i]);
}

static enum hrtimer_restart radio_usb_timer(struct hrtimer *timer)
{
	struct radio_usb *usb = container_of(timer, struct radio_usb, timer);
	struct radio_phy *phy = radio_usb_phy(usb);

	radio_usb_land(phy);
	if (list_empty(&usb->transfer)) {
		usb->busy = false;
		radio_usb_kick(phy);
	}
	return HRTIMER_NORESTART;
}

static void radio_usb_tx(struct radio_phy *phy, struct ieee80211_sta *sta,
			 struct sk_buff *skb)
{
	struct radio_usb *usb = &phy->usb;
	struct radio_mpdu *mpdu;

	mpdu = radio_mpdu_make(phy, radio_tid_of(phy, sta, skb), skb);
	if (!mpdu)
		return;
	if (++usb->queued >= phy->params.fifo && !usb->stopped) {
		usb->stopped = true;
		phy->stats.tx_fifo_stops++;
		ieee80211_stop_queues(phy->hw);
	}
	radio_cpu_hand(phy, mpdu);
	if (radio_cpu_hands(phy) && !usb->stopped)
		ieee80211_stop_queues(phy->hw);
}

/* Queues a frame for the next transfer. The CPU is free for the next frame. */
static void radio_usb_handed(struct radio_phy *phy, struct radio_mpdu *mpdu)
{
	struct radio_usb *usb = &phy->usb;
	bool waited = mpdu->queued_ns;

	list_add_tail(&mpdu->list, &usb->fifo);
	radio_usb_kick(phy);
	if (waited && !usb->stopped && !radio_cpu_hands(phy))
		ieee80211_wake_queues(phy->hw);
}

/* Returns whether the firmware itself generated the frame: beacons. */
static bool radio_usb_is_own_frame(const struct radio_mpdu *mpdu)
{
	return ieee80211_is_beacon(((struct ieee80211_hdr *)mpdu->skb->data)->frame_control);
}

/* Queues completed frames for the next report event. */
static void radio_usb_report(struct radio_phy *phy, struct list_head *done)
{
	struct radio_usb *usb = &phy->usb;
	struct radio_mpdu *mpdu, *next;

	list_for_each_entry_safe(mpdu, next, done, list) {
		if (radio_usb_is_own_frame(mpdu))
			continue;
		list_move_tail(&mpdu->list, &usb->done);
		usb->buffers++;
	}
	radio_report(phy, done);
	if (usb->busy && !hrtimer_active(&usb->timer))
		radio_timer_set(&usb->timer, ktime_get_ns());
	if (!list_empty(&usb->done) && !hrtimer_active(&usb->events))
		radio_timer_set(&usb->events, ktime_get_ns() + RADIO_USB_POLL_NS);
}

static enum hrtimer_restart radio_usb_event(struct hrtimer *timer)
{
	struct radio_usb *usb = container_of(timer, struct radio_usb, events);
	struct radio_phy *phy = radio_usb_phy(usb);
	struct radio_mpdu *mpdu, *next;
	LIST_HEAD(reports);
	u32 count = 0;

	list_for_each_entry_safe(mpdu, next, &usb->done, list) {
		if (count == RADIO_USB_REPORTS)
			break;
		list_move_tail(&mpdu->list, &reports);
		count++;
	}
	usb->queued -= count;
	if (!list_empty(&usb->done))
		radio_timer_set(&usb->events, ktime_get_ns() + RADIO_USB_POLL_NS);
	rcu_read_lock();
	radio_report(phy, &reports);
	rcu_read_unlock();
	if (usb->stopped && usb->queued < phy->params.fifo) {
		usb->stopped = false;
		if (!radio_cpu_hands(phy))
			ieee80211_wake_queues(phy->hw);
	}
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart radio_usb_gap(struct hrtimer *timer)
{
	struct radio_queue *queue = container_of(timer, struct radio_queue, gap);

	queue->pausing = false;
	radio_firmware_refill(queue);
	return HRTIMER_NORESTART;
}

/* Waits after an aggregate for the firmware's processor. */
static void radio_usb_refill(struct radio_queue *queue)
{
	u64 gap = queue->phy->params.gap_us * NSEC_PER_USEC;

	if (queue->pausing)
		return;
	if (!gap) {
		radio_firmware_refill(queue);
		return;
	}
	queue->pausing = true;
	radio_timer_set(&queue->gap, ktime_get_ns() + gap);
}

/* Drops frames of the firmware. Their buffers become free for waiting frames. */
void radio_usb_forget(struct radio_phy *phy, struct list_head *mpdus)
{
	struct radio_usb *usb = &phy->usb;
	struct radio_mpdu *mpdu;

	if (phy->chip != &radio_htc || !phy->running)
		return;
	list_for_each_entry(mpdu, mpdus, list) {
		if (radio_usb_is_own_frame(mpdu))
			continue;
		usb->buffers++;
		usb->queued--;
	}
	if (usb->busy && !hrtimer_active(&usb->timer))
		radio_timer_set(&usb->timer, ktime_get_ns());
	if (usb->stopped && !hrtimer_active(&usb->events))
		radio_timer_set(&usb->events, ktime_get_ns() + RADIO_USB_POLL_NS);
}

void radio_usb_setup(struct radio_phy *phy)
{
	struct radio_usb *usb = &phy->usb;
	unsigned int i;

	INIT_LIST_HEAD(&usb->fifo);
	INIT_LIST_HEAD(&usb->transfer);
	INIT_LIST_HEAD(&usb->done);
	radio_timer_setup(&usb->timer, radio_usb_timer);
	radio_timer_setup(&usb->events, radio_usb_event);
	for (i = 0; i < RADIO_QUEUES; i++)
		radio_timer_setup(&phy->queues[i].gap, radio_usb_gap);
}

/* Drops the frames of a removed interface. */
void radio_usb_drop(struct radio_phy *phy, const struct ieee80211_vif *vif)
{
	struct list_head *lists[] = { &phy->cpu.handing, &phy->usb.fifo, &phy->usb.transfer };
	bool hands = radio_cpu_hands(phy);
	struct radio_mpdu *mpdu, *next;
	unsigned int i;
	LIST_HEAD(dropped);

	for (i = 0; i < ARRAY_SIZE(lists); i++)
		list_for_each_entry_safe(mpdu, next, lists[i], list)
			if (IEEE80211_SKB_CB(mpdu->skb)->control.vif == vif) {
				list_move_tail(&mpdu->list, &dropped);
				phy->usb.queued--;
			}
	radio_discard(phy, &dropped);
	if (hands && !radio_cpu_hands(phy) && !phy->usb.stopped)
		ieee80211_wake_queues(phy->hw);
}

/* Initialises the USB side: no frame is in progress. */
void radio_usb_start(struct radio_phy *phy)
{
	struct radio_usb *usb = &phy->usb;

	usb->queued = 0;
	usb->buffers = RADIO_USB_BUFFERS;
	usb->busy = false;
	usb->stopped = false;
}

/* Drops the frames of the driver and of the USB transfer. The TIDs are flushed elsewhere. */
void radio_usb_stop(struct radio_phy *phy)
{
	struct radio_usb *usb = &phy->usb;
	unsigned int i;

	hrtimer_cancel(&usb->timer);
	hrtimer_cancel(&usb->events);
	for (i = 0; i < RADIO_QUEUES; i++) {
		hrtimer_cancel(&phy->queues[i].gap);
		phy->queues[i].pausing = false;
	}
	local_bh_disable();
	radio_discard(phy, &usb->fifo);
	radio_discard(phy, &usb->transfer);
	rcu_read_lock();
	radio_report(phy, &usb->done);
	rcu_read_unlock();
	local_bh_enable();
}

const struct radio_personality radio_htc = {
	.name = "ath9k_htc",
	.firmware = true,
	.min_bytes = 256,
	.density_us = 8,
	.singles = 8,
	/* ath9k_hif_usb_rx_stream(): headers of HTC and of the status, FCS, and 32 */
	.rx_header = 8 + 40 + RADIO_FCS + 32,
	.params = {
		.rx_last_us = 250, .rx_first_us = 700, .max_subframes = 17,
		.max_airtime_us = 5484, .depth = 1, .sw_tries = 10,
		.fifo = 246, .gap_us = 100, .usb_ns = 25,
	},
	.refill = radio_usb_refill,
	.report = radio_usb_report,
	.tx = radio_usb_tx,
	.handed = radio_usb_handed,
};
