// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the queues of a NIC and their interrupts.
 *
 * Interrupts belong to vectors. If both directions of a queue share a vector, each interrupt
 * serves both, so the events of one direction shorten the other's moderation. For example, the
 * interrupt for a received acknowledgment also reports transmissions. Two vectors are
 * independent, and so are the vectors of several queues.
 *
 * `ip link add numtxqueues N numrxqueues N type wire` makes a NIC with several queues. BQL, NAPI
 * and GRO are per queue.
 */
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include "wire.h"

/* ixgbe uses at most 64 of a chip's 128 queues. */
#define WIRE_QUEUES_MAX	64

/* Arms the interrupt for @due_ns, unless it is masked. */
static void wire_vector_set(struct wire_vector *vector, u64 due_ns)
{
	s64 delay;

	if (vector->masked || due_ns == vector->fires_ns)
		return;
	vector->fires_ns = due_ns;
	if (due_ns == WIRE_NEVER) {
		hourglass_event_set(&vector->event, -1);
		return;
	}
	delay = due_ns - ktime_get_ns();
	hourglass_event_set(&vector->event, max_t(s64, delay, 0));
}

/* Returns the earlier time of both directions if they share a vector, else @own_due_ns. */
static u64 wire_due(const struct wire_queue *queue, u64 own_due_ns,
		    u64 (*other)(const struct wire_queue *queue))
{
	return wire_shared(queue->nic) ? min(own_due_ns, other(queue)) : own_due_ns;
}

/* Arms the interrupt that reports transmissions. */
void wire_tx_arm(struct wire_queue *queue)
{
	wire_vector_set(wire_tx_vector(queue), wire_due(queue, wire_tx_due(queue), wire_rx_due));
}

/* Arms the interrupt that reports arrivals. */
void wire_rx_arm(struct wire_queue *queue)
{
	wire_vector_set(&queue->rx_vector, wire_due(queue, wire_rx_due(queue), wire_tx_due));
}

static void wire_interrupt(struct time_travel_event *event)
{
	struct wire_vector *vector = container_of(event, struct wire_vector,
						  event);

	if (vector->polling) {
		__napi_schedule_irqoff(&vector->napi);
		return;
	}
	vector->masked = true;
	vector->fires_ns = WIRE_NEVER;
	if (vector->itr.law != WIRE_DELAY)
		wire_itr_fired(&vector->itr, ktime_get_ns());
	napi_schedule_irqoff(&vector->napi);
}

/* Ends the service of an interrupt by NAPI. */
static void wire_served(struct wire_nic *nic, struct wire_vector *vector)
{
	if (nic->law > WIRE_INTERVAL)
		wire_itr_served(&vector->itr, div_u64(nic->line.rate_bps, 1000000),
				get_jiffies_64());
	vector->masked = false;
}

static int wire_tx_napi(struct napi_struct *napi, int budget)
{
	struct wire_queue *queue = container_of(napi, struct wire_queue, tx_vector.napi);

	wire_tx_reap(queue, ktime_get_ns());
	if (napi_complete_done(napi, 0)) {
		wire_served(queue->nic, &queue->tx_vector);
		wire_tx_arm(queue);
	}
	return 0;
}

static int wire_rx_napi(struct napi_struct *napi, int budget)
{
	struct wire_queue *queue = container_of(napi, struct wire_queue, rx_vector.napi);
	struct wire_vector *vector = &queue->rx_vector;
	u64 now_ns = ktime_get_ns();
	int done;

	if (wire_shared(queue->nic) && !vector->polling)
		wire_tx_reap(queue, now_ns);
	wire_rx_poll(queue, now_ns, budget);
	vector->polling = queue->received_ns > now_ns && !napi_disable_pending(napi);
	if (vector->polling) {
		/* NAPI stays scheduled, so GRO holds its packets */
		hourglass_event_set(&vector->event, queue->received_ns - now_ns);
		return 0;
	}
	done = queue->polled;
	queue->polled = 0;
	queue->received_ns = 0;
	if (done < budget && napi_complete_done(napi, done)) {
		queue->nic->stats.rx_interrupts += !!done;
		wire_served(queue->nic, vector);
		wire_rx_arm(queue);
	}
	return done;
}

/* Starts new intervals. */
void wire_itr_begin(struct wire_nic *nic)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic) {
		struct wire_itr *tx = &queue->tx_vector.itr, *rx = &queue->rx_vector.itr;

		*tx = (struct wire_itr){ .serves[WIRE_TX] = true };
		*rx = (struct wire_itr){ .serves = { wire_shared(nic), true } };
		wire_itr_start(tx, nic->law, nic->tx_moderation.usecs);
		wire_itr_start(rx, nic->law, nic->rx_moderation.usecs);
	}
}

static void wire_vector_enable(struct wire_vector *vector)
{
	vector->masked = false;
	vector->fires_ns = WIRE_NEVER;
	napi_enable(&vector->napi);
}

static void wire_vector_disable(struct wire_vector *vector)
{
	napi_disable(&vector->napi);
	vector->masked = true;
	hourglass_event_set(&vector->event, -1);
}

void wire_queues_enable(struct wire_nic *nic)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic) {
		wire_vector_enable(&queue->tx_vector);
		wire_vector_enable(&queue->rx_vector);
	}
}

void wire_queues_disable(struct wire_nic *nic)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic) {
		wire_vector_disable(&queue->tx_vector);
		wire_vector_disable(&queue->rx_vector);
	}
}

typedef int (*wire_poll)(struct napi_struct *napi, int budget);

static void wire_vector_setup(struct wire_vector *vector,
			      struct net_device *dev, wire_poll poll, bool tx)
{
	if (tx)
		netif_napi_add_tx(dev, &vector->napi, poll);
	else
		netif_napi_add(dev, &vector->napi, poll);
	time_travel_set_event_fn(&vector->event, wire_interrupt);
	vector->masked = true;
}

/* Makes the device's queues. The receive queues are the first ones. */
int wire_queues_init(struct wire_nic *nic)
{
	u32 count = nic->dev->num_tx_queues, index;

	if (count > WIRE_QUEUES_MAX || nic->dev->num_rx_queues > count)
		return -EINVAL;
	nic->queues = kcalloc(count, sizeof(*nic->queues), GFP_KERNEL);
	if (!nic->queues)
		return -ENOMEM;
	nic->queue_count = count;
	for (index = 0; index < count; index++) {
		struct wire_queue *queue = &nic->queues[index];

		queue->nic = nic;
		queue->index = index;
		queue->rank = index;
		__skb_queue_head_init(&queue->frames);
		wire_vector_setup(&queue->tx_vector, nic->dev, wire_tx_napi, true);
		wire_vector_setup(&queue->rx_vector, nic->dev, wire_rx_napi, false);
	}
	return 0;
}

void wire_queues_free(struct wire_nic *nic)
{
	struct wire_queue *queue;

	wire_for_each_queue(queue, nic) {
		netif_napi_del(&queue->tx_vector.napi);
		netif_napi_del(&queue->rx_vector.napi);
	}
	kvfree(nic->slots);
	kfree(nic->queues);
	nic->queues = NULL;
	nic->queue_count = 0;
}
