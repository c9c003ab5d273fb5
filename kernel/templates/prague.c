// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prague: a response to marks in proportion to their frequency, for L4S (RFC 9331).
 *
 *	each virtual round	alpha += (F - alpha) / 16	F: the share of its segments marked
 *	each segment acked	W += (R / V)^2 / W		unless it was marked
 *	a mark			W -= W * alpha / 2		once per virtual round
 *	a loss event		W /= 2				as Reno: once per round trip
 *	slow start		W += 1 per segment acked, until the first mark or loss
 *
 * R is the round trip time, V = max(R, rtt_virtual) the virtual one. Increase, decrease and
 * average depend on V, so flows with different R in one queue get the same rate. If each segment
 * is marked with probability p, W grows by (1 - p) R / V segments per V. It decreases by W p / 2
 * per V, and waits for the next mark. The balance is W = 2 (1 - p) / p R / V (1 + R / (p W V)).
 *
 * Written from K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion Control",
 * draft-briscoe-iccrg-prague-congestion-control-04, and M. Alizadeh et al., "Data Center TCP"
 * (RFC 8257). It contains no line of the reference implementation. Accurate ECN counts marks
 * (Linux 7.0 and later), and data packets are sent with ECT(1). A peer without Accurate ECN
 * reports no marks.
 *
 * Left out: the fallback for queues without L4S marks (RFC 9331, 4.3), CUBIC's growth after a
 * loss, and the delayed start of the reduced dependence on the round trip.
 *
 * parameter	unit	default	why
 * rtt_virtual	us	25000	the draft's: the round trip of short wide-area paths
 * gain_shift		4	RFC 8257: g = 1/16
 */
#include <linux/module.h>
#include <net/tcp.h>

#ifndef TCP_CONG_NEEDS_ACCECN
#error "Prague takes Accurate ECN, which Linux has since 7.0: --kernel 7.3"
#endif

#include "hourglass_cc.h"

#define PRAGUE_ONE	20	/* 1 is this many bits, of a segment and of alpha */
#define PRAGUE_MIN	2U	/* segments */
#define PRAGUE_BURST	12	/* bursts last 2^-12 s, a quarter of DualPI2's step */

static int rtt_virtual __read_mostly = 25000;
module_param(rtt_virtual, int, 0444);
MODULE_PARM_DESC(rtt_virtual, "flows with shorter round trips do as if theirs were this, us");

static int gain_shift __read_mostly = 4;
module_param(gain_shift, int, 0444);
MODULE_PARM_DESC(gain_shift, "alpha follows the share of marks by 1/2^this");

struct prague {
	u64 window;		/* segments, in 2^-PRAGUE_ONE */
	u64 round_us;		/* start of the virtual round */
	u64 reduced_us;		/* last reduction of W for a mark; 0: never */
	u32 alpha;		/* 2^PRAGUE_ONE: every segment is marked */
	u32 round_delivered;	/* tp->delivered then */
	u32 round_marked;	/* tp->delivered_ce then */
	u32 marked;		/* tp->delivered_ce at the last ACK */
	u32 reductions;		/* for marks, so far */
};

/* Returns the round trip time in us; 0: not measured yet. */
static u32 prague_rtt(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

static u32 prague_virtual(const struct tcp_sock *tp)
{
	return max_t(u32, max(prague_rtt(tp), 1U), rtt_virtual);
}

static void prague_set_window(struct sock *sk, u64 window)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	window = clamp(window, (u64)PRAGUE_MIN << PRAGUE_ONE,
		       (u64)tp->snd_cwnd_clamp << PRAGUE_ONE);
	ca->window = window;
	tcp_snd_cwnd_set(tp, window >> PRAGUE_ONE);
}

/* Paces at twice the window per round trip in slow start, then at the window. */
static void prague_pace(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)max(tcp_snd_cwnd(tp), tp->packets_out) * tp->mss_cache;

	if (tcp_in_slow_start(tp))
		rate *= 2;
	rate = div_u64(rate * USEC_PER_SEC, prague_rtt(tp) ?: USEC_PER_MSEC);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void prague_round(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	ca->round_us = tp->tcp_mstamp;
	ca->round_delivered = tp->delivered;
	ca->round_marked = tp->delivered_ce;
}

static void prague_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	ca->window = (u64)tcp_snd_cwnd(tp) << PRAGUE_ONE;
	ca->alpha = 1 << PRAGUE_ONE;
	ca->marked = tp->delivered_ce;
	ca->reduced_us = 0;
	ca->reductions = 0;
	prague_round(sk);
	prague_pace(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(sk->sk_pacing_shift, PRAGUE_BURST);
}

/* Updates alpha at the end of a virtual round, and not before the ACKs of a round trip. */
static void prague_average(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 delivered = tp->delivered - ca->round_delivered;
	u64 share;

	if (tp->tcp_mstamp - ca->round_us < prague_virtual(tp) || !delivered)
		return;
	share = div_u64((u64)(tp->delivered_ce - ca->round_marked) << PRAGUE_ONE, delivered);
	share = min_t(u64, share, 1 << PRAGUE_ONE);
	ca->alpha += ((s64)share - ca->alpha) >> gain_shift;
	prague_round(sk);
}

static void prague_reduce(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	if (ca->reduced_us && tp->tcp_mstamp - ca->reduced_us < prague_virtual(tp))
		return;
	ca->reduced_us = tp->tcp_mstamp;
	ca->reductions++;
	prague_set_window(sk, ca->window - (ca->window * ca->alpha >> (PRAGUE_ONE + 1)));
	tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

/* Handles @acked unmarked segments. */
static void prague_increase(struct sock *sk, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u64 scale;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		prague_set_window(sk, ca->window + ((u64)acked << PRAGUE_ONE));
		return;
	}
	scale = (u64)max(prague_rtt(tp), 1U) << PRAGUE_ONE / 2;
	scale = div_u64(scale, prague_virtual(tp));
	prague_set_window(sk, ca->window +
			      div_u64((u64)acked * scale * scale, tcp_snd_cwnd(tp)));
}

static void prague_cong_control(CONG_CONTROL_ARGS)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 marked = tp->delivered_ce - ca->marked;
	u32 acked = max(rs->acked_sacked, 0);

	ca->marked = tp->delivered_ce;
	if (tcp_snd_cwnd(tp) != ca->window >> PRAGUE_ONE) /* an undone loss, or idle time */
		ca->window = (u64)tcp_snd_cwnd(tp) << PRAGUE_ONE;
	prague_average(sk);
	if (marked)
		prague_reduce(sk);
	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery && acked > marked)
		prague_increase(sk, acked - marked);
	prague_pace(sk);
}

/* Returns the window after a loss. For a mark prague_cong_control() has already reduced it. */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static void prague_lose(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = max(tcp_snd_cwnd(tp) / 2, PRAGUE_MIN);
}

static void prague_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state != TCP_CA_Recovery || inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		return;
	prague_lose(sk);
	prague_set_window(sk, (u64)tp->snd_ssthresh << PRAGUE_ONE);
}

static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS)	/* timeout; TCP has not reduced the window yet */
		prague_lose(sk);
}

static struct tcp_congestion_ops prague_ops __read_mostly = {
	.init		= prague_init,
	.cong_control	= prague_cong_control,
	.ssthresh	= prague_ssthresh,
	.set_state	= prague_set_state,
	.cwnd_event	= prague_cwnd_event,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1_NEGOTIATION |
			  TCP_CONG_NO_FALLBACK_RFC3168,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

static const struct hourglass_column prague_columns[] = {
	HOURGLASS_COLUMN(struct prague, alpha),
	HOURGLASS_COLUMN(struct prague, window),
	HOURGLASS_COLUMN(struct prague, reductions),
};

HOURGLASS_STATE(prague_ops, prague_columns);

static int __init prague_register(void)
{
	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&prague_ops);
}
module_init(prague_register);

MODULE_LICENSE("GPL");
