// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steered: a program sets the congestion window and the pacing rate during the test.
 *
 *	each ACK	cwnd = parameter cwnd, pacing rate = parameter pacing
 *
 * The parameters are files of /sys/module/steered/parameters, and belong to all sockets. A new
 * value counts from a socket's next ACK on. Losses change nothing, except that after a timeout
 * the window is one segment until the next ACK. Recovery and the retransmission timer are the
 * kernel's (net/ipv4/tcp_input.c).
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

static unsigned int cwnd __read_mostly = 10;
module_param(cwnd, uint, 0644);
MODULE_PARM_DESC(cwnd, "congestion window in segments");

static unsigned long pacing __read_mostly;
module_param(pacing, ulong, 0644);
MODULE_PARM_DESC(pacing, "pacing rate in bytes per second; 0: none");

static void steer(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	unsigned long rate = READ_ONCE(pacing);

	tcp_snd_cwnd_set(tp, clamp(READ_ONCE(cwnd), 1U, tp->snd_cwnd_clamp));
	WRITE_ONCE(sk->sk_pacing_rate, rate ? min(rate, sk->sk_max_pacing_rate) : ~0UL);
}

/* Sockets pace by themselves, without the qdisc fq. */
static void steered_init(struct sock *sk)
{
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	steer(sk);
}

static void steered_cong_control(CONG_CONTROL_ARGS)
{
	steer(sk);
}

static u32 steered_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static struct tcp_congestion_ops steered_ops __read_mostly = {
	.init		= steered_init,
	.cong_control	= steered_cong_control,
	.ssthresh	= steered_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "steered",
};

static int __init steered_register(void)
{
	return tcp_register_congestion_control(&steered_ops);
}
module_init(steered_register);

MODULE_LICENSE("GPL");
