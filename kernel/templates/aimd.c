// SPDX-License-Identifier: GPL-2.0-only
/*
 * AIMD: additive increase, multiplicative decrease (RFC 5681, with both parameters variable).
 *
 *	each ACK		cwnd += acked * increase / cwnd
 *	each loss event		cwnd *= share / 1024
 *
 * Between two losses the window grows linearly from share * W to W, so its mean is W * (1 +
 * share) / 2. Slow start, recovery, pacing and the retransmission timer are the kernel's
 * (net/ipv4/tcp_input.c, tcp_cong.c).
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

static int increase __read_mostly = 1;
module_param(increase, int, 0444);
MODULE_PARM_DESC(increase, "segments more per round trip");

static int share __read_mostly = 512;
module_param(share, int, 0444);
MODULE_PARM_DESC(share, "the share of the window that a loss leaves, of 1024");

/* The state of a socket: at most ICSK_CA_PRIV_SIZE bytes. */
struct aimd {
	u32 losses;	/* loss events so far */
	u32 peak;	/* the window before the last loss event, in segments */
};

static void aimd_init(struct sock *sk)
{
	struct aimd *ca = inet_csk_ca(sk);

	ca->losses = 0;
	ca->peak = 0;
}

/* Called for each ACK of new data; @acked is in segments. */
static void aimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked * increase);
}

/* Called at the beginning of a loss event. Returns the new window. */
static u32 aimd_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aimd *ca = inet_csk_ca(sk);

	ca->losses++;
	ca->peak = tcp_snd_cwnd(tp);
	return max((u32)((u64)tcp_snd_cwnd(tp) * share >> 10), 2U);
}

static struct tcp_congestion_ops aimd_ops __read_mostly = {
	.init		= aimd_init,
	.ssthresh	= aimd_ssthresh,
	.cong_avoid	= aimd_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "aimd",
};

/* Fields of struct aimd that become rows of the run's table `cc`. */
static const struct hourglass_column aimd_columns[] = {
	HOURGLASS_COLUMN(struct aimd, losses),
	HOURGLASS_COLUMN(struct aimd, peak),
};

HOURGLASS_STATE(aimd_ops, aimd_columns);

static int __init aimd_register(void)
{
	BUILD_BUG_ON(sizeof(struct aimd) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&aimd_ops);
}
module_init(aimd_register);

MODULE_LICENSE("GPL");
