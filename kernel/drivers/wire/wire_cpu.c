// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the time of packets on the CPU of their node (kernel/hooks/program_cpu.c).
 *
 *	qdisc ---> ndo_start_xmit: the queue stops ... CPU ... ring; the queue is woken
 *	ring of received frames ---> NAPI's poll: first frame ... CPU ... stack; the next frame
 *
 * While the CPU works on an skb, the device takes no other one. So the qdisc dequeues the next
 * one when the CPU has completed it, as in a real machine, where dequeuing and the driver are one
 * loop. Bulk dequeuing takes the skbs of a bulk at once, as the kernel does.
 *
 * A poll lasts as long as frames are available, up to NAPI's weight, and GRO works over all its
 * frames. The interrupt stays masked. A damaged frame is dropped by the NIC and takes no time.
 */
#include "wire.h"

/* Returns true if the CPU hands the skb to the ring later. */
bool wire_cpu_sends(struct wire_nic *nic, struct sk_buff *skb)
{
	u64 sent_ns = hourglass_cpu_book(dev_net(nic->dev), HOURGLASS_CPU_SENT, 1);

	if (!sent_ns)
		return false;
	nic->handed = skb;
	netif_tx_stop_all_queues(nic->dev);
	hrtimer_start(&nic->handing, ns_to_ktime(sent_ns), HRTIMER_MODE_ABS_SOFT);
	return true;
}

/* The queue after that of the skb is woken first, so that the queues take turns. */
static enum hrtimer_restart wire_cpu_sent(struct hrtimer *timer)
{
	struct wire_nic *nic = container_of(timer, struct wire_nic, handing);
	struct wire_queue *queue = wire_queue_of(nic, nic->handed);
	struct sk_buff *skb = nic->handed;
	u32 i;

	nic->handed = NULL;
	wire_tx_ring(queue, skb);
	for (i = 1; i <= nic->queue_count; i++) {
		struct wire_queue *next = &nic->queues[(queue->index + i) % nic->queue_count];

		if (wire_tx_room(next))
			netif_tx_wake_queue(wire_txq(next));
	}
	return HRTIMER_NORESTART;
}

/* Returns whether the CPU has received the first frame. If not, it begins now. */
bool wire_cpu_received(struct wire_queue *queue, u64 now_ns)
{
	if (!queue->received_ns)
		queue->received_ns = hourglass_cpu_book(dev_net(queue->nic->dev),
							HOURGLASS_CPU_RECEIVED, 1);
	if (queue->received_ns > now_ns)
		return false;
	queue->received_ns = 0;
	return true;
}

void wire_cpu_setup(struct wire_nic *nic)
{
	hrtimer_setup(&nic->handing, wire_cpu_sent, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* Drops the skb on its way to the ring: the device goes down. */
void wire_cpu_drop(struct wire_nic *nic)
{
	hrtimer_cancel(&nic->handing);
	if (nic->handed)
		wire_tx_refuse(nic, nic->handed);
	nic->handed = NULL;
}
