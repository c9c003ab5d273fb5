// SPDX-License-Identifier: GPL-2.0-only
/*
 * radio: creation of radios.
 *
 * A line "phy NAME key=value ..." to /proc/hourglass/radio creates a wiphy of that name. `iw phy
 * NAME set netns name NODE` moves it into a node. `iw phy NAME interface add wlan0 type managed`
 * (or __ap, ibss, monitor) creates its interface. A radio exists until the guest ends.
 */
#include <linux/device.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include "radio.h"
#define CREATE_TRACE_POINTS
#include "radio_trace.h"

static LIST_HEAD(radio_phys);

struct radio_phy *radio_phy_find(const char *name)
{
	struct radio_phy *phy;

	list_for_each_entry(phy, &radio_phys, all)
		if (!strcmp(phy->name, name))
			return phy;
	return NULL;
}

/* Returns another radio that has @address, or NULL. */
const struct radio_phy *radio_phy_peer(const struct radio_phy *phy, const u8 *address)
{
	const struct radio_phy *peer;

	list_for_each_entry(peer, &radio_phys, all)
		if (peer != phy && peer->medium == phy->medium &&
		    ether_addr_equal(peer->hw->wiphy->perm_addr, address))
			return peer;
	return NULL;
}

/* Returns the radio after @phy, or the first radio for NULL. */
struct radio_phy *radio_phy_next(struct radio_phy *phy)
{
	struct list_head *next = phy ? phy->all.next : radio_phys.next;

	return next == &radio_phys ? NULL : list_entry(next, struct radio_phy, all);
}

static u32 radio_phy_count(void)
{
	struct radio_phy *phy = NULL;
	u32 count = 0;

	while ((phy = radio_phy_next(phy)))
		count++;
	return count;
}

static void radio_phy_queues(struct radio_phy *phy)
{
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++) {
		struct radio_queue *queue = &phy->queues[i];

		queue->phy = phy;
		queue->ac = i;
		INIT_LIST_HEAD(&queue->ppdus);
		INIT_LIST_HEAD(&queue->on_air);
		INIT_LIST_HEAD(&queue->tids);
		/* until mac80211 configures it: DCF; beacons one slot after SIFS */
		queue->edca.aifsn = i == RADIO_BEACONS ? 1 : 2;
		queue->edca.cw_min = i == RADIO_BEACONS ? 0 : 15;
		queue->edca.cw_max = i == RADIO_BEACONS ? 0 : 1023;
		queue->edca.cw = queue->edca.cw_min;
	}
}

/* Applies the parameters that mac80211 needs while it runs. */
int radio_phy_apply(struct radio_phy *phy, const struct radio_params *params)
{
	local_bh_disable();
	phy->params = *params;
	phy->hw->tx_sk_pacing_shift = params->pacing_shift;
	local_bh_enable();
	return 0;
}

static void radio_phy_setup(struct radio_phy *phy, struct ieee80211_hw *hw,
			    const char *name, const struct radio_params *params)
{
	phy->hw = hw;
	phy->chip = radio_params_chip(params->chip);
	strscpy(phy->name, name, sizeof(phy->name));
	INIT_LIST_HEAD(&phy->vifs);
	INIT_LIST_HEAD(&phy->stations);
	INIT_LIST_HEAD(&phy->list);
	radio_phy_queues(phy);
	radio_rx_setup(phy);
	radio_cpu_setup(phy);
	radio_usb_setup(phy);
	radio_beacons_setup(phy);
	radio_phy_apply(phy, params);
	phy->backoffs.seed = params->seed;
	phy->errors.seed = ~params->seed;
}

static const struct ieee80211_ops *radio_phy_ops(const struct radio_params *params)
{
	if (params->chip != RADIO_ATH9K_HTC)
		return &radio_txq_ops;
	return RADIO_DRIVER_QUEUES ? &radio_fifo_ops : NULL;
}

static int radio_phy_register(struct radio_phy *phy, const u8 *address)
{
	u8 default_address[ETH_ALEN] = { 0x02, 0x00, 0x5e, 0x10, 0x00, radio_phy_count() };
	int err;

	phy->device = root_device_register(phy->name);
	if (IS_ERR(phy->device))
		return PTR_ERR(phy->device);
	SET_IEEE80211_DEV(phy->hw, phy->device);
	SET_IEEE80211_PERM_ADDR(phy->hw, is_zero_ether_addr(address) ? default_address : address);
	radio_caps_set(phy);
	err = ieee80211_register_hw(phy->hw);
	if (err)
		root_device_unregister(phy->device);
	return err;
}

/* Creates a radio, in process context. */
int radio_phy_make(const char *name, const struct radio_params *params,
		   const u8 *address)
{
	const struct ieee80211_ops *ops = radio_phy_ops(params);
	struct ieee80211_hw *hw;
	struct radio_phy *phy;
	int err;

	if (radio_phy_find(name))
		return -EEXIST;
	if (!ops) {
		pr_err("radio: %s: chip=ath9k_htc needs a kernel before 6.2: since then mac80211 keeps the queue of every driver\n",
		       name);
		return -EOPNOTSUPP;
	}
	hw = ieee80211_alloc_hw_nm(sizeof(*phy), ops, name);
	if (!hw)
		return -ENOMEM;
	phy = radio_phy(hw);
	radio_phy_setup(phy, hw, name, params);
	err = radio_phy_register(phy, address);
	if (!err) {
		phy->medium = radio_medium_join(phy, params->medium);
		if (phy->medium) {
			list_add_tail(&phy->all, &radio_phys);
			return 0;
		}
		err = -ENOMEM;
		ieee80211_unregister_hw(hw);
		root_device_unregister(phy->device);
	}
	ieee80211_free_hw(hw);
	return err;
}
