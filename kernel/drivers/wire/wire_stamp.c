// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: time stamps of frames by the NIC's clock (SO_TIMESTAMPING), for ptp4l.
 *
 * Both stamps are taken when the last bit of the frame passes, gap included. So the difference is
 * the time in the cable. The chip stamps one sent frame at a time, as igb and igc do: a request
 * during another one is ignored (igb_main.c, igb_xmit_frame_ring(), tx_hwtstamp_skipped). The
 * program gets the stamp when the frame has left. A frame that has arrived keeps its stamp if the
 * clock changes before the interrupt. All received frames are stamped
 * (HWTSTAMP_FILTER_ALL), whatever the program asks for. ixgbe's 82599 stamps only PTP.
 */
#include <linux/net_tstamp.h>
#include <linux/uaccess.h>
#include "wire.h"

static ktime_t wire_stamp(const struct wire_nic *nic, u64 mono_ns)
{
	return ns_to_ktime(wire_clock_read(&nic->clock, mono_ns));
}

/* Remembers @skb if it asks for a stamp. */
void wire_stamp_request(struct wire_nic *nic, struct sk_buff *skb)
{
	if (!(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP) || !nic->stamps_sent || nic->stamped)
		return;
	skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
	nic->stamped = skb_get(skb);
}

/* Forgets the stamped skb: its frame does not leave. */
void wire_stamp_drop(struct wire_nic *nic)
{
	hrtimer_cancel(&nic->stamping);
	kfree_skb(nic->stamped);
	nic->stamped = NULL;
}

/* The stamped skb leaves at @left_ns. */
void wire_stamp_sent(struct wire_nic *nic, u64 left_ns)
{
	if (left_ns == WIRE_NEVER) {
		wire_stamp_drop(nic);
		return;
	}
	nic->stamped_ns = left_ns;
	hrtimer_start(&nic->stamping, ns_to_ktime(left_ns), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart wire_stamp_report(struct hrtimer *timer)
{
	struct wire_nic *nic = container_of(timer, struct wire_nic, stamping);
	struct skb_shared_hwtstamps stamps = { .hwtstamp = wire_stamp(nic, nic->stamped_ns) };
	struct sk_buff *skb = nic->stamped;

	nic->stamped = NULL;
	skb_tstamp_tx(skb, &stamps);
	consume_skb(skb);
	return HRTIMER_NORESTART;
}

void wire_stamp_setup(struct wire_nic *nic)
{
	hrtimer_setup(&nic->stamping, wire_stamp_report, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* Stamps the frames that have arrived until @now_ns, before the clock changes. */
void wire_stamp_arrived(struct wire_nic *nic, u64 now_ns)
{
	struct wire_queue *queue;
	struct sk_buff *frame;

	wire_for_each_queue(queue, nic) {
		skb_queue_walk(&queue->frames, frame) {
			struct wire_cb *cb = wire_cb(frame);

			if (cb->arrival_ns > now_ns)
				break;
			if (!cb->stamp)
				cb->stamp = wire_stamp(nic, cb->arrival_ns);
		}
	}
}

/* Stamps a received @skb, whose frame had @cb. */
void wire_stamp_received(const struct wire_nic *nic, struct sk_buff *skb, const struct wire_cb *cb)
{
	if (nic->stamps_received)
		skb_hwtstamps(skb)->hwtstamp = cb->stamp ?: wire_stamp(nic, cb->arrival_ns);
}

int wire_stamps_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	const struct wire_nic *nic = netdev_priv(dev);

	if (!nic->phc)
		return -EOPNOTSUPP;
	config->flags = 0;
	config->tx_type = nic->stamps_sent ? HWTSTAMP_TX_ON : HWTSTAMP_TX_OFF;
	config->rx_filter = nic->stamps_received ? HWTSTAMP_FILTER_ALL : HWTSTAMP_FILTER_NONE;
	return 0;
}

int wire_stamps_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
		    struct netlink_ext_ack *extack)
{
	struct wire_nic *nic = netdev_priv(dev);

	if (!nic->phc)
		return -EOPNOTSUPP;
	if (config->tx_type != HWTSTAMP_TX_OFF && config->tx_type != HWTSTAMP_TX_ON)
		return -ERANGE;
	nic->stamps_sent = config->tx_type == HWTSTAMP_TX_ON;
	nic->stamps_received = config->rx_filter != HWTSTAMP_FILTER_NONE;
	return wire_stamps_get(dev, config);
}

#if HWTSTAMP_BY_IOCTL
int wire_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	struct kernel_hwtstamp_config config;
	int err;

	switch (command) {
	case SIOCGHWTSTAMP:
		err = wire_stamps_get(dev, &config);
		break;
	case SIOCSHWTSTAMP:
		if (copy_from_user(&config, request->ifr_data, sizeof(config)))
			return -EFAULT;
		err = wire_stamps_set(dev, &config, NULL);
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!err && copy_to_user(request->ifr_data, &config, sizeof(config)))
		err = -EFAULT;
	return err;
}
#endif
