// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBR as Linux 4.14 had it: paces at the largest delivery rate, keeps two round trips in flight.
 *
 *	STARTUP --> DRAIN --> PROBE_BW: 5/4, 3/4, then six times 1, a round trip each
 *	any state, each 10 s without a shorter round trip --> PROBE_RTT: 4 segments, 200 ms
 *
 *	BtlBw	the largest delivery rate of 10 rounds
 *	RTprop	the shortest round trip of 10 s
 *	cwnd	cwnd_gain BtlBw RTprop + 3 send_quantum, rounded up to an even number
 *	pacing	pacing_gain BtlBw
 *
 * Written from N. Cardwell, Y. Cheng, S. Hassas Yeganeh, V. Jacobson, "BBR Congestion Control",
 * draft-cardwell-iccrg-bbr-congestion-control-00 (2017), with its names. It contains no line of
 * Google's implementation. The even window is Linux's (delayed ACKs). Left out: the detection of
 * policers, which the draft lacks.
 *
 * Later kernels differ in what the parameters set, and in the window's allowance for aggregated
 * ACKs (5.1), the two segments more while probing (5.0) and the segments that have left by their
 * pacing time (4.20), which are missing here.
 *
 * 4.14 charged a segment with its TCP header (32 bytes), and counted BtlBw with those of TCP and
 * IP; 5.10 charges neither. Hence the pacing rate's factor of 1.0135.
 *
 * 4.14 set a timer after each skb, and counted the next wait from when the timer fired. So each
 * skb had its length / rate + `timer_ns`. Since 4.20 a late timer is made up for. Here the pacing
 * rate is that of the sum, which also lowers TCP Small Queues' limit.
 *
 * parameter	unit	default	why
 * margin	%	0	pacing below BtlBw; 1 since 4.20
 * quantum	-	0	1: send_quantum ignores the device's largest skb, since 4.16
 * timer_ns	ns	0	lateness of each skb's timer
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/win_minmax.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

#define BBR_UNIT		1000U	/* gains are in thousandths */
#define BBR_HIGH_GAIN		2885U	/* 2 / ln 2 */
#define BBR_DRAIN_GAIN		347U	/* ln 2 / 2 */
#define BBR_CWND_GAIN		2000U
#define BBR_CYCLE		8	/* phases of PROBE_BW */
#define BBR_BTLBW_ROUNDS	10
#define BBR_RTPROP_US		(10 * USEC_PER_SEC)
#define BBR_PROBE_RTT_US	(200 * USEC_PER_MSEC)
#define BBR_MIN_PIPE_CWND	4U	/* segments */
#define BBR_GROWTH		125	/* %: a round with less growth is on a plateau */
#define BBR_PLATEAU		3	/* rounds */
#define BBR_SLOW		(1200000 / 8)	/* bytes/s: below, an skb has one segment */
#define BBR_SKB_MAX		65536	/* bytes */
#define BBR_NONE		(~0U)

static int margin __read_mostly;
module_param(margin, int, 0444);
MODULE_PARM_DESC(margin, "pacing below the bandwidth, %");

static int quantum __read_mostly;
module_param(quantum, int, 0444);
MODULE_PARM_DESC(quantum, "1: the quantum ignores the device's largest skb");

static int timer_ns __read_mostly;
module_param(timer_ns, int, 0444);
MODULE_PARM_DESC(timer_ns, "lateness of each skb's pacing timer, ns");

enum bbr414_state {
	STARTUP,
	DRAIN,
	PROBE_BW,
	PROBE_RTT,
};

/* The state of a socket. */
struct bbr414 {
	struct minmax btlbw_filter;	/* bytes/s, by rounds */
	u64 rtprop_stamp;		/* us, as all stamps */
	u64 cycle_stamp;
	u64 probe_rtt_done_stamp;	/* 0: too much is still in flight */
	u32 btlbw;			/* bytes/s */
	u32 rtprop;			/* us; BBR_NONE: no sample yet */
	u32 next_round_delivered;	/* tp->delivered */
	u32 round_count;
	u32 full_bw;			/* bytes/s */
	u32 prior_cwnd;
	u16 pacing_gain, cwnd_gain;
	u8 state;
	u8 ca_state;			/* TCP's, at the last ACK */
	u8 cycle_index;
	u8 full_bw_count;
	bool filled_pipe;
	bool round_start;
	bool packet_conservation;
	bool probe_rtt_round_done;
	bool idle_restart;
};

/* Volumes, in segments. */

/* Returns the data of a millisecond: the skb that TCP makes. */
static u32 bbr414_send_quantum(const struct sock *sk)
{
	u64 rate = READ_ONCE(sk->sk_pacing_rate);
	u32 segments = div_u64(min_t(u64, rate >> 10, BBR_SKB_MAX), tcp_sk(sk)->mss_cache);

	segments = max(segments, rate < BBR_SLOW ? 1U : 2U);
	return quantum ? segments : min_t(u32, segments, sk->sk_gso_max_segs);
}

static u32 bbr414_inflight(const struct sock *sk, u32 gain)
{
	const struct bbr414 *bbr = inet_csk_ca(sk);
	u64 bytes;
	u32 segments;

	if (bbr->rtprop == BBR_NONE)
		return TCP_INIT_CWND;
	bytes = div_u64((u64)bbr->btlbw * bbr->rtprop, USEC_PER_SEC) * gain;
	segments = DIV_ROUND_UP_ULL(div_u64(bytes, BBR_UNIT), tcp_sk(sk)->mss_cache);
	return round_up(segments + 3 * bbr414_send_quantum(sk), 2);
}

/* The pacing rate. */

static void bbr414_set_pacing_rate(struct sock *sk, u32 gain)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr414 *bbr = inet_csk_ca(sk);
	u64 rate = div_u64((u64)bbr->btlbw * gain, BBR_UNIT), skb;

	rate = div_u64(rate * tcp_mss_to_mtu(sk, tp->mss_cache),
		       tp->mss_cache + tp->tcp_header_len);
	rate = div_u64(rate, 100) * (100 - margin);
	skb = (u64)min_t(u32, bbr414_send_quantum(sk), sk->sk_gso_max_segs) * tp->mss_cache;
	rate = div64_u64(rate * skb, skb + div_u64(rate * timer_ns, NSEC_PER_SEC));
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	if (bbr->filled_pipe || rate > READ_ONCE(sk->sk_pacing_rate))
		WRITE_ONCE(sk->sk_pacing_rate, rate);
}

static void bbr414_init_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tcp_snd_cwnd(tp) * tp->mss_cache * USEC_PER_SEC;

	rate = div_u64(rate, (tp->srtt_us >> 3) ?: USEC_PER_MSEC);
	rate = div_u64(rate * BBR_HIGH_GAIN, BBR_UNIT);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* The states. */

static void bbr414_enter_startup(struct bbr414 *bbr)
{
	bbr->state = STARTUP;
	bbr->pacing_gain = BBR_HIGH_GAIN;
	bbr->cwnd_gain = BBR_HIGH_GAIN;
}

static void bbr414_advance_cycle_phase(struct sock *sk)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	bbr->cycle_stamp = tcp_sk(sk)->delivered_mstamp;
	bbr->cycle_index = (bbr->cycle_index + 1) % BBR_CYCLE;
	bbr->pacing_gain = BBR_UNIT;
	if (bbr->cycle_index == 0)
		bbr->pacing_gain = BBR_UNIT * 5 / 4;
	else if (bbr->cycle_index == 1)
		bbr->pacing_gain = BBR_UNIT * 3 / 4;
}

/* Begins with any phase but the one that drains. */
static void bbr414_enter_probe_bw(struct sock *sk)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	bbr->state = PROBE_BW;
	bbr->cwnd_gain = BBR_CWND_GAIN;
	bbr->cycle_index = BBR_CYCLE - 1 - ((u64)get_random_u32() * (BBR_CYCLE - 1) >> 32);
	bbr414_advance_cycle_phase(sk);
}

static bool bbr414_is_next_cycle_phase(const struct sock *sk, const struct rate_sample *rs)
{
	const struct bbr414 *bbr = inet_csk_ca(sk);
	bool is_full_length = tcp_sk(sk)->delivered_mstamp - bbr->cycle_stamp > bbr->rtprop;

	if (bbr->pacing_gain > BBR_UNIT)
		return is_full_length &&
		       (rs->losses || rs->prior_in_flight >= bbr414_inflight(sk, bbr->pacing_gain));
	if (bbr->pacing_gain < BBR_UNIT)
		return is_full_length || rs->prior_in_flight <= bbr414_inflight(sk, BBR_UNIT);
	return is_full_length;
}

static void bbr414_save_cwnd(struct sock *sk)
{
	struct bbr414 *bbr = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (bbr->ca_state >= TCP_CA_Recovery || bbr->state == PROBE_RTT)
		cwnd = max(cwnd, bbr->prior_cwnd);
	bbr->prior_cwnd = cwnd;
}

static void bbr414_restore_cwnd(struct sock *sk)
{
	const struct bbr414 *bbr = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), bbr->prior_cwnd));
}

/* The model: rounds, BtlBw, the plateau, RTprop. */

static void bbr414_update_round(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	bbr->round_start = !before(rs->prior_delivered, bbr->next_round_delivered);
	if (!bbr->round_start)
		return;
	bbr->next_round_delivered = tcp_sk(sk)->delivered;
	bbr->round_count++;
	bbr->packet_conservation = false;
}

static void bbr414_update_btlbw(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr414 *bbr = inet_csk_ca(sk);
	u64 rate = (u64)rs->delivered * tcp_sk(sk)->mss_cache * USEC_PER_SEC;

	bbr414_update_round(sk, rs);
	rate = min_t(u64, div_u64(rate, rs->interval_us), U32_MAX);
	if (rate >= bbr->btlbw || !rs->is_app_limited)
		bbr->btlbw = minmax_running_max(&bbr->btlbw_filter, BBR_BTLBW_ROUNDS,
						bbr->round_count, rate);
}

static void bbr414_check_full_pipe(struct bbr414 *bbr, const struct rate_sample *rs)
{
	if (bbr->filled_pipe || !bbr->round_start || rs->is_app_limited)
		return;
	if ((u64)bbr->btlbw * 100 >= (u64)bbr->full_bw * BBR_GROWTH) {
		bbr->full_bw = bbr->btlbw;
		bbr->full_bw_count = 0;
		return;
	}
	bbr->filled_pipe = ++bbr->full_bw_count >= BBR_PLATEAU;
}

static void bbr414_check_drain(struct sock *sk)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	if (bbr->state == STARTUP && bbr->filled_pipe) {
		bbr->state = DRAIN;
		bbr->pacing_gain = BBR_DRAIN_GAIN;
		bbr->cwnd_gain = BBR_HIGH_GAIN;
	}
	if (bbr->state == DRAIN &&
	    tcp_packets_in_flight(tcp_sk(sk)) <= bbr414_inflight(sk, BBR_UNIT))
		bbr414_enter_probe_bw(sk);
}

/* Returns whether RTprop has expired. */
static bool bbr414_update_rtprop(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr414 *bbr = inet_csk_ca(sk);
	u64 now = tcp_sk(sk)->tcp_mstamp;
	bool expired = now > bbr->rtprop_stamp + BBR_RTPROP_US;

	if (rs->rtt_us >= 0 && (rs->rtt_us <= bbr->rtprop || expired)) {
		bbr->rtprop = rs->rtt_us;
		bbr->rtprop_stamp = now;
	}
	return expired;
}

static void bbr414_handle_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr414 *bbr = inet_csk_ca(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	/* the delivery rate of these packets does not count */
	tp->app_limited = (tp->delivered + in_flight) ?: 1;
	if (!bbr->probe_rtt_done_stamp) {
		if (in_flight > BBR_MIN_PIPE_CWND)
			return;
		bbr->probe_rtt_done_stamp = tp->tcp_mstamp + BBR_PROBE_RTT_US;
		bbr->probe_rtt_round_done = false;
		bbr->next_round_delivered = tp->delivered;
		return;
	}
	if (bbr->round_start)
		bbr->probe_rtt_round_done = true;
	if (!bbr->probe_rtt_round_done || tp->tcp_mstamp <= bbr->probe_rtt_done_stamp)
		return;
	bbr->rtprop_stamp = tp->tcp_mstamp;
	bbr414_restore_cwnd(sk);
	if (bbr->filled_pipe)
		bbr414_enter_probe_bw(sk);
	else
		bbr414_enter_startup(bbr);
}

static void bbr414_check_probe_rtt(struct sock *sk, bool rtprop_expired)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	if (bbr->state != PROBE_RTT && rtprop_expired && !bbr->idle_restart) {
		bbr414_save_cwnd(sk);
		bbr->state = PROBE_RTT;
		bbr->pacing_gain = BBR_UNIT;
		bbr->cwnd_gain = BBR_UNIT;
		bbr->probe_rtt_done_stamp = 0;
	}
	if (bbr->state == PROBE_RTT)
		bbr414_handle_probe_rtt(sk);
	bbr->idle_restart = false;
}

/* The window. */

/* Returns whether the window follows packet conservation. */
static bool bbr414_modulate_for_recovery(struct sock *sk, const struct rate_sample *rs, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr414 *bbr = inet_csk_ca(sk);
	u8 ca_state = inet_csk(sk)->icsk_ca_state, before_ack = bbr->ca_state;
	u32 conserved = tcp_packets_in_flight(tp) + acked;

	bbr->ca_state = ca_state;
	if (rs->losses > 0)
		tcp_snd_cwnd_set(tp, max_t(int, tcp_snd_cwnd(tp) - rs->losses, 1));
	if (ca_state == TCP_CA_Recovery && before_ack != TCP_CA_Recovery) {
		bbr->packet_conservation = true;
		bbr->next_round_delivered = tp->delivered;
		tcp_snd_cwnd_set(tp, conserved);
	} else if (ca_state < TCP_CA_Recovery && before_ack >= TCP_CA_Recovery) {
		bbr->packet_conservation = false;
		bbr414_restore_cwnd(sk);
	}
	if (bbr->packet_conservation)
		tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), conserved));
	return bbr->packet_conservation;
}

static void bbr414_set_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr414 *bbr = inet_csk_ca(sk);
	u32 acked = max_t(int, rs->acked_sacked, 0), target, cwnd;

	if (acked && !bbr414_modulate_for_recovery(sk, rs, acked)) {
		target = bbr414_inflight(sk, bbr->cwnd_gain);
		cwnd = tcp_snd_cwnd(tp);
		if (bbr->filled_pipe)
			cwnd = min(cwnd + acked, target);
		else if (cwnd < target || tp->delivered < TCP_INIT_CWND)
			cwnd += acked;
		tcp_snd_cwnd_set(tp, max(cwnd, BBR_MIN_PIPE_CWND));
	}
	cwnd = min(tcp_snd_cwnd(tp), tp->snd_cwnd_clamp);
	if (bbr->state == PROBE_RTT)
		cwnd = min(cwnd, BBR_MIN_PIPE_CWND);
	tcp_snd_cwnd_set(tp, cwnd);
}

/* Handles an ACK. */
static void bbr414_cong_control(CONG_CONTROL_ARGS)
{
	struct bbr414 *bbr = inet_csk_ca(sk);
	bool expired;

	bbr->round_start = false;
	if (rs->delivered > 0 && rs->interval_us > 0)
		bbr414_update_btlbw(sk, rs);
	if (bbr->state == PROBE_BW && bbr414_is_next_cycle_phase(sk, rs))
		bbr414_advance_cycle_phase(sk);
	bbr414_check_full_pipe(bbr, rs);
	bbr414_check_drain(sk);
	expired = bbr414_update_rtprop(sk, rs);
	bbr414_check_probe_rtt(sk, expired);
	bbr414_set_pacing_rate(sk, bbr->pacing_gain);
	bbr414_set_cwnd(sk, rs);
}

/* Further callbacks of TCP. */

static void bbr414_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr414 *bbr = inet_csk_ca(sk);

	memset(bbr, 0, sizeof(*bbr));
	bbr->rtprop = tcp_min_rtt(tp);
	bbr->rtprop_stamp = tp->tcp_mstamp;
	bbr->next_round_delivered = tp->delivered;
	minmax_reset(&bbr->btlbw_filter, 0, 0);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	bbr414_enter_startup(bbr);
	bbr414_init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Called when a recovery begins. */
static u32 bbr414_ssthresh(struct sock *sk)
{
	bbr414_save_cwnd(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

/* Called when a recovery was spurious: its plateau does not count. */
static u32 bbr414_undo_cwnd(struct sock *sk)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	bbr->full_bw = 0;
	bbr->full_bw_count = 0;
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* A timeout begins a round, and restarts the search for the plateau. */
static void bbr414_set_state(struct sock *sk, u8 state)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	bbr->ca_state = TCP_CA_Loss;
	bbr->full_bw = 0;
	bbr->round_start = true;
}

static void bbr414_tx_start(TX_START_ARGS)
{
	struct bbr414 *bbr = inet_csk_ca(sk);

	if (!IS_TX_START || !tcp_sk(sk)->app_limited)
		return;
	bbr->idle_restart = true;
	if (bbr->state == PROBE_BW)
		bbr414_set_pacing_rate(sk, BBR_UNIT);
}

static u32 bbr414_min_tso_segs(struct sock *sk)
{
	return READ_ONCE(sk->sk_pacing_rate) < BBR_SLOW ? 1 : 2;
}

/* TCP expands its send buffer to three windows: a round of STARTUP triples them. */
static u32 bbr414_sndbuf_expand(struct sock *sk)
{
	return 3;
}

static struct tcp_congestion_ops bbr414_ops __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= bbr414_init,
	.ssthresh	= bbr414_ssthresh,
	.cong_control	= bbr414_cong_control,
	.undo_cwnd	= bbr414_undo_cwnd,
	.set_state	= bbr414_set_state,
	.CWND_EVENT_TX_START = bbr414_tx_start,
	.min_tso_segs	= bbr414_min_tso_segs,
	.sndbuf_expand	= bbr414_sndbuf_expand,
	.owner		= THIS_MODULE,
	.name		= "bbr414",
};

/* Fields of struct bbr414 that become rows of the run's table `cc`. */
static const struct hourglass_column bbr414_columns[] = {
	HOURGLASS_COLUMN(struct bbr414, btlbw),
	HOURGLASS_COLUMN(struct bbr414, rtprop),
	HOURGLASS_COLUMN(struct bbr414, state),
	HOURGLASS_COLUMN(struct bbr414, pacing_gain),
};

HOURGLASS_STATE(bbr414_ops, bbr414_columns);

static int __init bbr414_register(void)
{
	BUILD_BUG_ON(sizeof(struct bbr414) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&bbr414_ops);
}
module_init(bbr414_register);

MODULE_LICENSE("GPL");
