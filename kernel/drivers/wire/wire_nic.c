// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: creation of NICs, and cables.
 *
 * `ip link add eth0 type wire` creates a NIC without a cable. Two NICs, in any namespaces, with
 * the same number in their `cable` attribute are connected. They have carrier while both are up.
 *
 * The defaults are those of a Broadcom NetXtreme without RSS (BCM5761), as tg3 configures it.
 * The profiles of a scenario configure other chips (src/hourglass/scenario/nics.py).
 *
 * parameter	unit	default	why
 * rate_bps	bit/s	10^9	Gigabit Ethernet
 * delay_ns	ns	0	a patch cable: 5 ns per metre
 * tx_ring	descr.	511	tg3: TG3_DEF_TX_RING_PENDING
 * rx_ring	descr.	200	tg3: TG3_DEF_RX_RING_PENDING
 * moderation		delay	tg3: host coalescing
 * rx_usecs	us	20	tg3: LOW_RXCOL_TICKS_CLRTCKS
 * rx_frames	frames	5	tg3: LOW_RXMAX_FRAMES
 * tx_usecs	us	72	tg3: LOW_TXCOL_TICKS_CLRTCKS
 * tx_frames	chains	53	tg3: LOW_TXMAX_FRAMES
 * vectors		1	tg3: MSI-X begins with 57765_PLUS; tg3_poll_work() does both
 * tx_wake	descr.	128	tg3: above TG3_TX_WAKEUP_THRESH, a quarter of the ring
 * tx_fifo	bytes	7808	61 TXMBUFs of 128 bytes (5718-PG108-R, registers 4420, 444C)
 * tx_context	descr.	0	tg3: the offloads are flags of the data's descriptors
 * bql_headers		0	tg3: tg3_start_xmit() gives BQL the skb's length
 * launch_time	ns	0	tg3 has no launch times, gates or, before BCM5719, PTP clock
 * rx_copy	bytes	256	tg3: TG3_RX_COPY_THRESHOLD
 * rx_buffer	bytes	1984	tg3_alloc_rx_data(): 64 + 1,536 + 64, and skb_shared_info
 * rx_large	bytes	16384	for jumbo frames: 9,046 instead of 1,536, from kmalloc()
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/rtnetlink.h>
#include "wire.h"
#define CREATE_TRACE_POINTS
#include "wire_trace.h"

#define WIRE_FEATURES	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | \
			 NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN | \
			 NETIF_F_HIGHDMA)

/* No chip of the profiles segments AccECN's skbs, so the kernel does. ethtool -K can request it. */
#define WIRE_OPTIONAL	NETIF_F_GSO_ACCECN

static LIST_HEAD(wire_nics);	/* under RTNL */
static DEFINE_HASHTABLE(wire_cables, 10);	/* NICs by their cable, under RTNL */

/* Reports the rings of every NIC, oldest first. No NIC is added or removed while the test runs. */
void wire_sample(void)
{
	const struct wire_queue *queue;
	const struct wire_nic *nic;

	list_for_each_entry(nic, &wire_nics, list) {
		u32 skbs = 0, bytes = 0;

		if (!netif_running(nic->dev))
			continue;
		wire_for_each_queue(queue, nic) {
			u32 queue_bytes = wire_tx_bytes(queue);

			skbs += queue->slot_count;
			bytes += queue_bytes;
			if (nic->queue_count > 1)
				trace_wire_sampled(nic->dev, wire_txq(queue), queue->slot_count,
						   queue_bytes);
		}
		trace_wire_sampled(nic->dev, NULL, skbs, bytes);
	}
}

static void wire_carrier(struct wire_nic *nic)
{
	if (nic->peer && netif_running(nic->dev) && netif_running(nic->peer->dev))
		netif_carrier_on(nic->dev);
	else
		netif_carrier_off(nic->dev);
}

static void wire_carrier_both(struct wire_nic *nic)
{
	wire_carrier(nic);
	if (nic->peer)
		wire_carrier(nic->peer);
}

static void wire_unplug(struct wire_nic *nic)
{
	struct wire_nic *peer = nic->peer;

	nic->cable = WIRE_NO_CABLE;
	hash_del(&nic->ends);
	if (!peer)
		return;
	local_bh_disable();
	nic->peer = NULL;
	peer->peer = NULL;
	wire_rx_flush(nic);
	wire_rx_flush(peer);
	wire_line_stop(&nic->line, ktime_get_ns());
	wire_line_stop(&peer->line, ktime_get_ns());
	wire_stamp_drop(nic);
	wire_stamp_drop(peer);
	wire_fetch(nic, ktime_get_ns());
	wire_fetch(peer, ktime_get_ns());
	local_bh_enable();
	wire_carrier(nic);
	wire_carrier(peer);
}

/* Connects @nic to @cable. Returns -EBUSY if that already has two ends. Under RTNL. */
int wire_plug(struct wire_nic *nic, int cable)
{
	struct wire_nic *other, *peer = NULL;

	if (cable == nic->cable)
		return 0;
	hash_for_each_possible(wire_cables, other, ends, cable) {
		if (other->cable != cable)
			continue;
		if (other->peer)
			return -EBUSY;
		peer = other;
	}
	wire_unplug(nic);
	nic->cable = cable;
	if (cable != WIRE_NO_CABLE)
		hash_add(wire_cables, &nic->ends, cable);
	if (peer) {
		nic->peer = peer;
		peer->peer = nic;
	}
	wire_carrier_both(nic);
	return 0;
}

/* Starts the NIC; see wire_halt(). */
void wire_start(struct wire_nic *nic)
{
	wire_itr_begin(nic);
	wire_queues_enable(nic);
	netif_tx_start_all_queues(nic->dev);
}

/*
 * Stops the NIC. Drops the frames in its rings, the part of the current chain that has not left,
 * and the frames in flight to it. Frames that have left still arrive.
 */
void wire_halt(struct wire_nic *nic)
{
	netif_tx_stop_all_queues(nic->dev);
	wire_cpu_drop(nic);
	wire_queues_disable(nic);
	hrtimer_cancel(&nic->fetching);
	wire_stamp_drop(nic);
	local_bh_disable();
	wire_tx_flush(nic);
	wire_line_stop(&nic->line, ktime_get_ns());
	if (nic->peer)
		wire_rx_recall(nic->peer, ktime_get_ns());
	wire_rx_flush(nic);
	local_bh_enable();
}

/* Allocates the NIC's memory with the configured size. */
static int wire_make_fifo(struct wire_nic *nic)
{
	u32 room = wire_fifo_room(nic->tx_fifo);
	struct wire_fifo_entry *entries = kcalloc(room, sizeof(*entries), GFP_KERNEL);

	if (!entries)
		return -ENOMEM;
	kfree(nic->fifo.entries);
	nic->fifo = (struct wire_fifo){ .size = nic->tx_fifo, .room = room, .entries = entries };
	return 0;
}

static int wire_open(struct net_device *dev)
{
	int err = wire_make_fifo(netdev_priv(dev));

	if (err)
		return err;
	wire_start(netdev_priv(dev));
	wire_carrier_both(netdev_priv(dev));
	return 0;
}

static int wire_stop(struct net_device *dev)
{
	wire_halt(netdev_priv(dev));
	wire_carrier_both(netdev_priv(dev));
	return 0;
}

static void wire_get_stats(struct net_device *dev,
			   struct rtnl_link_stats64 *stats)
{
	const struct wire_nic *nic = netdev_priv(dev);

	stats->tx_packets = nic->stats.tx_frames;
	stats->tx_bytes = nic->stats.tx_bytes;
	stats->tx_carrier_errors = nic->stats.tx_no_carrier;
	stats->tx_errors = nic->stats.tx_no_carrier;
	stats->tx_dropped = nic->stats.tx_no_memory;
	stats->rx_packets = nic->stats.rx_frames;
	stats->rx_bytes = nic->stats.rx_bytes;
	stats->rx_crc_errors = nic->stats.rx_corrupted;
	stats->rx_errors = nic->stats.rx_corrupted;
	stats->rx_missed_errors = nic->stats.rx_missed;
}

static int wire_init(struct net_device *dev)
{
	struct wire_nic *nic = netdev_priv(dev);
	int err;

	nic->dev = dev;
	nic->cable = WIRE_NO_CABLE;
	nic->line.rate_bps = NSEC_PER_SEC;
	nic->rx_ring = 200;
	nic->rx_moderation = (struct wire_moderation){ .usecs = 20, .frames = 5 };
	nic->tx_moderation = (struct wire_moderation){ .usecs = 72, .frames = 53 };
	nic->vectors = 1;
	nic->tx_wake = 128;
	nic->tx_fifo = 7808;
	nic->rx_copy = 256;
	nic->rx_buffer = 1984;
	nic->rx_large = 16384;
	wire_cpu_setup(nic);
	wire_fetch_setup(nic);
	wire_stamp_setup(nic);
	err = wire_queues_init(nic) ?: wire_tx_resize(nic, 511);
	if (err) {
		wire_queues_free(nic);
		return err;
	}
	list_add_tail(&nic->list, &wire_nics);
	return 0;
}

static void wire_uninit(struct net_device *dev)
{
	struct wire_nic *nic = netdev_priv(dev);

	wire_unplug(nic);
	list_del(&nic->list);
	wire_medium_join(nic, WIRE_NO_MEDIUM);
	wire_shaper_free(&nic->shaper);
	wire_trace_free(nic);
	wire_schedule_free(nic);
	wire_phc_close(nic);
	kfree(nic->fifo.entries);
	wire_queues_free(nic);
}

static const struct net_device_ops wire_netdev_ops = {
	.ndo_init = wire_init,
	.ndo_uninit = wire_uninit,
	.ndo_open = wire_open,
	.ndo_stop = wire_stop,
	.ndo_start_xmit = wire_xmit,
	.ndo_get_stats64 = wire_get_stats,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_setup_tc = wire_setup_tc,
#if HWTSTAMP_BY_IOCTL
	.ndo_eth_ioctl = wire_ioctl,
#else
	.ndo_hwtstamp_get = wire_stamps_get,
	.ndo_hwtstamp_set = wire_stamps_set,
#endif
};

static void wire_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &wire_netdev_ops;
	dev->ethtool_ops = &wire_ethtool_ops;
	dev->sysfs_groups[0] = &wire_attributes;
	dev->needs_free_netdev = true;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->features = WIRE_FEATURES;
	dev->hw_features = (WIRE_FEATURES & ~NETIF_F_HIGHDMA) | WIRE_OPTIONAL;
	dev->vlan_features = WIRE_FEATURES;
	dev->max_mtu = 9000;
	eth_hw_addr_random(dev);
}

static struct rtnl_link_ops wire_link_ops = {
	.kind = "wire",
	.priv_size = sizeof(struct wire_nic),
	.setup = wire_setup,
};

static int __init wire_module_init(void)
{
	return wire_buffer_init() ?: rtnl_link_register(&wire_link_ops);
}
module_init(wire_module_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Ethernet NICs and cables in virtual time");
MODULE_ALIAS_RTNL_LINK("wire");
