// SPDX-License-Identifier: GPL-2.0-only
/* radio: the callbacks of mac80211. */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include "radio.h"

#define RADIO_TU_NS	(1024 * NSEC_PER_USEC)
#define RADIO_FLUSH_MS	200

/* Access categories of the TIDs (802.11-2020, table 10-1). */
static const u8 radio_tid_ac[8] = {
	IEEE80211_AC_BE, IEEE80211_AC_BK, IEEE80211_AC_BK, IEEE80211_AC_BE,
	IEEE80211_AC_VI, IEEE80211_AC_VI, IEEE80211_AC_VO, IEEE80211_AC_VO,
};

static int radio_start(struct ieee80211_hw *hw)
{
	radio_usb_start(radio_phy(hw));
	radio_phy(hw)->running = true;
	return 0;
}

static void radio_halt(struct radio_phy *phy)
{
	phy->running = false;
	hrtimer_cancel(&phy->beacons);
	radio_usb_stop(phy);
	radio_rx_flush(phy);
	radio_cpu_stop(phy);
	local_bh_disable();
	radio_medium_flush(phy, NULL);
	local_bh_enable();
}

static void radio_stop(RADIO_STOP_ARGS)
{
	radio_halt(radio_phy(hw));
}

/* After a change of the channel, the current transmission of the old channel is not received. */
static int radio_config(RADIO_CONFIG_ARGS)
{
	if (changed & IEEE80211_CONF_CHANGE_CHANNEL) {
		local_bh_disable();
		radio_rx_end(radio_phy(hw));
		local_bh_enable();
	}
	return 0;
}

/* Waits for frames in the hardware, like ath9k: at most 200 ms. */
static void radio_flush(struct ieee80211_hw *hw, struct ieee80211_vif *vif, u32 queues,
			bool drop)
{
	struct radio_phy *phy = radio_phy(hw);
	unsigned int patience_ms = RADIO_FLUSH_MS;

	if (drop) {
		local_bh_disable();
		radio_medium_flush(phy, vif);
		local_bh_enable();
	}
	while (!radio_queues_empty(phy) && patience_ms--)
		usleep_range(USEC_PER_MSEC, USEC_PER_MSEC);
}

/* Fills in the rate that `iw station dump` shows. mac80211 itself fills in minstrel's rates. */
static void radio_sta_statistics(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
				 struct ieee80211_sta *sta, struct station_info *info)
{
	const struct radio_rate *rate = &radio_station(sta)->rate;

	if (!rate->streams || !radio_rate_is_fixed(radio_phy(hw), sta))
		return;
	radio_rate_info(rate, &info->txrate);
	info->filled |= BIT_ULL(NL80211_STA_INFO_TX_BITRATE);
}

static void radio_configure_filter(struct ieee80211_hw *hw, unsigned int changed,
				   unsigned int *total, u64 multicast)
{
	*total &= FIF_ALLMULTI | FIF_OTHER_BSS | FIF_BCN_PRBRESP_PROMISC |
		  FIF_CONTROL | FIF_PROBE_REQ;
	radio_phy(hw)->monitor = hw->conf.flags & IEEE80211_CONF_MONITOR;
}

static void radio_discard_tid(struct radio_phy *phy, struct radio_tid *tid)
{
	list_del_init(&tid->list);
	radio_usb_forget(phy, &tid->retry);
	radio_usb_forget(phy, &tid->pending);
	radio_discard(phy, &tid->retry);
	radio_discard(phy, &tid->pending);
}

static int radio_add_interface(struct ieee80211_hw *hw, struct ieee80211_vif *vif)
{
	struct radio_phy *phy = radio_phy(hw);
	struct radio_vif *interface = radio_vif(vif);

	memset(interface, 0, sizeof(*interface));
	interface->vif = vif;
	ether_addr_copy(interface->address, vif->addr);
	radio_tid_setup(&interface->tid, &phy->queues[IEEE80211_AC_BE], NULL, 0);
	vif->cab_queue = IEEE80211_INVAL_HW_QUEUE;
	local_bh_disable();
	list_add_tail(&interface->list, &phy->vifs);
	local_bh_enable();
	return 0;
}

static void radio_remove_interface(struct ieee80211_hw *hw,
				   struct ieee80211_vif *vif)
{
	struct radio_phy *phy = radio_phy(hw);

	local_bh_disable();
	list_del(&radio_vif(vif)->list);
	radio_medium_flush(phy, vif);
	radio_usb_drop(phy, vif);
	radio_discard_tid(phy, &radio_vif(vif)->tid);
	radio_beacons(phy);
	local_bh_enable();
}

static void radio_tx(struct ieee80211_hw *hw, struct ieee80211_tx_control *control,
		     struct sk_buff *skb)
{
	struct radio_phy *phy = radio_phy(hw);

	local_bh_disable();
	if (phy->running)
		phy->chip->tx(phy, control->sta, skb);
	else
		ieee80211_free_txskb(hw, skb);
	local_bh_enable();
}

static void radio_wake(struct ieee80211_hw *hw, struct ieee80211_txq *txq)
{
	struct radio_phy *phy = radio_phy(hw);

	local_bh_disable();
	phy->chip->wake(phy, txq);
	local_bh_enable();
}

static int radio_sta_add(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
			 struct ieee80211_sta *sta)
{
	struct radio_station *station = radio_station(sta);
	struct radio_phy *phy = radio_phy(hw);
	unsigned int i;

	memset(station, 0, sizeof(*station));
	station->sta = sta;
	for (i = 0; i < IEEE80211_NUM_TIDS; i++)
		radio_tid_setup(&station->tids[i], &phy->queues[radio_tid_ac[i % 8]],
				sta, i);
	local_bh_disable();
	list_add_tail(&station->list, &phy->stations);
	local_bh_enable();
	return 0;
}

static void radio_forget(struct list_head *mpdus, struct ieee80211_sta *sta)
{
	struct radio_mpdu *mpdu;

	list_for_each_entry(mpdu, mpdus, list)
		if (mpdu->tid && mpdu->tid->sta == sta)
			mpdu->tid = NULL;
}

static int radio_sta_remove(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
			    struct ieee80211_sta *sta)
{
	struct radio_station *station = radio_station(sta);
	struct radio_phy *phy = radio_phy(hw);
	unsigned int i;

	local_bh_disable();
	list_del(&station->list);
	radio_medium_forget(phy, sta);
	radio_forget(&phy->cpu.handing, sta);
	radio_forget(&phy->usb.fifo, sta);
	radio_forget(&phy->usb.transfer, sta);
	radio_forget(&phy->usb.done, sta);
	for (i = 0; i < IEEE80211_NUM_TIDS; i++)
		radio_discard_tid(phy, &station->tids[i]);
	local_bh_enable();
	return 0;
}

static int radio_conf_tx(RADIO_CONF_TX_ARGS)
{
	struct radio_edca *edca = &radio_phy(hw)->queues[ac].edca;

	edca->aifsn = params->aifs;
	edca->cw_min = params->cw_min;
	edca->cw_max = params->cw_max;
	edca->cw = params->cw_min;
	edca->txop_ns = params->txop * 32 * NSEC_PER_USEC;
	return 0;
}

static void radio_bss_info_changed(RADIO_BSS_CHANGED_ARGS)
{
	struct radio_vif *interface = radio_vif(vif);

	if (!(changed & (BSS_CHANGED_BEACON_ENABLED | BSS_CHANGED_BEACON_INT)))
		return;
	local_bh_disable();
	interface->beacon_ns = info->enable_beacon ? info->beacon_int * RADIO_TU_NS : 0;
	if (interface->beacon_ns)
		interface->tbtt_ns = (div64_u64(ktime_get_ns(), interface->beacon_ns) + 1) *
				interface->beacon_ns;
	radio_beacons(radio_phy(hw));
	local_bh_enable();
}

static void radio_beacon_send(struct radio_phy *phy, struct sk_buff *skb)
{
	struct radio_mpdu *mpdu = radio_mpdu_make(phy, NULL, skb);

	if (mpdu)
		radio_ppdu_send(&phy->queues[RADIO_BEACONS], NULL, mpdu);
}

static enum hrtimer_restart radio_beacon_timer(struct hrtimer *timer)
{
	struct radio_phy *phy = container_of(timer, struct radio_phy, beacons);
	u64 now = ktime_get_ns();
	struct radio_vif *vif;
	struct sk_buff *skb;

	list_for_each_entry(vif, &phy->vifs, list) {
		if (!vif->beacon_ns || vif->tbtt_ns > now)
			continue;
		vif->tbtt_ns += vif->beacon_ns;
		skb = ieee80211_beacon_get(phy->hw, vif->vif, 0);
		if (skb)
			radio_beacon_send(phy, skb);
		while (vif->vif->type == NL80211_IFTYPE_AP &&
		       (skb = ieee80211_get_buffered_bc(phy->hw, vif->vif)))
			radio_beacon_send(phy, skb);
		/* the last beacon that announces the switch was sent */
		if (radio_csa_active(vif->vif) && radio_csa_due(vif->vif))
			radio_csa_finish(vif->vif);
	}
	radio_beacons(phy);
	return HRTIMER_NORESTART;
}

/* Sets the timer of the next beacon. */
void radio_beacons(struct radio_phy *phy)
{
	u64 first = U64_MAX;
	struct radio_vif *vif;

	list_for_each_entry(vif, &phy->vifs, list)
		if (vif->beacon_ns)
			first = min(first, vif->tbtt_ns);
	if (first == U64_MAX)
		hrtimer_try_to_cancel(&phy->beacons);
	else
		radio_timer_set(&phy->beacons, first);
}

void radio_beacons_setup(struct radio_phy *phy)
{
	radio_timer_setup(&phy->beacons, radio_beacon_timer);
}

static u64 radio_get_tsf(struct ieee80211_hw *hw, struct ieee80211_vif *vif)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

static int radio_tx_last_beacon(struct ieee80211_hw *hw)
{
	return 1;
}

/* mac80211 requires this callback for a driver with its own rate control. The driver uses its
 * parameter rts_bytes.
 */
static int radio_set_rts_threshold(RADIO_RTS_ARGS)
{
	radio_phy(hw)->params.rts_bytes = value == U32_MAX ? 0 : value;
	return 0;
}

#define RADIO_OPS						\
	.start = radio_start,					\
	.stop = radio_stop,					\
	.config = radio_config,					\
	.flush = radio_flush,					\
	.sta_statistics = radio_sta_statistics,			\
	.configure_filter = radio_configure_filter,		\
	.add_interface = radio_add_interface,			\
	.remove_interface = radio_remove_interface,		\
	.tx = radio_tx,						\
	.sta_add = radio_sta_add,				\
	.sta_remove = radio_sta_remove,				\
	.conf_tx = radio_conf_tx,				\
	.bss_info_changed = radio_bss_info_changed,		\
	.get_tsf = radio_get_tsf,				\
	.tx_last_beacon = radio_tx_last_beacon,			\
	.ampdu_action = radio_ampdu_action,			\
	.set_rts_threshold = radio_set_rts_threshold,		\
	.get_et_sset_count = radio_stats_count,			\
	.get_et_strings = radio_stats_names,			\
	.get_et_stats = radio_stats_values

const struct ieee80211_ops radio_txq_ops = {
	RADIO_OPS,
	.wake_tx_queue = radio_wake,
	RADIO_CHANNEL_OPS
};

/* Without TXQs, frames of the qdisc reach .tx directly. */
const struct ieee80211_ops radio_fifo_ops = { RADIO_OPS };
