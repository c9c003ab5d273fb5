// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the interface for ethtool(8): -g/-G rings, -l queues, -c/-C moderation, -S counters, -i,
 * and the link's speed. -k/-K need no code of a driver.
 *
 * For the two NICs of a cable, at any time:
 *	tx_frames + tx_duplicated = tx_lost + tx_policed + tx_shaper_full + rx_in_flight
 *				  + rx_frames + rx_corrupted + rx_missed of the peer
 */
#include <linux/ethtool.h>
#include <linux/math64.h>
#include "wire.h"

#define WIRE_RING_MAX		4096
#define WIRE_USECS_MAX		1000000
#define WIRE_FRAMES_MAX		4096

static const struct {
	char name[ETH_GSTRING_LEN];
	size_t offset;
} wire_counters[] = {
#define WIRE_COUNTER(name) { #name, offsetof(struct wire_stats, name) }
	WIRE_COUNTER(tx_frames),
	WIRE_COUNTER(tx_bytes),
	WIRE_COUNTER(tx_wire_bytes),
	WIRE_COUNTER(tx_skbs),
	WIRE_COUNTER(tx_tso_skbs),
	WIRE_COUNTER(tx_stops),
	WIRE_COUNTER(tx_no_carrier),
	WIRE_COUNTER(tx_no_memory),
	WIRE_COUNTER(tx_lost),
	WIRE_COUNTER(tx_policed),
	WIRE_COUNTER(tx_shaper_full),
	WIRE_COUNTER(tx_duplicated),
	WIRE_COUNTER(tx_reordered),
	WIRE_COUNTER(tx_marked),
	WIRE_COUNTER(rx_frames),
	WIRE_COUNTER(rx_bytes),
	WIRE_COUNTER(rx_corrupted),
	WIRE_COUNTER(rx_missed),
	WIRE_COUNTER(tx_interrupts),
	WIRE_COUNTER(rx_interrupts),
	WIRE_COUNTER(tx_digest),
};

/* An additional value: frames in flight, or waiting for the interrupt. */
static const char wire_in_flight[ETH_GSTRING_LEN] = "rx_in_flight";

/* Returns the number of values: two more for each of several queues. */
static int wire_get_sset_count(struct net_device *dev, int set)
{
	u32 queues = dev->num_tx_queues;

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(wire_counters) + 1 + (queues > 1 ? 2 * queues : 0);
}

static void wire_get_strings(struct net_device *dev, u32 set, u8 *names)
{
	unsigned int i;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(wire_counters); i++)
		memcpy(names + i * ETH_GSTRING_LEN, wire_counters[i].name,
		       ETH_GSTRING_LEN);
	names += i * ETH_GSTRING_LEN;
	memcpy(names, wire_in_flight, ETH_GSTRING_LEN);
	for (i = 0; dev->num_tx_queues > 1 && i < dev->num_tx_queues; i++) {
		names += ETH_GSTRING_LEN;
		snprintf(names, ETH_GSTRING_LEN, "tx_queue_%u_frames", i);
		names += ETH_GSTRING_LEN;
		snprintf(names, ETH_GSTRING_LEN, "rx_queue_%u_frames", i);
	}
}

static void wire_get_ethtool_stats(struct net_device *dev,
				   struct ethtool_stats *stats, u64 *values)
{
	const struct wire_nic *nic = netdev_priv(dev);
	const struct wire_queue *queue;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wire_counters); i++)
		values[i] = *(const u64 *)((const char *)&nic->stats +
					   wire_counters[i].offset);
	values[i] = 0;
	wire_for_each_queue(queue, nic)
		values[i] += skb_queue_len(&queue->frames);
	if (nic->queue_count == 1)
		return;
	wire_for_each_queue(queue, nic) {
		values[++i] = queue->tx_frames;
		values[++i] = queue->rx_frames;
	}
}

static void wire_ring_get(const struct wire_nic *nic,
			  struct ethtool_ringparam *ring)
{
	ring->tx_max_pending = WIRE_RING_MAX;
	ring->rx_max_pending = WIRE_RING_MAX;
	ring->tx_pending = nic->tx_ring;
	ring->rx_pending = nic->rx_ring;
}

static int wire_ring_set(struct net_device *dev,
			 const struct ethtool_ringparam *ring)
{
	struct wire_nic *nic = netdev_priv(dev);
	bool running = netif_running(dev);
	int err = 0;

	/* at least two chains, so that one waits while the other is sent */
	if (ring->rx_mini_pending || ring->rx_jumbo_pending ||
	    ring->tx_pending < 2 * (MAX_SKB_FRAGS + 1) || !ring->rx_pending)
		return -EINVAL;
	if (ring->tx_pending != nic->tx_ring) {
		if (running)
			wire_halt(nic);
		err = wire_tx_resize(nic, ring->tx_pending);
		if (running) {
			wire_start(nic);
			netif_tx_schedule_all(dev);
		}
	}
	if (!err)
		nic->rx_ring = ring->rx_pending;
	return err;
}

static void wire_coalesce_get(const struct wire_nic *nic,
			      struct ethtool_coalesce *coalesce)
{
	coalesce->rx_coalesce_usecs = nic->rx_moderation.usecs;
	coalesce->rx_max_coalesced_frames = nic->rx_moderation.frames;
	coalesce->tx_coalesce_usecs = nic->tx_moderation.usecs;
	coalesce->tx_max_coalesced_frames = nic->tx_moderation.frames;
}

static int wire_coalesce_set(struct wire_nic *nic,
			     const struct ethtool_coalesce *coalesce)
{
	struct wire_queue *queue;

	if (coalesce->rx_coalesce_usecs > WIRE_USECS_MAX ||
	    coalesce->tx_coalesce_usecs > WIRE_USECS_MAX ||
	    coalesce->rx_max_coalesced_frames > WIRE_FRAMES_MAX ||
	    coalesce->tx_max_coalesced_frames > WIRE_FRAMES_MAX)
		return -EINVAL;
	local_bh_disable();
	/* a configured interval is no longer adapted */
	if (nic->law > WIRE_INTERVAL &&
	    (coalesce->rx_coalesce_usecs != nic->rx_moderation.usecs ||
	     coalesce->tx_coalesce_usecs != nic->tx_moderation.usecs))
		nic->law = WIRE_INTERVAL;
	nic->rx_moderation.usecs = coalesce->rx_coalesce_usecs;
	nic->rx_moderation.frames = coalesce->rx_max_coalesced_frames;
	nic->tx_moderation.usecs = coalesce->tx_coalesce_usecs;
	nic->tx_moderation.frames = coalesce->tx_max_coalesced_frames;
	wire_itr_begin(nic);
	wire_for_each_queue(queue, nic) {
		wire_rx_arm(queue);
		wire_tx_arm(queue);
	}
	local_bh_enable();
	return 0;
}

static void wire_get_ringparam(RINGPARAM_ARGS)
{
	wire_ring_get(netdev_priv(dev), ring);
}

static int wire_set_ringparam(RINGPARAM_ARGS)
{
	return wire_ring_set(dev, ring);
}

static int wire_get_coalesce(COALESCE_ARGS)
{
	wire_coalesce_get(netdev_priv(dev), coalesce);
	return 0;
}

static int wire_set_coalesce(COALESCE_ARGS)
{
	return wire_coalesce_set(netdev_priv(dev), coalesce);
}

static void wire_get_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	const struct wire_nic *nic = netdev_priv(dev);

	channels->max_combined = nic->queue_count;
	channels->combined_count = nic->queue_count;
}

static int wire_get_link_ksettings(struct net_device *dev,
				   struct ethtool_link_ksettings *settings)
{
	const struct wire_nic *nic = netdev_priv(dev);

	settings->base.speed = div_u64(nic->line.rate_bps, 1000000);
	settings->base.duplex = nic->medium && nic->peer && nic->medium == nic->peer->medium ?
				DUPLEX_HALF : DUPLEX_FULL;
	settings->base.port = PORT_TP;
	return 0;
}

static int wire_get_ts_info(struct net_device *dev, struct kernel_ethtool_ts_info *info)
{
	const struct wire_nic *nic = netdev_priv(dev);

	ethtool_op_get_ts_info(dev, info);
	if (!nic->phc)
		return 0;
	info->phc_index = ptp_clock_index(nic->phc);
	info->so_timestamping |= SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
				 SOF_TIMESTAMPING_RAW_HARDWARE;
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_ALL);
	return 0;
}

static void wire_get_drvinfo(struct net_device *dev,
			     struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "wire", sizeof(info->driver));
}

const struct ethtool_ops wire_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS |
				     ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo = wire_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = wire_get_link_ksettings,
	.get_ringparam = wire_get_ringparam,
	.set_ringparam = wire_set_ringparam,
	.get_channels = wire_get_channels,
	.get_coalesce = wire_get_coalesce,
	.set_coalesce = wire_set_coalesce,
	.get_sset_count = wire_get_sset_count,
	.get_strings = wire_get_strings,
	.get_ethtool_stats = wire_get_ethtool_stats,
	.get_ts_info = wire_get_ts_info,
};
