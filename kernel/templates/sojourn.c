// SPDX-License-Identifier: GPL-2.0-only
/*
 * sojourn: a FIFO that marks packets whose wait exceeds a threshold.
 *
 *	in	at the tail; dropped if the queue has `limit` packets
 *	out	from the head; marked CE after more than `threshold` us, if ECN-capable
 *
 * Packets without ECN are never dropped for their wait. This is only the step of RFC 9331's
 * simplest marker. Marks count as `overlimits`, like those of red.
 */
#include <linux/module.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "hourglass_qdisc.h"

static uint limit __read_mostly = 1000;
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "packets");

static uint threshold __read_mostly = 1000;
module_param(threshold, uint, 0444);
MODULE_PARM_DESC(threshold, "us");

/* The state of the qdisc. */
struct sojourn_sched {
	u64 longest_ns;	/* the longest wait of a packet */
	u32 marked;
	u32 unmarked;	/* packets above the threshold without ECN */
};

/* The state of a queued packet. */
struct sojourn_cb {
	u64 since_ns;
};

static struct sojourn_cb *sojourn_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct sojourn_cb));
	return (struct sojourn_cb *)qdisc_skb_cb(skb)->data;
}

static int sojourn_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (sch->q.qlen >= sch->limit)
		return qdisc_drop(skb, sch, to_free);
	sojourn_cb(skb)->since_ns = ktime_get_ns();
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *sojourn_dequeue(struct Qdisc *sch)
{
	struct sojourn_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_head(sch);
	u64 waited_ns;

	if (!skb)
		return NULL;
	waited_ns = ktime_get_ns() - sojourn_cb(skb)->since_ns;
	q->longest_ns = max(q->longest_ns, waited_ns);
	if (waited_ns <= (u64)threshold * NSEC_PER_USEC)
		return skb;
	if (INET_ECN_set_ce(skb)) {
		q->marked++;
		qdisc_qstats_overlimit(sch);
	} else {
		q->unmarked++;
	}
	return skb;
}

/* Fields of struct sojourn_sched that become rows of the run's table `qdisc_stat`. */
static const struct hourglass_column sojourn_columns[] = {
	HOURGLASS_COLUMN(struct sojourn_sched, longest_ns),
	HOURGLASS_COLUMN(struct sojourn_sched, marked),
	HOURGLASS_COLUMN(struct sojourn_sched, unmarked),
};

HOURGLASS_STATS(sojourn, sojourn_columns)

static int sojourn_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	sch->limit = limit;
	return 0;
}

static struct Qdisc_ops sojourn_ops __read_mostly = {
	.id		= "sojourn",
	.priv_size	= sizeof(struct sojourn_sched),
	.enqueue	= sojourn_enqueue,
	.dequeue	= sojourn_dequeue,
	.peek		= qdisc_peek_head,
	.init		= sojourn_init,
	.reset		= qdisc_reset_queue,
	.dump_stats	= sojourn_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init sojourn_register(void)
{
	return register_qdisc(&sojourn_ops);
}
module_init(sojourn_register);

MODULE_LICENSE("GPL");
