// SPDX-License-Identifier: GPL-2.0-only
/*
 * A radio's counters: as JSON, and as ethtool(8) -S shows them for its interfaces.
 *
 * tx_mpdus = tx_acked + tx_failed + those to nobody in particular, and
 * tx_failed = tx_retries + tx_dropped: an MPDU counts once per PPDU that is over;
 * tries of the hardware are tx_attempts. queue_ns, contention_ns and air_ns are sums
 * over MPDUs: behind other PPDUs, at the head of the queue, on the air.
 */
#include <linux/ethtool.h>
#include <linux/seq_file.h>
#include "radio.h"

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
	RADIO_COUNTER(queue_ns),
	RADIO_COUNTER(contention_ns),
	RADIO_COUNTER(air_ns),
	RADIO_COUNTER(tx_digest),
};

static u64 radio_counter(const struct radio_phy *phy, unsigned int i)
{
	return *(const u64 *)((const char *)&phy->stats + radio_counters[i].offset);
}

/* Beside the counters: PPDUs in the hardware queues now. */
static const char radio_queued_name[ETH_GSTRING_LEN] = "tx_queued";

static u64 radio_queued(const struct radio_phy *phy)
{
	u64 queued = 0;
	unsigned int i;

	for (i = 0; i < RADIO_QUEUES; i++)
		queued += phy->queues[i].aggregates + phy->queues[i].others;
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

static void radio_print_ac(struct seq_file *file, const char *name, const u64 *ns)
{
	seq_printf(file, "\"%s\": {\"vo\": %llu, \"vi\": %llu, \"be\": %llu, \"bk\": %llu}",
		   name, ns[IEEE80211_AC_VO], ns[IEEE80211_AC_VI],
		   ns[IEEE80211_AC_BE], ns[IEEE80211_AC_BK]);
}

/* One line of JSON. With bottom halves off. */
void radio_stats_print(struct seq_file *file, struct radio_phy *phy)
{
	const struct radio_station *station;
	const char *comma = "";
	unsigned int i;

	seq_printf(file, "{\"phy\": \"%s\", \"chip\": \"%s\", \"medium\": %llu",
		   phy->name, phy->chip->name, phy->params.medium);
	for (i = 0; i < ARRAY_SIZE(radio_counters); i++)
		seq_printf(file, ", \"%s\": %llu", radio_counters[i].name,
			   radio_counter(phy, i));
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
		seq_puts(file, "}");
		comma = ", ";
	}
	seq_puts(file, "]}\n");
}
