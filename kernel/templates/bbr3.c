// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBRv3: paces at the delivered bandwidth, and limits the data in flight by losses.
 *
 *	STARTUP ---> DRAIN ---> DOWN ---> CRUISE ---> REFILL ---> UP ---.
 *	   2.77	      0.5	0.9 ^	    1.0		1.0	  1.25	|
 *			            '-----------------------------------'
 *	any state, each 5 s without a shorter round trip ---> PROBE_RTT, half a BDP in flight
 *
 *	max_bw			the largest delivery rate of two cycles
 *	min_rtt			the shortest round trip of 10 s
 *	window			2 max_bw min_rtt (2.25 in UP), plus the size of ACK bursts
 *	inflight_longterm	upper bound: the data in flight of a probe that lost 2 %
 *	*_shortterm		0.7 per round with a loss, at least the delivery; until REFILL
 *
 * Written from N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr
 * (August 2026), with its names. It contains no line of Google's implementation.
 *
 * TCP does not report how much was in flight, and how much was lost, when a packet was sent. It
 * reports how much had been delivered by then. This is the key to a history (struct bbr3_sent).
 * A packet counts as the last one sent before the next ACK. So the data in flight is
 * overestimated by at most the data that one ACK released, or by 1/128 of the window.
 *
 * A mark (CE) counts as a loss: the draft requires no more. Left out: Google's ECN response for
 * data centres. An undone loss restores the state at the beginning of its recovery, like the
 * draft's text. Its pseudocode saves the state once per round.
 *
 * parameter	unit	default	why
 * loss_percent	%	2	a probe with more losses was too high
 * beta		%	70	CUBIC's: the remaining share after a round with a loss
 * headroom	%	15	of inflight_longterm, left to other flows in CRUISE
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/inet_diag.h>
#include <linux/win_minmax.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

#define BBR3_NONE	(~0U)		/* segments: no bound */
#define BBR3_NONE_BW	(~0ULL)
#define BBR3_MIN_PIPE	4U		/* segments */
#define BBR3_MARGIN	99		/* %: pacing slightly below the bandwidth */
#define BBR3_GROWTH	125		/* %: a round with less growth is on a plateau */
#define BBR3_PLATEAU	3		/* rounds */
#define BBR3_DRAIN	3		/* maximum rounds in DRAIN */
#define BBR3_RENO	63		/* maximum rounds between two probes */
#define BBR3_RANGES	6		/* separate losses in a round that end STARTUP */
#define BBR3_EXTRA	10		/* rounds for which extra_acked is kept */
#define BBR3_WAIT	(2 * USEC_PER_SEC) /* in DOWN and CRUISE, plus a random second */
#define BBR3_MIN_RTT	(10 * USEC_PER_SEC)
#define BBR3_RTT_WAIT	(5 * USEC_PER_SEC) /* between two PROBE_RTT */
#define BBR3_RTT_TIME	(200 * USEC_PER_MSEC)
#define BBR3_SENT	256		/* entries of the history */
#define BBR3_STEP	128		/* an entry covers this part of the window, or one ACK */

static int loss_percent __read_mostly = 2;
module_param(loss_percent, int, 0444);
MODULE_PARM_DESC(loss_percent, "a probe that loses more was too high, %");

static int beta __read_mostly = 70;
module_param(beta, int, 0444);
MODULE_PARM_DESC(beta, "what a round with a loss leaves, %");

static int headroom __read_mostly = 15;
module_param(headroom, int, 0444);
MODULE_PARM_DESC(headroom, "of inflight_longterm, left to others in CRUISE, %");

enum bbr3_phase {
	STARTUP,
	DRAIN,
	PROBE_DOWN,
	PROBE_CRUISE,
	PROBE_REFILL,
	PROBE_UP,
	PROBE_RTT,
};

static const struct {
	u16 pacing, cwnd;	/* % */
} bbr3_gains[] = {
	[STARTUP]	= { 277, 200 },
	[DRAIN]		= { 50, 200 },
	[PROBE_DOWN]	= { 90, 200 },
	[PROBE_CRUISE]	= { 100, 200 },
	[PROBE_REFILL]	= { 100, 200 },
	[PROBE_UP]	= { 125, 225 },
	[PROBE_RTT]	= { 100, 50 },
};

/* Packets sent while tp->delivered had one value, up to the next entry. */
struct bbr3_sent {
	u32 delivered;
	u32 in_flight;		/* at most */
	u32 lost;		/* bbr3_lost() then */
};

/* An ACK, or a lost packet: the state when it was sent, and the changes since. */
struct bbr3_sample {
	u64 bw;			/* bytes/s */
	u32 tx_in_flight;
	u32 lost;		/* segments, since it was sent */
	bool app_limited;
};

/* State that the control needs and does not export. */
struct bbr3_book {
	struct minmax extra_acked;
	u64 extra_start_us;
	u64 cycle_us;		/* start of DOWN */
	u64 probe_rtt_stamp_us;
	u64 probe_rtt_done_us;	/* 0: the data in flight still exceeds PROBE_RTT's limit */
	u64 min_rtt_stamp_us;
	u64 turn_bw[2];		/* the largest bandwidth of the last cycle, of this cycle */
	u64 bw_latest;
	u64 full_bw;
	u64 undo_bw_shortterm;
	u32 undo_inflight_shortterm;
	u32 undo_inflight_longterm;
	u32 extra_delivered;
	u32 next_round;		/* tp->delivered */
	u32 loss_round;		/* tp->delivered */
	u32 lost;		/* bbr3_lost() at the last ACK */
	u32 inflight_latest;
	u32 drain_round;
	u32 rounds_since_probe;
	u32 wait_us;
	u32 probe_rtt_min_us;
	u32 up_acked;
	u32 up_acked_per_inc;
	u8 up_rounds;
	u8 full_bw_count;
	u8 loss_ranges;		/* in this round */
	u8 undo_phase;		/* PROBE_RTT: none */
	bool probe_ends;	/* for a round: the last ACKs of a probe arrive */
	bool round_start;
	bool loss_round_start;
	bool loss_in_round;
	bool full_bw_now;
	bool full_bw_reached;
	bool probe_sample;	/* a loss belongs to a probe without a response so far */
	bool too_high;		/* the last probe was */
	bool precautionary;	/* the last probe ended before it could be too high */
	bool probe_rtt_expired;
	bool probe_rtt_round_done;
	bool idle_restart;
	u32 newest, entries;
	struct bbr3_sent sent[BBR3_SENT];
};

/* The model and the parameters that follow from it. */
struct bbr3 {
	struct bbr3_book *book;	/* NULL before init(): the SYN is in flight */
	u64 bw;			/* bytes/s, the smaller of the next two */
	u64 max_bw;
	u64 bw_shortterm;	/* BBR3_NONE_BW: no bound */
	u32 inflight_shortterm;	/* segments; BBR3_NONE: no bound */
	u32 inflight_longterm;
	u32 min_rtt_us;
	u32 extra_acked;	/* segments */
	u32 prior_cwnd;
	u32 round_count;
	u32 probes_too_high;	/* so far */
	u8 phase;
};

static bool bbr3_probes_bw(const struct bbr3 *ca)
{
	return ca->phase >= PROBE_DOWN && ca->phase <= PROBE_UP;
}

/* Returns the number of lost or marked packets so far. */
static u32 bbr3_lost(const struct tcp_sock *tp)
{
	return tp->lost + tp->delivered_ce;
}

/* Volumes, in segments. */

static u32 bbr3_bdp(struct sock *sk, u32 gain)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 bytes;

	if (ca->min_rtt_us == BBR3_NONE)
		return TCP_INIT_CWND;
	bytes = div_u64(ca->bw * ca->min_rtt_us, 100) * gain;
	bytes = div_u64(bytes, USEC_PER_SEC);
	return DIV_ROUND_UP_ULL(bytes, tcp_sk(sk)->mss_cache);
}

/* Adds three times the data sent in a millisecond: for the qdisc, the NIC and the receiver. */
static u32 bbr3_with_budget(struct sock *sk, u32 volume)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 bytes = div_u64(READ_ONCE(sk->sk_pacing_rate), MSEC_PER_SEC);
	u32 quantum = div_u64(min_t(u64, bytes, 65535), tcp_sk(sk)->mss_cache);

	volume = max3(volume, 3 * max(quantum, 2U), BBR3_MIN_PIPE);
	return ca->phase == PROBE_UP ? volume + 2 : volume;
}

static u32 bbr3_target(struct sock *sk)
{
	return min(bbr3_bdp(sk, 100), tcp_snd_cwnd(tcp_sk(sk)));
}

static u32 bbr3_with_headroom(const struct bbr3 *ca)
{
	u32 left;

	if (ca->inflight_longterm == BBR3_NONE)
		return BBR3_NONE;
	left = max_t(u32, (u64)ca->inflight_longterm * headroom / 100, 1);
	return max(ca->inflight_longterm - left, BBR3_MIN_PIPE);
}

static u32 bbr3_probe_rtt_cwnd(struct sock *sk)
{
	return max(bbr3_bdp(sk, bbr3_gains[PROBE_RTT].cwnd), BBR3_MIN_PIPE);
}

/* The history. */

static void bbr3_remember(struct sock *sk, u32 prior_in_flight)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;
	struct bbr3_sent *last = &book->sent[book->newest];
	u32 delivered = tp->delivered - last->delivered;

	last->in_flight = max(last->in_flight, prior_in_flight);
	if (!delivered || delivered < tcp_snd_cwnd(tp) / BBR3_STEP)
		return;
	book->newest = (book->newest + 1) % BBR3_SENT;
	book->entries = min(book->entries + 1, (u32)BBR3_SENT);
	book->sent[book->newest] = (struct bbr3_sent){
		.delivered = tp->delivered,
		.in_flight = tcp_packets_in_flight(tp),
		.lost = bbr3_lost(tp),
	};
}

/* Returns the entry of a packet with tx.delivered @delivered, or the oldest entry. */
static const struct bbr3_sent *bbr3_sent(const struct bbr3_book *book, u32 delivered)
{
	u32 young = 0, old = book->entries - 1, age;

	while (young < old) {
		age = (young + old) / 2;
		if (before(delivered, book->sent[(book->newest - age) % BBR3_SENT].delivered))
			young = age + 1;
		else
			old = age;
	}
	return &book->sent[(book->newest - young) % BBR3_SENT];
}

/* Rounds and the cycle. */

static void bbr3_start_round(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->book->next_round = tcp_sk(sk)->delivered;
}

static void bbr3_update_round(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->round_start = !before(rs->prior_delivered, book->next_round);
	if (!book->round_start)
		return;
	bbr3_start_round(sk);
	ca->round_count++;
	book->rounds_since_probe++;
}

static void bbr3_reset_full_bw(struct bbr3_book *book, u64 bw)
{
	book->full_bw = bw;
	book->full_bw_count = 0;
	book->full_bw_now = false;
}

static void bbr3_reset_shortterm(struct bbr3 *ca)
{
	ca->bw_shortterm = BBR3_NONE_BW;
	ca->inflight_shortterm = BBR3_NONE;
}

static void bbr3_start_down(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->loss_in_round = false;
	book->bw_latest = 0;
	book->inflight_latest = 0;
	book->up_acked_per_inc = BBR3_NONE;
	book->rounds_since_probe = get_random_u32() & 1;
	book->wait_us = BBR3_WAIT + ((u64)get_random_u32() * USEC_PER_SEC >> 32);
	book->cycle_us = tcp_sk(sk)->tcp_mstamp;
	book->probe_ends = true;
	bbr3_start_round(sk);
	ca->phase = PROBE_DOWN;
}

static void bbr3_start_refill(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	bbr3_reset_shortterm(ca);
	book->up_rounds = 0;
	book->up_acked = 0;
	book->precautionary = false;
	book->probe_ends = false;
	bbr3_start_round(sk);
	ca->phase = PROBE_REFILL;
}

/* Increases inflight_longterm by 1, 2, 4, ... segments per round. */
static void bbr3_raise_slope(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->up_acked_per_inc = max(tcp_snd_cwnd(tcp_sk(sk)) >> book->up_rounds, 1U);
	book->up_rounds = min(book->up_rounds + 1, 30);
}

static void bbr3_start_up(struct sock *sk, u64 bw)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->probe_sample = true;
	bbr3_start_round(sk);
	bbr3_reset_full_bw(book, bw);
	ca->phase = PROBE_UP;
	bbr3_raise_slope(sk);
}

static bool bbr3_time_to_probe(struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	const struct bbr3_book *book = ca->book;

	return tcp_sk(sk)->tcp_mstamp > book->cycle_us + book->wait_us ||
	       book->rounds_since_probe >= min_t(u32, bbr3_target(sk), BBR3_RENO);
}

static bool bbr3_time_to_cruise(struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 in_flight = tcp_packets_in_flight(tcp_sk(sk));

	return in_flight <= bbr3_with_headroom(ca) &&
	       in_flight <= bbr3_with_budget(sk, bbr3_bdp(sk, 100));
}

/* Returns whether the window is full, and limited by inflight_longterm. */
static bool bbr3_at_longterm(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr3 *ca = inet_csk_ca(sk);

	return tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= ca->inflight_longterm;
}

static bool bbr3_time_to_go_down(struct sock *sk, u64 bw)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (book->too_high && tcp_packets_in_flight(tcp_sk(sk)) >= ca->inflight_longterm) {
		book->precautionary = true;
		return true;
	}
	if (!bbr3_at_longterm(sk))
		return book->full_bw_now;
	bbr3_reset_full_bw(book, bw);
	return false;
}

static void bbr3_update_phase(struct sock *sk, const struct bbr3_sample *sample)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	switch (ca->phase) {
	case PROBE_DOWN:
	case PROBE_CRUISE:
		if (bbr3_time_to_probe(sk))
			bbr3_start_refill(sk);
		else if (ca->phase == PROBE_DOWN && bbr3_time_to_cruise(sk))
			ca->phase = PROBE_CRUISE;
		break;
	case PROBE_REFILL:
		if (book->round_start)
			bbr3_start_up(sk, sample->bw);
		break;
	case PROBE_UP:
		if (bbr3_time_to_go_down(sk, sample->bw)) {
			book->too_high = false;
			bbr3_start_down(sk);
		}
		break;
	}
}

/* The volume: losses of probes, and growth without losses. */

static bool bbr3_is_too_high(struct sock *sk, const struct bbr3_sample *sample)
{
	if (tcp_is_reno(tcp_sk(sk)))
		return sample->lost;
	return (u64)sample->lost * 100 > (u64)sample->tx_in_flight * loss_percent;
}

static void bbr3_handle_too_high(struct sock *sk, const struct bbr3_sample *sample)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->too_high = true;
	book->probe_sample = false;
	ca->probes_too_high++;
	if (!sample->app_limited)
		ca->inflight_longterm = max_t(u32, sample->tx_in_flight,
					      (u64)bbr3_target(sk) * beta / 100);
	if (ca->phase == PROBE_UP) {
		book->undo_phase = PROBE_UP;
		bbr3_start_down(sk);
	}
}

/* Returns the data in flight when the losses exceeded the limit, within one packet. */
static u32 bbr3_inflight_at_loss(const struct bbr3_sample *sample, u32 size)
{
	s64 in_flight = (s64)sample->tx_in_flight - size;
	s64 lost = (s64)sample->lost - size;
	s64 prefix = div_s64(loss_percent * in_flight - 100 * lost, 100 - loss_percent);

	return max(in_flight, 0LL) + max(prefix, 0LL);
}

/* Handles packets lost since the last ACK, before their retransmission. */
static void bbr3_handle_lost_packets(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;
	struct sk_buff *skb = tp->retransmit_skb_hint ?: tcp_rtx_queue_head(sk);
	u32 lost = book->lost, all = bbr3_lost(tp);

	skb_rbtree_walk_from(skb) {
		const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);
		const struct bbr3_sent *sent;
		struct bbr3_sample sample;

		if ((cb->sacked & (TCPCB_LOST | TCPCB_SACKED_RETRANS)) != TCPCB_LOST)
			continue;
		lost += tcp_skb_pcount(skb);
		if (after(lost, all))
			return;
		sent = bbr3_sent(book, cb->tx.delivered);
		sample.tx_in_flight = sent->in_flight;
		sample.lost = lost - sent->lost;
		sample.app_limited = cb->tx.is_app_limited;
		if (bbr3_is_too_high(sk, &sample)) {
			sample.tx_in_flight = bbr3_inflight_at_loss(&sample, tcp_skb_pcount(skb));
			bbr3_handle_too_high(sk, &sample);
			return;
		}
	}
}

static void bbr3_note_losses(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (bbr3_lost(tp) == book->lost)
		return;
	if (!book->loss_in_round)
		book->loss_round = tp->delivered;
	book->loss_in_round = true;
	book->loss_ranges = min_t(u32, book->loss_ranges + 1, U8_MAX);
	if (book->probe_sample)
		bbr3_handle_lost_packets(sk);
	book->lost = bbr3_lost(tp);
}

static void bbr3_raise_longterm(struct sock *sk, u32 acked)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (!bbr3_at_longterm(sk))
		return;
	book->up_acked += acked;
	if (book->up_acked >= book->up_acked_per_inc) {
		ca->inflight_longterm += book->up_acked / book->up_acked_per_inc;
		book->up_acked %= book->up_acked_per_inc;
	}
	if (book->round_start)
		bbr3_raise_slope(sk);
}

/* Returns true if the phase is decided. */
static bool bbr3_adapt_longterm(struct sock *sk, const struct bbr3_sample *sample, u32 acked)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (book->probe_ends && book->round_start) {
		book->probe_sample = false;
		book->probe_ends = false;
		if (bbr3_probes_bw(ca) && !sample->app_limited && book->turn_bw[1]) {
			book->turn_bw[0] = book->turn_bw[1]; /* forgets the cycle before */
			book->turn_bw[1] = 0;
		}
		if (bbr3_probes_bw(ca) && book->precautionary && !book->too_high) {
			bbr3_start_refill(sk);
			return true;
		}
	}
	if (bbr3_is_too_high(sk, sample)) {
		if (!book->probe_sample)
			return false;
		bbr3_handle_too_high(sk, sample); /* for marks; losses are already handled */
		return ca->phase == PROBE_DOWN;
	}
	if (ca->inflight_longterm == BBR3_NONE)
		return false;
	ca->inflight_longterm = max(ca->inflight_longterm, sample->tx_in_flight);
	if (ca->phase == PROBE_UP)
		bbr3_raise_longterm(sk, acked);
	return false;
}

/* Updates the last round's delivery, and once per round the short-term bounds. */
static void bbr3_update_congestion(struct sock *sk, const struct rate_sample *rs, u64 bw)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->bw_latest = max(book->bw_latest, bw);
	book->inflight_latest = max_t(u32, book->inflight_latest, rs->delivered);
	book->loss_round_start = !before(rs->prior_delivered, book->loss_round);
	if (!book->loss_round_start)
		return;
	book->loss_round = tcp_sk(sk)->delivered;
	if (book->loss_in_round && ca->phase != STARTUP && ca->phase != PROBE_REFILL &&
	    ca->phase != PROBE_UP) {
		if (ca->bw_shortterm == BBR3_NONE_BW)
			ca->bw_shortterm = ca->max_bw;
		if (ca->inflight_shortterm == BBR3_NONE)
			ca->inflight_shortterm = inet_csk(sk)->icsk_ca_state == TCP_CA_Loss ?
				ca->prior_cwnd : tcp_snd_cwnd(tcp_sk(sk));
		ca->bw_shortterm = max(book->bw_latest, div_u64(ca->bw_shortterm, 100) * beta);
		ca->inflight_shortterm = max_t(u32, book->inflight_latest,
					       (u64)ca->inflight_shortterm * beta / 100);
	}
	book->loss_in_round = false;
}

/* The bandwidth. */

static void bbr3_update_max_bw(struct bbr3 *ca, const struct bbr3_sample *sample)
{
	u64 *turn = ca->book->turn_bw;

	if (sample->bw < ca->max_bw && sample->app_limited)
		return;
	turn[1] = max(turn[1], sample->bw);
	ca->max_bw = max(turn[0], turn[1]);
}

/* Updates the excess of ACKs over max_bw in their time. */
static void bbr3_update_extra_acked(struct sock *sk, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;
	u64 us = tp->tcp_mstamp - book->extra_start_us;
	u64 expected = div_u64(div_u64(ca->bw * us, USEC_PER_SEC), tp->mss_cache);
	u32 extra;

	if (book->extra_delivered <= expected) {
		book->extra_delivered = 0;
		book->extra_start_us = tp->tcp_mstamp;
		expected = 0;
	}
	book->extra_delivered += acked;
	extra = min(book->extra_delivered - (u32)expected, tcp_snd_cwnd(tp));
	ca->extra_acked = minmax_running_max(&book->extra_acked,
					     book->full_bw_reached ? BBR3_EXTRA : 1,
					     ca->round_count, extra);
}

static void bbr3_check_full_bw(struct bbr3_book *book, const struct bbr3_sample *sample)
{
	if (book->full_bw_now || !book->round_start || sample->app_limited)
		return;
	if (sample->bw * 100 >= book->full_bw * BBR3_GROWTH) {
		bbr3_reset_full_bw(book, sample->bw);
		return;
	}
	book->full_bw_now = ++book->full_bw_count >= BBR3_PLATEAU;
	if (book->full_bw_now)
		book->full_bw_reached = true;
}

static void bbr3_check_startup(struct sock *sk, const struct bbr3_sample *sample)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (ca->phase == STARTUP && book->loss_round_start && bbr3_is_too_high(sk, sample) &&
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery &&
	    (book->loss_ranges >= BBR3_RANGES || tcp_is_reno(tcp_sk(sk)))) {
		book->undo_phase = STARTUP;
		book->full_bw_reached = true;
		ca->inflight_longterm = max(bbr3_bdp(sk, 100), book->inflight_latest);
	}
	if (book->loss_round_start)
		book->loss_ranges = 0;
	if (ca->phase == STARTUP && book->full_bw_reached) {
		ca->phase = DRAIN;
		book->drain_round = ca->round_count;
	}
}

static void bbr3_check_drain(struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->phase != DRAIN)
		return;
	if (tcp_packets_in_flight(tcp_sk(sk)) <= bbr3_with_budget(sk, bbr3_bdp(sk, 100)) ||
	    ca->round_count > ca->book->drain_round + BBR3_DRAIN)
		bbr3_start_down(sk);
}

/* The round trip. */

static void bbr3_update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	u64 now = tcp_sk(sk)->tcp_mstamp;
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	book->probe_rtt_expired = now > book->probe_rtt_stamp_us + BBR3_RTT_WAIT;
	if (rs->rtt_us >= 0 &&
	    (rs->rtt_us < book->probe_rtt_min_us || book->probe_rtt_expired)) {
		book->probe_rtt_min_us = rs->rtt_us;
		book->probe_rtt_stamp_us = now;
	}
	if (book->probe_rtt_min_us < ca->min_rtt_us ||
	    now > book->min_rtt_stamp_us + BBR3_MIN_RTT) {
		ca->min_rtt_us = book->probe_rtt_min_us;
		book->min_rtt_stamp_us = book->probe_rtt_stamp_us;
	}
}

static void bbr3_save_cwnd(struct sock *sk)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	struct bbr3 *ca = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery || ca->phase == PROBE_RTT)
		cwnd = max(cwnd, ca->prior_cwnd);
	ca->prior_cwnd = cwnd;
}

static void bbr3_restore_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr3 *ca = inet_csk_ca(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), ca->prior_cwnd));
}

static void bbr3_check_probe_rtt_done(struct sock *sk)
{
	u64 now = tcp_sk(sk)->tcp_mstamp;
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (!book->probe_rtt_done_us || now <= book->probe_rtt_done_us)
		return;
	book->probe_rtt_stamp_us = now;
	bbr3_restore_cwnd(sk);
	bbr3_reset_shortterm(ca);
	if (book->full_bw_reached) {
		bbr3_start_down(sk);
		ca->phase = PROBE_CRUISE;
	} else {
		ca->phase = STARTUP;
	}
}

static void bbr3_check_probe_rtt(struct sock *sk, bool delivered)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;
	u32 in_flight = tcp_packets_in_flight(tp);

	if (ca->phase != PROBE_RTT && book->probe_rtt_expired && !book->idle_restart) {
		bbr3_save_cwnd(sk);
		ca->phase = PROBE_RTT;
		book->probe_rtt_done_us = 0;
		book->probe_ends = true;
		bbr3_start_round(sk);
	}
	if (delivered)
		book->idle_restart = false;
	if (ca->phase != PROBE_RTT)
		return;
	/* this delivery rate does not count as bandwidth */
	tp->app_limited = (tp->delivered + in_flight) ?: 1;
	if (!book->probe_rtt_done_us) {
		if (in_flight > bbr3_probe_rtt_cwnd(sk))
			return;
		book->probe_rtt_done_us = tp->tcp_mstamp + BBR3_RTT_TIME;
		book->probe_rtt_round_done = false;
		bbr3_start_round(sk);
		return;
	}
	if (book->round_start)
		book->probe_rtt_round_done = true;
	if (book->probe_rtt_round_done)
		bbr3_check_probe_rtt_done(sk);
}

/* Pacing rate and window. */

static void bbr3_set_pacing_rate(struct sock *sk, u32 gain)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 rate = div_u64(ca->bw * gain * BBR3_MARGIN, 100 * 100);

	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	if (ca->book->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		WRITE_ONCE(sk->sk_pacing_rate, rate);
}

static void bbr3_set_cwnd(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), bound = BBR3_NONE, most;

	most = bbr3_bdp(sk, bbr3_gains[ca->phase].cwnd) + ca->extra_acked;
	most = bbr3_with_budget(sk, most);
	if (ca->book->full_bw_reached)
		cwnd = min(cwnd + acked, most);
	else if (cwnd < most || tp->delivered < TCP_INIT_CWND)
		cwnd += acked;
	cwnd = max(cwnd, BBR3_MIN_PIPE);
	if (ca->phase == PROBE_RTT)
		cwnd = min(cwnd, bbr3_probe_rtt_cwnd(sk));
	if (ca->phase == PROBE_RTT || ca->phase == PROBE_CRUISE)
		bound = bbr3_with_headroom(ca);
	else if (bbr3_probes_bw(ca))
		bound = ca->inflight_longterm;
	bound = max(min(bound, ca->inflight_shortterm), BBR3_MIN_PIPE);
	tcp_snd_cwnd_set(tp, min3(cwnd, bound, tp->snd_cwnd_clamp));
}

/* Handles an ACK. */

static void bbr3_update_model(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;
	const struct bbr3_sent *sent = bbr3_sent(book, rs->prior_delivered);
	struct bbr3_sample sample = {
		.bw = div_u64((u64)rs->delivered * tp->mss_cache * USEC_PER_SEC, rs->interval_us),
		.tx_in_flight = sent->in_flight,
		.lost = bbr3_lost(tp) - sent->lost,
		.app_limited = rs->is_app_limited,
	};

	bbr3_update_round(sk, rs);
	bbr3_update_max_bw(ca, &sample);
	bbr3_update_congestion(sk, rs, sample.bw);
	bbr3_update_extra_acked(sk, rs->acked_sacked);
	bbr3_check_full_bw(book, &sample);
	bbr3_check_startup(sk, &sample);
	bbr3_check_drain(sk);
	if (book->full_bw_reached && !bbr3_adapt_longterm(sk, &sample, rs->acked_sacked))
		bbr3_update_phase(sk, &sample);
	if (book->loss_round_start) {
		book->bw_latest = sample.bw;
		book->inflight_latest = rs->delivered;
	}
}

static void bbr3_cong_control(CONG_CONTROL_ARGS)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (!book)
		return;
	bbr3_note_losses(sk);
	book->round_start = false;
	if (rs->delivered > 0 && rs->interval_us > 0)
		bbr3_update_model(sk, rs);
	bbr3_update_min_rtt(sk, rs);
	bbr3_check_probe_rtt(sk, rs->delivered > 0);
	ca->bw = min(ca->max_bw, ca->bw_shortterm);
	bbr3_set_pacing_rate(sk, bbr3_gains[ca->phase].pacing);
	bbr3_set_cwnd(sk, max_t(int, rs->acked_sacked, 0));
	bbr3_remember(sk, rs->prior_in_flight);
}

/* Further callbacks of TCP. */

static void bbr3_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = kzalloc(sizeof(*book), GFP_ATOMIC);
	u64 rate = (u64)tcp_snd_cwnd(tp) * tp->mss_cache * USEC_PER_SEC;

	if (!book) {
		inet_csk(sk)->icsk_ca_ops = &tcp_reno;
		return;
	}
	ca->book = book;
	ca->phase = STARTUP;
	ca->min_rtt_us = tcp_min_rtt(tp);
	ca->inflight_longterm = BBR3_NONE;
	bbr3_reset_shortterm(ca);
	book->probe_rtt_min_us = ca->min_rtt_us;
	book->probe_rtt_stamp_us = tp->tcp_mstamp;
	book->min_rtt_stamp_us = tp->tcp_mstamp;
	book->extra_start_us = tp->tcp_mstamp;
	book->up_acked_per_inc = BBR3_NONE;
	book->undo_phase = PROBE_RTT;
	book->lost = bbr3_lost(tp);
	book->next_round = tp->delivered;
	book->loss_round = tp->delivered;
	book->entries = 1;
	book->sent[0].delivered = tp->delivered;
	book->sent[0].lost = book->lost;
	minmax_reset(&book->extra_acked, 0, 0);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	rate = div_u64(rate, (tp->srtt_us >> 3) ?: USEC_PER_MSEC);
	rate = div_u64(rate * bbr3_gains[STARTUP].pacing, 100);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void bbr3_release(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	kfree(ca->book);
	ca->book = NULL;
}

/* Called when a recovery begins. */
static u32 bbr3_ssthresh(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (!book)
		return tcp_sk(sk)->snd_ssthresh;
	bbr3_save_cwnd(sk);
	book->undo_phase = PROBE_RTT;
	book->undo_bw_shortterm = ca->bw_shortterm;
	book->undo_inflight_shortterm = ca->inflight_shortterm;
	book->undo_inflight_longterm = ca->inflight_longterm;
	return tcp_sk(sk)->snd_ssthresh;
}

/* Called when a recovery was spurious. */
static u32 bbr3_undo_cwnd(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	struct bbr3_book *book = ca->book;

	if (!book)
		return tcp_snd_cwnd(tcp_sk(sk));
	bbr3_restore_cwnd(sk);
	book->loss_in_round = false;
	bbr3_reset_full_bw(book, 0);
	ca->bw_shortterm = max(ca->bw_shortterm, book->undo_bw_shortterm);
	ca->inflight_shortterm = max(ca->inflight_shortterm, book->undo_inflight_shortterm);
	ca->inflight_longterm = max(ca->inflight_longterm, book->undo_inflight_longterm);
	if (book->undo_phase == STARTUP && ca->phase != STARTUP) {
		book->full_bw_reached = false;
		if (ca->phase != PROBE_RTT)
			ca->phase = STARTUP;
	} else if (book->undo_phase == PROBE_UP && ca->phase != PROBE_UP &&
		   ca->phase != PROBE_RTT) {
		bbr3_start_refill(sk);
	}
	book->undo_phase = PROBE_RTT;
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void bbr3_set_state(struct sock *sk, u8 state)
{
	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery && state < TCP_CA_Recovery)
		bbr3_restore_cwnd(sk);
}

/* Called when data is sent while nothing is in flight. */
static void bbr3_tx_start(TX_START_ARGS)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!IS_TX_START || !ca->book || !tp->app_limited)
		return;
	ca->book->idle_restart = true;
	ca->book->extra_start_us = tp->tcp_mstamp;
	if (bbr3_probes_bw(ca))
		bbr3_set_pacing_rate(sk, 100);
	else if (ca->phase == PROBE_RTT)
		bbr3_check_probe_rtt_done(sk);
}

/* Buffers for two windows, and for retransmissions. */
static u32 bbr3_sndbuf_expand(struct sock *sk)
{
	return 3;
}

static size_t bbr3_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	info->bbr = (struct tcp_bbr_info){
		.bbr_bw_lo = lower_32_bits(ca->bw),
		.bbr_bw_hi = upper_32_bits(ca->bw),
		.bbr_min_rtt = ca->min_rtt_us,
		.bbr_pacing_gain = bbr3_gains[ca->phase].pacing * 256 / 100,
		.bbr_cwnd_gain = bbr3_gains[ca->phase].cwnd * 256 / 100,
	};
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

static struct tcp_congestion_ops bbr3_ops __read_mostly = {
	.init		= bbr3_init,
	.release	= bbr3_release,
	.cong_control	= bbr3_cong_control,
	.ssthresh	= bbr3_ssthresh,
	.undo_cwnd	= bbr3_undo_cwnd,
	.set_state	= bbr3_set_state,
	.CWND_EVENT_TX_START = bbr3_tx_start,
	.sndbuf_expand	= bbr3_sndbuf_expand,
	.get_info	= bbr3_get_info,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "bbr3",
};

static const struct hourglass_column bbr3_columns[] = {
	HOURGLASS_COLUMN(struct bbr3, phase),
	HOURGLASS_COLUMN(struct bbr3, bw),
	HOURGLASS_COLUMN(struct bbr3, max_bw),
	HOURGLASS_COLUMN(struct bbr3, bw_shortterm),
	HOURGLASS_COLUMN(struct bbr3, inflight_shortterm),
	HOURGLASS_COLUMN(struct bbr3, inflight_longterm),
	HOURGLASS_COLUMN(struct bbr3, min_rtt_us),
	HOURGLASS_COLUMN(struct bbr3, extra_acked),
	HOURGLASS_COLUMN(struct bbr3, round_count),
	HOURGLASS_COLUMN(struct bbr3, probes_too_high),
};

HOURGLASS_STATE(bbr3_ops, bbr3_columns);

static int __init bbr3_register(void)
{
	BUILD_BUG_ON(sizeof(struct bbr3) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&bbr3_ops);
}
module_init(bbr3_register);

MODULE_LICENSE("GPL");
