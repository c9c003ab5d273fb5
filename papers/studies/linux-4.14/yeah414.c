// SPDX-License-Identifier: GPL-2.0-only
/*
 * YeAH as Linux 4.14 counted: two modes, chosen each round trip by the queue that the flow has.
 *
 *	queue = cwnd * (rtt - base) / rtt		rtt: the shortest of the round
 *	fast	while queue <= 80 and rtt - base <= base / 8: Scalable TCP
 *	slow	otherwise: Reno; beyond 80 the queue is removed from the window at once
 *	loss	fast for fewer than 16 rounds: the queue goes, at least an eighth; else a half
 *
 * Written from A. Baiocchi, A. Castellani, F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP"
 * (PFLDnet 2007), with its symbols.
 *
 * Until Linux 5.7 the slow mode counted an ACK of many segments (a stretch ACK, which Wi-Fi's
 * block acks and GRO make) as one segment, and the fast mode added at most one segment per ACK.
 * `stretch` = 1 counts all segments, as later kernels do.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

#define YEAH_QUEUE	80U	/* Q_max, segments */
#define YEAH_PHI	8U	/* 1 / phi: the tolerated share of the base round trip */
#define YEAH_RHO	16U	/* rounds in slow mode that mean competition with Reno */
#define YEAH_ZETA	50U	/* fast rounds after which no Reno flow competes */
#define YEAH_EVERY	100U	/* Scalable TCP: acknowledged segments for each segment added */
#define YEAH_SAMPLES	2	/* more are needed: one ACK per round is a delayed one */
#define YEAH_NONE	0x7fffffffU

static int stretch __read_mostly;
module_param(stretch, int, 0444);
MODULE_PARM_DESC(stretch, "1: count all segments of an ACK");

/* The state of a socket. */
struct yeah414 {
	u32 base_us;	/* the shortest round trip */
	u32 rtt_us;	/* the shortest of this round */
	u32 round_end;	/* the round ends when this is acknowledged */
	u32 queue;	/* segments, at the end of the last round */
	u32 slow;	/* consecutive rounds in slow mode */
	u32 fast;	/* rounds in fast mode since the last loss */
	u32 reno;	/* the estimated window of a competing Reno flow */
	u16 samples;
	u16 acked;	/* segments of the last ACK */
};

static void yeah414_begin_round(struct sock *sk)
{
	struct yeah414 *ca = inet_csk_ca(sk);

	ca->round_end = tcp_sk(sk)->snd_nxt;
	ca->rtt_us = YEAH_NONE;
	ca->samples = 0;
}

static void yeah414_init(struct sock *sk)
{
	struct yeah414 *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->base_us = YEAH_NONE;
	ca->reno = 2;
	ca->acked = 1;
	yeah414_begin_round(sk);
}

static void yeah414_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct yeah414 *ca = inet_csk_ca(sk);
	u32 rtt_us;

	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Open)
		ca->acked = min_t(u32, sample->pkts_acked, U16_MAX);
	if (sample->rtt_us < 0)
		return;
	rtt_us = sample->rtt_us + 1;	/* never 0 */
	ca->base_us = min(ca->base_us, rtt_us);
	ca->rtt_us = min(ca->rtt_us, rtt_us);
	ca->samples++;
}

/* The queue is too long: remove it, but not below the window of a competing Reno flow. */
static void yeah414_decongest(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct yeah414 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (ca->queue <= YEAH_QUEUE || cwnd <= ca->reno)
		return;
	cwnd -= min(ca->queue, cwnd / 2);
	tcp_snd_cwnd_set(tp, max(cwnd, ca->reno));
	tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

static void yeah414_end_round(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct yeah414 *ca = inet_csk_ca(sk);
	u32 waited_us = ca->rtt_us - ca->base_us;

	ca->queue = div_u64((u64)tcp_snd_cwnd(tp) * waited_us, ca->rtt_us);
	if (ca->queue > YEAH_QUEUE || waited_us > ca->base_us / YEAH_PHI) {
		yeah414_decongest(sk);
		ca->reno = ca->reno > 2 ? ca->reno + 1 : max(tcp_snd_cwnd(tp) / 2, 2U);
		ca->slow++;
	} else {
		ca->slow = 0;
		if (++ca->fast > YEAH_ZETA) {
			ca->reno = 2;
			ca->fast = 0;
		}
	}
}

/* In fast mode a counter takes all segments of an ACK, and is emptied for one segment more. */
static void yeah414_scalable(struct tcp_sock *tp, u32 acked)
{
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt <= min(tcp_snd_cwnd(tp), YEAH_EVERY))
		return;
	tp->snd_cwnd_cnt = 0;
	if (tcp_snd_cwnd(tp) < tp->snd_cwnd_clamp)
		tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) + 1);
}

static void yeah414_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct yeah414 *ca = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		tcp_slow_start(tp, acked);
	else if (ca->slow)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), stretch ? acked : 1);
	else if (stretch)
		tcp_cong_avoid_ai(tp, min(tcp_snd_cwnd(tp), YEAH_EVERY), acked);
	else
		yeah414_scalable(tp, ca->acked);
	ca->acked = 1;
	if (!after(ack, ca->round_end))
		return;
	if (ca->samples > YEAH_SAMPLES)
		yeah414_end_round(sk);
	yeah414_begin_round(sk);
}

/* Called at the beginning of a loss event. Returns the new window. */
static u32 yeah414_ssthresh(struct sock *sk)
{
	struct yeah414 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), half = max(cwnd / 2, 2U);
	u32 less = ca->slow < YEAH_RHO ? max(min(ca->queue, half), cwnd / 8) : half;

	ca->fast = 0;
	ca->reno = max(ca->reno / 2, 2U);
	return cwnd > less + 2 ? cwnd - less : 2;
}

static void yeah414_set_state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Open)
		yeah414_begin_round(sk);
}

static struct tcp_congestion_ops yeah414_ops __read_mostly = {
	.init		= yeah414_init,
	.ssthresh	= yeah414_ssthresh,
	.cong_avoid	= yeah414_cong_avoid,
	.pkts_acked	= yeah414_pkts_acked,
	.set_state	= yeah414_set_state,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "yeah414",
};

/* Fields of struct yeah414 that become rows of the run's table `cc`. */
static const struct hourglass_column yeah414_columns[] = {
	HOURGLASS_COLUMN(struct yeah414, queue),
	HOURGLASS_COLUMN(struct yeah414, slow),
	HOURGLASS_COLUMN(struct yeah414, reno),
};

HOURGLASS_STATE(yeah414_ops, yeah414_columns);

static int __init yeah414_register(void)
{
	BUILD_BUG_ON(sizeof(struct yeah414) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&yeah414_ops);
}
module_init(yeah414_register);

MODULE_LICENSE("GPL");
