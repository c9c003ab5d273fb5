// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of a radio, as JSON and for `ethtool -S` of its interfaces.
 *
 * tx_mpdus = tx_acked + tx_failed + multicast, and tx_failed = tx_retries + tx_dropped. An MPDU
 * counts once per completed PPDU. The hardware's tries are tx_attempts.
 *
 * `ac` has counters by access category, without beacons: tries (`ppdus`), tries without a
 * response (`failed`), their MPDUs, and the time on the air (`tx_ns`), RTS and CTS included.
 * `waited` counts MPDUs at their first transmission. The sums of their waiting times are
 * `txq_ns` in mac80211's queue (in CoDel's units of 1,024 ns), `ring_ns` in driver and hardware
 * behind other frames, and `contention_ns` for the medium.
 *
 * medium_busy_ns and medium_answer_ns belong to the medium and are the same for all its radios:
 * see radio_medium_busy(). `txq` of a station has mac80211's counters of its queues: `drops` are
 * CoDel's, `overlimit` those of the queue's limit.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/cfg80211.h>
#include "radio.h"
#include "radio_trace.h"

static const struct {
	char name[ETH_GSTRING_LEN];
	size_t offset;
} radio_counters[] = {
#define RADIO_COUNTER(name) { #name, offsetof(struct radio_stats, name) }
	RADIO_COUNTER(tx_ppdus),
	RADIO_COUNTER(tx_attempts),
	RADIO_COUNTER(tx_aggregates),
	RADIO_COUNTER(tx_singles),
	RADIO_COUNTER(tx_beacons),
	RADIO_COUNTER(tx_rts),
	RADIO_COUNTER(tx_bars),
	RADIO_COUNTER(tx_mpdus),
	RADIO_COUNTER(tx_acked),
	RADIO_COUNTER(tx_failed),
	RADIO_COUNTER(tx_retries),
	RADIO_COUNTER(tx_dropped),
	RADIO_COUNTER(tx_collisions),
	RADIO_COUNTER(tx_internal),
	RADIO_COUNTER(tx_unanswered),
	RADIO_COUNTER(tx_ns),
	RADIO_COUNTER(tx_truesize),
	RADIO_COUNTER(tx_truesize_mpdus),
	RADIO_COUNTER(tx_fifo_stops),
	RADIO_COUNTER(tx_no_memory),
	RADIO_COUNTER(rx_ppdus),
	RADIO_COUNTER(rx_mpdus),
	RADIO_COUNTER(rx_errors),
	RADIO_COUNTER(rx_interrupts),
	RADIO_COUNTER(rx_ns),
	RADIO_COUNTER(tx_digest),
};

static u64 radio_counter(const struct radio_phy *phy, unsigned int i)
{
	return *(const u64 *)((const char *)&phy->stats + radio_counters[i].offset);
}

/* An additional value: PPDUs in the hardware queues now. */
static const char radio_queued_name[ETH_GSTRING_LEN] = "tx_queued";

static u64 radio_queued(const struct radio_phy *phy)
{
	u64 queued = 0;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		queued += phy->queues[i].aggregates + phy->queues[i].singles;
	return queued;
}

int radio_stats_count(struct ieee80211_hw *hw, struct ieee80211_vif *vif, int set)
{
	return set == ETH_SS_STATS ? ARRAY_SIZE(radio_counters) + 1 : 0;
}

void radio_stats_names(struct ieee80211_hw *hw, struct ieee80211_vif *vif, u32 set,
		       u8 *names)
{
	unsigned int i;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(radio_counters); i++)
		memcpy(names + i * ETH_GSTRING_LEN, radio_counters[i].name,
		       ETH_GSTRING_LEN);
	memcpy(names + i * ETH_GSTRING_LEN, radio_queued_name, ETH_GSTRING_LEN);
}

void radio_stats_values(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
			struct ethtool_stats *stats, u64 *values)
{
	const struct radio_phy *phy = radio_phy(hw);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(radio_counters); i++)
		values[i] = radio_counter(phy, i);
	values[i] = radio_queued(phy);
}

static void radio_backlog_add(struct radio_backlog *backlog, struct ieee80211_txq *txq)
{
	unsigned long frames, bytes;

	if (!txq)
		return;
	ieee80211_txq_get_depth(txq, &frames, &bytes);
	backlog->txq_packets += frames;
	backlog->txq_bytes += bytes;
}

static void radio_backlog_of(const struct radio_phy *phy, const struct radio_vif *interface,
			     struct radio_backlog *backlog)
{
	const struct radio_station *station;
	unsigned int i;

	backlog->ring_skbs = phy->unreported;
	backlog->ring_bytes = phy->unreported_bytes;
	if (phy->chip->wake)
		radio_backlog_add(backlog, interface->vif->txq);
	list_for_each_entry(station, &phy->stations, list)
		for (i = 0; phy->chip->wake && i < ARRAY_SIZE(station->sta->txq); i++)
			radio_backlog_add(backlog, station->sta->txq[i]);
}

/* Reports the backlog of each running radio with a device, oldest radio first. */
void radio_sample(void)
{
	struct radio_phy *phy = NULL;

	while ((phy = radio_phy_next(phy))) {
		const struct radio_vif *interface =
			list_first_entry_or_null(&phy->vifs, struct radio_vif, list);
		const struct net_device *dev =
			interface ? ieee80211_vif_to_wdev(interface->vif)->netdev : NULL;
		struct radio_backlog backlog = {};

		if (!dev || !netif_running(dev))
			continue;
		radio_backlog_of(phy, interface, &backlog);
		trace_radio_sampled(dev, &backlog);
	}
}

/* Counts a try of a PPDU and its time on the air. */
void radio_stats_try(struct radio_queue *queue, u64 air_ns)
{
	struct radio_category *category = &queue->phy->categories[queue->ac];

	queue->phy->stats.tx_attempts++;
	queue->phy->stats.tx_ns += air_ns;
	category->ppdus++;
	category->tx_ns += air_ns;
}

/* Counts a frame of that PPDU, and its waiting times at its first transmission. */
void radio_stats_sent(struct radio_queue *queue, const struct radio_mpdu *mpdu)
{
	struct radio_category *category = &queue->phy->categories[queue->ac];

	category->mpdus++;
	if (mpdu->tries > 1)
		return;
	category->waited++;
	category->txq_ns += mpdu->txq_ns;
	category->ring_ns += mpdu->head_ns - mpdu->taken_ns;
	category->contention_ns += mpdu->start_ns - mpdu->head_ns;
}

/* Counts a try without a response. */
void radio_stats_failed(struct radio_queue *queue, bool collision)
{
	if (collision)
		queue->phy->stats.tx_collisions++;
	else
		queue->phy->stats.tx_unanswered++;
	queue->phy->categories[queue->ac].failed++;
}

static void radio_print_category(struct seq_file *file, const char *name,
				 const struct radio_category *category)
{
	seq_printf(file, "\"%s\": {\"ppdus\": %llu, \"failed\": %llu, \"mpdus\": %llu, ",
		   name, category->ppdus, category->failed, category->mpdus);
	seq_printf(file, "\"tx_ns\": %llu, \"waited\": %llu, \"txq_ns\": %llu, ",
		   category->tx_ns, category->waited, category->txq_ns);
	seq_printf(file, "\"ring_ns\": %llu, \"contention_ns\": %llu}",
		   category->ring_ns, category->contention_ns);
}

static void radio_print_categories(struct seq_file *file, const struct radio_phy *phy)
{
	seq_puts(file, "\"ac\": {");
	radio_print_category(file, "vo", &phy->categories[IEEE80211_AC_VO]);
	seq_puts(file, ", ");
	radio_print_category(file, "vi", &phy->categories[IEEE80211_AC_VI]);
	seq_puts(file, ", ");
	radio_print_category(file, "be", &phy->categories[IEEE80211_AC_BE]);
	seq_puts(file, ", ");
	radio_print_category(file, "bk", &phy->categories[IEEE80211_AC_BK]);
	seq_puts(file, "}");
}

static void radio_print_ac(struct seq_file *file, const char *name, const u64 *ns)
{
	seq_printf(file, "\"%s\": {\"vo\": %llu, \"vi\": %llu, \"be\": %llu, \"bk\": %llu}",
		   name, ns[IEEE80211_AC_VO], ns[IEEE80211_AC_VI],
		   ns[IEEE80211_AC_BE], ns[IEEE80211_AC_BK]);
}

static void radio_print_txq(struct seq_file *file, const struct radio_txq_stats *txq)
{
	seq_printf(file, "\"txq\": {\"backlog_packets\": %llu, \"backlog_bytes\": %llu, ",
		   txq->backlog_packets, txq->backlog_bytes);
	seq_printf(file, "\"drops\": %llu, \"overlimit\": %llu, \"ecn_marks\": %llu, ",
		   txq->drops, txq->overlimit, txq->ecn_marks);
	seq_printf(file, "\"collisions\": %llu, \"tx_packets\": %llu, \"tx_bytes\": %llu}",
		   txq->collisions, txq->tx_packets, txq->tx_bytes);
}

static void radio_add_tid(struct radio_txq_stats *to, const struct cfg80211_txq_stats *from)
{
	to->backlog_packets += from->backlog_packets;
	to->backlog_bytes += from->backlog_bytes;
	to->drops += from->drops;
	to->overlimit += from->overlimit;
	to->ecn_marks += from->ecn_marks;
	to->collisions += from->collisions;
	to->tx_packets += from->tx_packets;
	to->tx_bytes += from->tx_bytes;
}

/* Requests mac80211's counters of the queues to @address, as `iw` does. */
static void radio_read_txq_stats(struct net_device *dev, const u8 *address,
				 struct radio_txq_stats *txq)
{
	struct station_info *info = kzalloc(sizeof(*info), GFP_KERNEL);
	unsigned int i;

	memset(txq, 0, sizeof(*txq));
	if (!info || cfg80211_get_station(dev, address, info))
		goto out;
	for (i = 0; info->pertid && i <= IEEE80211_NUM_TIDS; i++)
		if (info->pertid[i].filled & BIT(NL80211_TID_STATS_TXQ_STATS))
			radio_add_tid(txq, &info->pertid[i].txq_stats);
	cfg80211_sinfo_release_content(info);
out:
	kfree(info);
}

/* Returns the station after the first @number, or NULL. Called with bottom halves off. */
static struct radio_station *radio_station_at(struct radio_phy *phy, u32 number)
{
	struct radio_station *station;

	list_for_each_entry(station, &phy->stations, list)
		if (!number--)
			return station;
	return NULL;
}

/* Updates `txq` of all stations, in process context: it sleeps. */
void radio_stats_gather(struct radio_phy *phy)
{
	struct radio_txq_stats txq;
	struct radio_station *station;
	struct radio_vif *interface;
	struct net_device *dev;
	u8 address[ETH_ALEN];
	u32 i;

	for (i = 0;; i++) {
		local_bh_disable();
		interface = list_first_entry_or_null(&phy->vifs, struct radio_vif, list);
		dev = interface ? ieee80211_vif_to_wdev(interface->vif)->netdev : NULL;
		station = radio_station_at(phy, i);
		if (station)
			ether_addr_copy(address, station->sta->addr);
		local_bh_enable();
		if (!dev || !station)
			return;
		radio_read_txq_stats(dev, address, &txq);
		local_bh_disable();
		station = radio_station_at(phy, i);
		if (station && ether_addr_equal(station->sta->addr, address))
			station->txq = txq;
		local_bh_enable();
	}
}

/* Prints one line of JSON. Called with bottom halves off. */
void radio_stats_print(struct seq_file *file, struct radio_phy *phy)
{
	const struct radio_busy *busy = radio_medium_busy(phy->medium);
	const struct radio_station *station;
	const char *comma = "";
	unsigned int i;

	seq_printf(file, "{\"phy\": \"%s\", \"chip\": \"%s\", \"medium\": %llu",
		   phy->name, phy->chip->name, phy->params.medium);
	for (i = 0; i < ARRAY_SIZE(radio_counters); i++)
		seq_printf(file, ", \"%s\": %llu", radio_counters[i].name,
			   radio_counter(phy, i));
	seq_printf(file, ", \"medium_busy_ns\": %llu, \"medium_answer_ns\": %llu, ",
		   busy->busy_ns, busy->answer_ns);
	radio_print_categories(file, phy);
	seq_printf(file, ", \"%s\": %llu, \"aggregates\": {", radio_queued_name,
		   radio_queued(phy));
	for (i = 1; i <= RADIO_SUBFRAMES; i++) {
		if (!phy->histogram[i])
			continue;
		seq_printf(file, "%s\"%u\": %llu", comma, i, phy->histogram[i]);
		comma = ", ";
	}
	seq_puts(file, "}, \"stations\": [");
	comma = "";
	list_for_each_entry(station, &phy->stations, list) {
		seq_printf(file, "%s{\"addr\": \"%pM\", ", comma, station->sta->addr);
		radio_print_ac(file, "tx_ns", station->tx_ns);
		seq_puts(file, ", ");
		radio_print_ac(file, "rx_ns", station->rx_ns);
		if (phy->chip->wake) {
			seq_puts(file, ", ");
			radio_print_txq(file, &station->txq);
		}
		seq_puts(file, "}");
		comma = ", ";
	}
	seq_puts(file, "]}\n");
}
