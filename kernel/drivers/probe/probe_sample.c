// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: samples of sockets and queues, sums and balances.
 *
 * This code runs in softirq, while no process holds a socket: time advances only when all
 * processes sleep. Sockets are read as sock_diag reads them (tcp_get_info(), the congestion
 * control's get_info()), so the values are the same.
 */
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/slab.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/tcp.h>
#include "probe.h"
#include "wire.h"
#include "wire_trace.h"

static s64 sampled_ns; /* the time of the current sample */

static void probe_sample_tcp(struct probe_connection *connection, unsigned int side)
{
	struct probe_end *end = &connection->end[side];
	const struct tcp_congestion_ops *ops;
	struct sock *sk = end->sk;
	struct tcp_info info = {};
	union tcp_cc_info cc = {};
	struct probe_tcp *tcp;
	int attribute = 0;

	if (!sk || sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_SYN_SENT ||
	    WARN_ON_ONCE(sock_owned_by_user(sk)))
		return;
	BUILD_BUG_ON(sizeof(info) > sizeof(tcp->info) || sizeof(cc) > sizeof(tcp->ca_info));
	tcp_get_info(sk, &info);
	tcp = probe_emit(PROBE_TCP, sizeof(*tcp));
	if (!tcp)
		return;
	tcp->t_ns = sampled_ns;
	tcp->stream = (struct probe_stream){ .id = connection->watch->id,
					     .way = side };
	tcp->info_bytes = sizeof(info);
	memcpy(tcp->info, &info, sizeof(info));
	BUILD_BUG_ON(SK_MEMINFO_VARS != ARRAY_SIZE(tcp->meminfo));
	sk_get_meminfo(sk, tcp->meminfo);
	ops = inet_csk(sk)->icsk_ca_ops;
	if (ops && ops->get_info && ops->get_info(sk, ~0U, &attribute, &cc)) {
		tcp->ca_attribute = attribute;
		memcpy(tcp->ca_info, &cc, sizeof(cc));
	}
	tcp->tsq_limit = end->tsq_limit;
	tcp->tsq_truesize = end->tsq_truesize;
	tcp->tsq_term = end->tsq_term;
	tcp->tsq_rate = end->tsq_rate;
	tcp->tsq_shift = end->tsq_shift;
	tcp->tsq_throttled = end->tsq_throttled;
	probe_end_hold(end, end->hold, sampled_ns);
	tcp->hold = end->hold;
	tcp->gso_bytes = end->gso_bytes;
	memcpy(tcp->hold_ns, end->hold_ns, sizeof(tcp->hold_ns));
	probe_cc_sample(sk, tcp->stream, sampled_ns);
}

/* Returns a record of the device, without sizes; NULL if its node is not watched, or if memory is
 * short.
 */
static struct probe_queue *probe_queue_new(const struct net_device *dev, u16 number)
{
	struct probe_queue *queue;
	int node = probe_node(dev_net(dev));

	if (node < 0)
		return NULL;
	queue = probe_emit(PROBE_QUEUE, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->t_ns = sampled_ns;
	queue->node = node;
	queue->number = number;
	strscpy(queue->device, dev->name, sizeof(queue->device));
	return queue;
}

/* Adds the backlog of the qdisc and its children. */
static void probe_backlog(struct probe_queue *queue, struct Qdisc *qdisc)
{
	u32 packets, bytes;

	if (!qdisc)
		return;
	qdisc_qstats_qlen_backlog(qdisc, &packets, &bytes);
	queue->qdisc_packets += packets;
	queue->qdisc_bytes += bytes;
}

/* Adds the backlog of a transmit queue's own qdisc, which mq and its kind give each queue. */
static void probe_txq_backlog(struct probe_queue *queue, const struct net_device *dev,
			      const struct netdev_queue *txq)
{
	struct Qdisc *root = rcu_dereference_bh(dev->qdisc);

	if (root && root->flags & TCQ_F_MQROOT)
		probe_backlog(queue, rcu_dereference_bh(txq->qdisc));
}

/* Returns a record of the device with its qdisc's backlog, or NULL. */
struct probe_queue *probe_queue_of(const struct net_device *dev)
{
	struct probe_queue *queue = probe_queue_new(dev, PROBE_WHOLE_NIC);
	struct Qdisc *root;
	unsigned int i;

	if (!queue)
		return NULL;
	root = rcu_dereference_bh(dev->qdisc);
	if (root && !(root->flags & TCQ_F_MQROOT))
		probe_backlog(queue, root);
	for (i = 0; i < dev->real_num_tx_queues; i++)
		probe_txq_backlog(queue, dev, netdev_get_tx_queue(dev, i));
	return queue;
}

static void probe_bql(struct probe_queue *queue, const struct netdev_queue *txq)
{
#ifdef CONFIG_BQL
	queue->bql_limit += txq->dql.limit;
	queue->bql_inflight += txq->dql.num_queued - txq->dql.num_completed;
#endif
}

static void probe_wire_sampled(void *data, const struct net_device *dev,
			       const struct netdev_queue *txq, u32 skbs, u32 bytes)
{
	struct probe_queue *queue = txq ? probe_queue_new(dev, txq - dev->_tx) :
					  probe_queue_of(dev);
	unsigned int i;

	if (!queue)
		return;
	queue->ring_skbs = skbs;
	queue->ring_bytes = bytes;
	if (txq) {
		probe_txq_backlog(queue, dev, txq);
		probe_bql(queue, txq);
		return;
	}
	for (i = 0; i < dev->real_num_tx_queues; i++)
		probe_bql(queue, netdev_get_tx_queue(dev, i));
}

int probe_sample_start(void)
{
	return register_trace_wire_sampled(probe_wire_sampled, NULL);
}

/* Samples every socket and every queue. */
void probe_sample(s64 t_ns)
{
	struct probe_connection *connection;
	unsigned int side;

	sampled_ns = t_ns;
	list_for_each_entry(connection, &probe_connections, list)
		for (side = 0; side < 2; side++)
			probe_sample_tcp(connection, side);
	wire_sample();
	probe_radio_sample();
}

static void probe_totals_of(const struct probe_watch *watch, u8 direction, bool data, s64 t_ns)
{
	const struct probe_sums *sums = watch->oneway[direction].sums[data];
	unsigned int i;

	for (i = 0; sums && i < PROBE_VISITS && sums[i].packets; i++) {
		struct probe_layers *layers = probe_emit(PROBE_LAYERS, sizeof(*layers));

		if (!layers)
			return;
		layers->t_ns = t_ns;
		layers->stream = (struct probe_stream){ .id = watch->id, .way = direction };
		layers->node = sums[i].node;
		layers->data = data;
		layers->packets = sums[i].packets;
		memcpy(layers->layer_ns, sums[i].ns, sizeof(layers->layer_ns));
	}
}

/* Returns whether packets of a program's stream ended since the last call: most streams are
 * short.
 */
static bool probe_totals_grew(const struct probe_watch *watch)
{
	u64 reported = watch->program->reported;
	unsigned int ecn;

	watch->program->reported = 0;
	for (ecn = 0; ecn < PROBE_ECN_COUNT; ecn++)
		watch->program->reported += watch->oneway[0].of[ecn].delivered +
					watch->oneway[1].of[ecn].delivered;
	return watch->program->reported != reported;
}

/* Reports the layers of all packets that have ended. */
void probe_totals(s64 t_ns)
{
	unsigned int i;

	for (i = 0; i < probe_watch_count; i++) {
		if (probe_watches[i]->program && !probe_totals_grew(probe_watches[i]))
			continue;
		probe_totals_of(probe_watches[i], 0, true, t_ns);
		probe_totals_of(probe_watches[i], 0, false, t_ns);
		probe_totals_of(probe_watches[i], 1, true, t_ns);
		probe_totals_of(probe_watches[i], 1, false, t_ns);
	}
}

static void probe_balance_of(const struct probe_oneway *oneway, struct probe_stream stream,
			     s64 t_ns)
{
	struct probe_balance *balance = probe_emit(PROBE_BALANCE, sizeof(*balance));
	unsigned int ecn;

	if (!balance)
		return;
	balance->t_ns = t_ns;
	balance->stream = stream;
	for (ecn = 0; ecn < PROBE_ECN_COUNT; ecn++) {
		balance->sent += oneway->of[ecn].sent;
		balance->duplicated += oneway->of[ecn].duplicated;
		balance->delivered += oneway->of[ecn].delivered;
		balance->dropped += oneway->of[ecn].dropped;
		balance->in_flight += oneway->of[ecn].in_flight;
	}
	balance->unmatched = oneway->unmatched;
}

/* Reports the same counts by ECN codepoint, unless all packets were Not-ECT. */
static void probe_codepoints_of(const struct probe_oneway *oneway, struct probe_stream stream,
				s64 t_ns)
{
	struct probe_codepoints *codepoints;
	unsigned int ecn;

	if (!oneway->of[PROBE_ECN_ECT1].sent && !oneway->of[PROBE_ECN_ECT0].sent &&
	    !oneway->of[PROBE_ECN_CE].sent)
		return;
	codepoints = probe_emit(PROBE_CODEPOINTS, sizeof(*codepoints));
	if (!codepoints)
		return;
	codepoints->t_ns = t_ns;
	codepoints->stream = stream;
	for (ecn = 0; ecn < PROBE_ECN_COUNT; ecn++) {
		codepoints->sent[ecn] = oneway->of[ecn].sent;
		codepoints->duplicated[ecn] = oneway->of[ecn].duplicated;
		codepoints->became[ecn] = oneway->of[ecn].became;
		codepoints->delivered[ecn] = oneway->of[ecn].delivered;
		codepoints->dropped[ecn] = oneway->of[ecn].dropped;
		codepoints->in_flight[ecn] = oneway->of[ecn].in_flight;
	}
}

/* Reports the balance of all packets. */
void probe_balance(s64 t_ns)
{
	unsigned int i;
	u8 direction;

	probe_slots_count();
	for (i = 0; i < probe_watch_count; i++) {
		const struct probe_watch *watch = probe_watches[i];

		for (direction = 0; direction < 2; direction++) {
			struct probe_stream stream = { .id = watch->id, .way = direction };

			probe_balance_of(&watch->oneway[direction], stream, t_ns);
			probe_codepoints_of(&watch->oneway[direction], stream, t_ns);
		}
	}
}
