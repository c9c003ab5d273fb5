// SPDX-License-Identifier: GPL-2.0-only
/*
 * CUBIC as Linux 4.14 had it: HyStart, which ends slow start, counts in milliseconds.
 *
 *	W_cubic(t) = C (t - K)^3 + W_max	K = cbrt((W_max - cwnd) / C)
 *	W_est		what a Reno flow with beta would have since the last loss
 *	cwnd		rises to the larger of W_cubic(t + RTT) and W_est
 *	loss		cwnd = beta cwnd; W_max: the window before, or a part if it was lower than the last
 *
 * HyStart, with at least 16 segments in the window:
 *	ACK train	ACKs at most 2 ms apart, for longer than half of the shortest round trip
 *	delay		the shortest of 8 samples of a round exceeds the shortest by eta
 *
 * Written from I. Rhee et al., "CUBIC for Fast Long-Distance Networks", RFC 8312, and S. Ha,
 * I. Rhee, "Taming the Elephants: New TCP Slow Start" (Computer Networks, 2011), with their names.
 * eta is Linux's: an eighth of the shortest round trip, from 4 to 16 ms.
 *
 * Linux 5.6 made two changes to the ACK train, which `fine` = 1 makes: it counts in microseconds,
 * and half of the sum of the shortest round trip and the time of four largest skbs (at most 1 ms)
 * is the limit. Before, a train that crossed the border of a millisecond had a length of 1 ms,
 * and half of a round trip below 2 ms was 0.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

#define CUBIC_BETA	717U	/* / 1024: 0.7 */
#define CUBIC_UNIT	1024U
#define CUBIC_PER_C	2500000000ULL	/* 1 / C = 2.5 s^3, in ms^3 */
#define CUBIC_LONG_MS	1000000U	/* bounds t, so that its cube fits */
#define CUBIC_FIRST	20U	/* ACKs per segment before the first loss, at most */
#define CUBIC_EVERY_US	(USEC_PER_SEC / 32) /* a window that stays is computed again after this */
#define HYSTART_LOW	16U	/* segments */
#define HYSTART_GAP_US	(2 * USEC_PER_MSEC)
#define HYSTART_SAMPLES	8
#define HYSTART_MIN_US	(4 * USEC_PER_MSEC)
#define HYSTART_MAX_US	(16 * USEC_PER_MSEC)
#define CUBIC_NONE	(~0U)

static int fine __read_mostly;
module_param(fine, int, 0444);
MODULE_PARM_DESC(fine, "1: HyStart counts in microseconds");

/* The state of a socket. */
struct cubic414 {
	u64 epoch_us;		/* 0: none since the last loss */
	u64 updated_us;
	u64 round_us;		/* start of HyStart's round */
	u64 last_ack_us;
	u32 w_max;		/* segments */
	u32 origin;		/* segments: W_max of this epoch */
	u32 k_ms;
	u32 count;		/* ACKs per segment more */
	u32 acked;		/* since W_est rose */
	u32 w_est;
	u32 last_cwnd;
	u32 min_rtt_us;		/* CUBIC_NONE: no sample yet */
	u32 round_rtt_us;
	u32 round_end;		/* the round ends when this is acknowledged */
	u8 samples;
	bool found;		/* HyStart has ended slow start */
};

/* The clock of HyStart, in us. */
static u64 hystart_clock(const struct tcp_sock *tp)
{
	return fine ? tp->tcp_mstamp : div_u64(tp->tcp_mstamp, USEC_PER_MSEC) * USEC_PER_MSEC;
}

static void hystart_begin_round(struct sock *sk)
{
	struct cubic414 *ca = inet_csk_ca(sk);

	ca->round_us = hystart_clock(tcp_sk(sk));
	ca->last_ack_us = ca->round_us;
	ca->round_end = tcp_sk(sk)->snd_nxt;
	ca->round_rtt_us = CUBIC_NONE;
	ca->samples = 0;
}

/* Returns the length of an ACK train that is too long. */
static u32 hystart_train_us(struct sock *sk)
{
	const struct cubic414 *ca = inet_csk_ca(sk);
	u64 rate = READ_ONCE(sk->sk_pacing_rate), burst_us;

	if (!fine)
		return ca->min_rtt_us / 2 / USEC_PER_MSEC * USEC_PER_MSEC;
	burst_us = rate ? div64_u64(4ULL * sk->sk_gso_max_size * USEC_PER_SEC, rate) : 0;
	burst_us = min_t(u64, burst_us, USEC_PER_MSEC) + ca->min_rtt_us;
	return sk->sk_pacing_status == SK_PACING_NONE ? burst_us / 2 : burst_us;
}

static void hystart_update(struct sock *sk, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic414 *ca = inet_csk_ca(sk);
	u64 now = hystart_clock(tp);
	u32 eta = clamp_t(u32, ca->min_rtt_us / 8, HYSTART_MIN_US, HYSTART_MAX_US);

	if (now - ca->last_ack_us <= HYSTART_GAP_US) {
		ca->last_ack_us = now;
		if (now - ca->round_us > hystart_train_us(sk))
			ca->found = true;
	}
	ca->round_rtt_us = min(ca->round_rtt_us, rtt_us);
	if (ca->samples < HYSTART_SAMPLES)
		ca->samples++;
	else if (ca->round_rtt_us > ca->min_rtt_us + eta)
		ca->found = true;
	if (ca->found)
		tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

static void cubic414_reset(struct sock *sk)
{
	struct cubic414 *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->min_rtt_us = CUBIC_NONE;
	hystart_begin_round(sk);
}

/* Returns the integer part of the cube root of @value, which is below 2^60. */
static u32 cubic_root(u64 value)
{
	u64 root = 0, bit;

	for (bit = 1 << 19; bit; bit >>= 1)
		if ((root + bit) * (root + bit) * (root + bit) <= value)
			root += bit;
	return root;
}

static void cubic414_begin_epoch(struct sock *sk, u32 cwnd)
{
	struct cubic414 *ca = inet_csk_ca(sk);

	ca->epoch_us = tcp_sk(sk)->tcp_mstamp ?: 1;
	ca->acked = 0;
	ca->w_est = cwnd;
	ca->origin = max(ca->w_max, cwnd);
	ca->k_ms = cubic_root((ca->origin - cwnd) * CUBIC_PER_C);
}

/* Returns W_cubic one round trip from now. */
static u32 cubic414_window(const struct sock *sk)
{
	const struct cubic414 *ca = inet_csk_ca(sk);
	u64 t = tcp_sk(sk)->tcp_mstamp - ca->epoch_us;
	s64 offset, change;

	if (ca->min_rtt_us != CUBIC_NONE)
		t += ca->min_rtt_us;
	offset = (s64)min_t(u64, div_u64(t, USEC_PER_MSEC), CUBIC_LONG_MS) - ca->k_ms;
	change = div64_s64(offset * offset * offset, CUBIC_PER_C);
	return max_t(s64, ca->origin + change, 0);
}

/* Returns the ACKs per segment more that take the window to W_est, and raises it: Reno with beta
 * rises by 3 (1 - beta) / (1 + beta) segments per window.
 */
static u32 cubic414_reno_count(struct cubic414 *ca, u32 cwnd)
{
	u32 step = max(cwnd * (CUBIC_UNIT + CUBIC_BETA) / (3 * (CUBIC_UNIT - CUBIC_BETA)), 1U);

	ca->w_est += ca->acked / step;
	ca->acked %= step;
	return ca->w_est > cwnd ? cwnd / (ca->w_est - cwnd) : CUBIC_NONE;
}

static void cubic414_update(struct sock *sk, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cubic414 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), target;

	ca->acked += acked;
	if (ca->last_cwnd == cwnd && tp->tcp_mstamp - ca->updated_us <= CUBIC_EVERY_US)
		return;
	ca->last_cwnd = cwnd;
	ca->updated_us = tp->tcp_mstamp;
	if (!ca->epoch_us) {
		cubic414_begin_epoch(sk, cwnd);
		ca->acked = acked;
	}
	target = cubic414_window(sk);
	ca->count = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
	if (!ca->w_max)
		ca->count = min(ca->count, CUBIC_FIRST);
	ca->count = max(min(ca->count, cubic414_reno_count(ca, cwnd)), 2U);
}

static void cubic414_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic414 *ca = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		if (after(ack, ca->round_end))
			hystart_begin_round(sk);
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cubic414_update(sk, acked);
	tcp_cong_avoid_ai(tp, ca->count, acked);
}

static void cubic414_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cubic414 *ca = inet_csk_ca(sk);
	u32 rtt_us;

	/* samples of the first second after a recovery are too long */
	if (sample->rtt_us < 0 || (ca->epoch_us && tp->tcp_mstamp - ca->epoch_us < USEC_PER_SEC))
		return;
	rtt_us = max_t(u32, sample->rtt_us, 1);
	ca->min_rtt_us = min(ca->min_rtt_us, rtt_us);
	if (!ca->found && tcp_in_slow_start(tp) && tcp_snd_cwnd(tp) >= HYSTART_LOW)
		hystart_update(sk, rtt_us);
}

/* Called when a recovery begins. */
static u32 cubic414_ssthresh(struct sock *sk)
{
	struct cubic414 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	ca->epoch_us = 0;
	ca->w_max = cwnd < ca->w_max ? cwnd * (CUBIC_UNIT + CUBIC_BETA) / (2 * CUBIC_UNIT) : cwnd;
	return max(cwnd * CUBIC_BETA / CUBIC_UNIT, 2U);
}

static void cubic414_set_state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Loss)
		cubic414_reset(sk);
}

/* An idle time is not part of the epoch. */
static void cubic414_tx_start(TX_START_ARGS)
{
	struct cubic414 *ca = inet_csk_ca(sk);
	u64 idle_us;

	if (!IS_TX_START || !ca->epoch_us)
		return;
	idle_us = jiffies_to_usecs(tcp_jiffies32 - tcp_sk(sk)->lsndtime);
	ca->epoch_us = min(ca->epoch_us + idle_us, tcp_sk(sk)->tcp_mstamp);
}

static struct tcp_congestion_ops cubic414_ops __read_mostly = {
	.init		= cubic414_reset,
	.ssthresh	= cubic414_ssthresh,
	.cong_avoid	= cubic414_cong_avoid,
	.pkts_acked	= cubic414_pkts_acked,
	.set_state	= cubic414_set_state,
	.CWND_EVENT_TX_START = cubic414_tx_start,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "cubic414",
};

/* Fields of struct cubic414 that become rows of the run's table `cc`. */
static const struct hourglass_column cubic414_columns[] = {
	HOURGLASS_COLUMN(struct cubic414, w_max),
	HOURGLASS_COLUMN(struct cubic414, k_ms),
	HOURGLASS_COLUMN(struct cubic414, min_rtt_us),
	HOURGLASS_COLUMN(struct cubic414, found),
};

HOURGLASS_STATE(cubic414_ops, cubic414_columns);

static int __init cubic414_register(void)
{
	BUILD_BUG_ON(sizeof(struct cubic414) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&cubic414_ops);
}
module_init(cubic414_register);

MODULE_LICENSE("GPL");
