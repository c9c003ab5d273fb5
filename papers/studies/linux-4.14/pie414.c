// SPDX-License-Identifier: GPL-2.0-only
/*
 * PIE as Linux 4.14 had it: a FIFO that drops with a probability, from the estimated wait.
 *
 *	every T_UPDATE	qdelay = queue / avg_dq_rate
 *			p += scale (alpha (qdelay - QDELAY_REF) + beta (qdelay - qdelay_old))
 *	arrival		dropped, or marked, with probability p; never in a burst, nor if the queue
 *			is short
 *	departure	each 16 KB of a queue of 16 KB or more are a sample of the rate
 *
 * Written from R. Pan et al., "Proportional Integral Controller Enhanced (PIE)", RFC 8033, with its
 * names and its estimate of the departure rate (section 5.2). The values are Linux 4.14's: a
 * reference of 20 ms, an interval of 30 ms (5.6 made both 15 ms and measures the wait of each
 * packet), two steps of the scale, a burst of 100 ms that only departures use up.
 *
 * A device that takes a burst of packets empties the queue at the speed of the CPU. In a guest this
 * takes no time, so a sample ends with the next burst, and the estimate is right. In a machine 11
 * packets take some microseconds, and the rate is overestimated by orders of magnitude.
 * `dequeue_ns` is the time by which the estimator's clock advances with each packet at one instant.
 *
 * parameter	unit	default	why
 * limit	packets	1000	4.14's
 * dequeue_ns	ns	0	0: the estimate is right
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "compat.h"
#include "hourglass_qdisc.h"

#define PIE_ONE		(1ULL << 32)	/* a probability of 1 */
#define PIE_REF_NS	(20 * NSEC_PER_MSEC)
#define PIE_UPDATE_NS	(30 * NSEC_PER_MSEC)
#define PIE_BURST_NS	(100 * NSEC_PER_MSEC)
#define PIE_LONG_NS	(250 * NSEC_PER_MSEC)	/* above, p rises by 2 % more */
#define PIE_STEP	(PIE_ONE / 50)		/* 2 % */
#define PIE_DQ_BYTES	16384
#define PIE_RATE_SHIFT	3			/* a sample's weight: an eighth */

static uint limit __read_mostly = 1000;
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "packets");

static uint dequeue_ns __read_mostly;
module_param(dequeue_ns, uint, 0444);
MODULE_PARM_DESC(dequeue_ns, "the estimator's time per packet, ns");

/* The state of the qdisc. */
struct pie414_sched {
	struct hrtimer timer;
	struct Qdisc *sch;
	u64 p;			/* of PIE_ONE */
	u64 qdelay_ns;
	u64 burst_ns;		/* what is left of the burst */
	u64 rate;		/* avg_dq_rate, bytes/s; 0: no sample yet */
	u64 since_ns;		/* start of the sample */
	u32 dq_bytes;		/* of the sample */
	bool measuring;
	u64 instant_ns;		/* of the last departure */
	u32 departures;		/* at that instant */
	u32 early;		/* drops and marks by p */
};

static void pie414_init_vars(struct pie414_sched *q)
{
	q->p = 0;
	q->qdelay_ns = 0;
	q->burst_ns = PIE_BURST_NS;
	q->rate = 0;
	q->measuring = false;
}

/* Returns whether a packet that arrives is dropped or marked. */
static bool pie414_is_early(struct Qdisc *sch)
{
	struct pie414_sched *q = qdisc_priv(sch);

	if (q->burst_ns || sch->qstats.backlog < 2 * psched_mtu(qdisc_dev(sch)))
		return false;
	if (q->qdelay_ns < PIE_REF_NS / 2 && q->p < PIE_ONE / 5)
		return false;
	return get_random_u32() < q->p;
}

static int pie414_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct pie414_sched *q = qdisc_priv(sch);

	if (sch->q.qlen >= sch->limit)
		return qdisc_drop(skb, sch, to_free);
	if (pie414_is_early(sch)) {
		q->early++;
		if (q->p > PIE_ONE / 10 || !INET_ECN_set_ce(skb))
			return qdisc_drop(skb, sch, to_free);
	}
	return qdisc_enqueue_tail(skb, sch);
}

/* Returns the estimator's time of a departure. */
static u64 pie414_clock(struct pie414_sched *q)
{
	u64 now = ktime_get_ns();

	q->departures = now == q->instant_ns ? q->departures + 1 : 0;
	q->instant_ns = now;
	return now + (u64)q->departures * dequeue_ns;
}

/* Updates the departure rate. */
static void pie414_depart(struct Qdisc *sch, u32 bytes)
{
	struct pie414_sched *q = qdisc_priv(sch);
	u64 now = pie414_clock(q), took_ns, rate;

	if (!q->measuring && sch->qstats.backlog >= PIE_DQ_BYTES) {
		q->measuring = true;
		q->since_ns = now;
		q->dq_bytes = 0;
	}
	if (!q->measuring)
		return;
	q->dq_bytes += bytes;
	took_ns = now - q->since_ns;
	if (q->dq_bytes < PIE_DQ_BYTES || !took_ns)
		return;
	rate = div64_u64((u64)q->dq_bytes * NSEC_PER_SEC, took_ns);
	q->rate = q->rate ? q->rate - (q->rate >> PIE_RATE_SHIFT) + (rate >> PIE_RATE_SHIFT) : rate;
	q->burst_ns -= min(q->burst_ns, took_ns);
	q->measuring = sch->qstats.backlog >= PIE_DQ_BYTES;
	q->since_ns = now;
	q->dq_bytes = 0;
}

static struct sk_buff *pie414_dequeue(struct Qdisc *sch)
{
	struct sk_buff *skb = qdisc_dequeue_head(sch);

	if (skb)
		pie414_depart(sch, qdisc_pkt_len(skb));
	return skb;
}

/* Returns the change of p: alpha = 1/8, beta = 5/4 per second, scaled for a small p. */
static s64 pie414_change(const struct pie414_sched *q, u64 qdelay_ns)
{
	s64 weighted_ns = ((s64)qdelay_ns - PIE_REF_NS) / 8 +
			  ((s64)qdelay_ns - (s64)q->qdelay_ns) * 5 / 4;
	s64 change = div_s64(clamp_t(s64, weighted_ns, -NSEC_PER_SEC, NSEC_PER_SEC) * 4294967296LL,
			     NSEC_PER_SEC);

	if (q->p < PIE_ONE / 100)
		change /= 8;
	else if (q->p < PIE_ONE / 10)
		change /= 2;
	else
		change = min_t(s64, change, PIE_STEP);
	return qdelay_ns > PIE_LONG_NS ? change + PIE_STEP : change;
}

static void pie414_update(struct Qdisc *sch)
{
	struct pie414_sched *q = qdisc_priv(sch);
	u64 qdelay_ns = 0, before_ns = q->qdelay_ns;
	bool is_short;

	if (q->rate)
		qdelay_ns = div64_u64((u64)sch->qstats.backlog * NSEC_PER_SEC, q->rate);
	is_short = !qdelay_ns && sch->qstats.backlog;
	q->p = clamp_t(s64, (s64)q->p + pie414_change(q, qdelay_ns), 0, PIE_ONE - 1);
	if (!qdelay_ns && !before_ns && !is_short)
		q->p = q->p * 98 / 100;
	q->qdelay_ns = qdelay_ns;
	if (qdelay_ns < PIE_REF_NS / 2 && before_ns < PIE_REF_NS / 2 && !q->p && q->rate)
		pie414_init_vars(q);
}

static enum hrtimer_restart pie414_fire(struct hrtimer *timer)
{
	struct pie414_sched *q = container_of(timer, struct pie414_sched, timer);
	spinlock_t *lock = qdisc_lock(qdisc_root_sleeping(q->sch));

	spin_lock(lock);
	pie414_update(q->sch);
	spin_unlock(lock);
	hrtimer_forward_now(timer, ns_to_ktime(PIE_UPDATE_NS));
	return HRTIMER_RESTART;
}

/* Fields of struct pie414_sched that become rows of the run's table `qdisc_stat`. */
static const struct hourglass_column pie414_columns[] = {
	HOURGLASS_COLUMN(struct pie414_sched, p),
	HOURGLASS_COLUMN(struct pie414_sched, qdelay_ns),
	HOURGLASS_COLUMN(struct pie414_sched, rate),
	HOURGLASS_COLUMN(struct pie414_sched, early),
};

HOURGLASS_STATS(pie414, pie414_columns)

static int pie414_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct pie414_sched *q = qdisc_priv(sch);

	sch->limit = limit;
	q->sch = sch;
	pie414_init_vars(q);
	hrtimer_setup(&q->timer, pie414_fire, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	hrtimer_start(&q->timer, ns_to_ktime(PIE_UPDATE_NS), HRTIMER_MODE_REL_SOFT);
	return 0;
}

static void pie414_destroy(struct Qdisc *sch)
{
	struct pie414_sched *q = qdisc_priv(sch);

	hrtimer_cancel(&q->timer);
}

static void pie414_reset(struct Qdisc *sch)
{
	qdisc_reset_queue(sch);
	pie414_init_vars(qdisc_priv(sch));
}

static struct Qdisc_ops pie414_ops __read_mostly = {
	.id		= "pie414",
	.priv_size	= sizeof(struct pie414_sched),
	.enqueue	= pie414_enqueue,
	.dequeue	= pie414_dequeue,
	.peek		= qdisc_peek_head,
	.init		= pie414_init,
	.reset		= pie414_reset,
	.destroy	= pie414_destroy,
	.dump_stats	= pie414_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init pie414_register(void)
{
	return register_qdisc(&pie414_ops);
}
module_init(pie414_register);

MODULE_LICENSE("GPL");
