// SPDX-License-Identifier: Apache-2.0
/*
 * A congestion control with a defect per `mode`, for tests/guest/test_score.py. Mode 0 has none: additive increase,
 * and half of the window after a loss.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "hourglass_cc.h"

static int mode __read_mostly;
module_param(mode, int, 0444);

static void hostile_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	switch (mode) {
	case 1:	/* divides by zero */
		tp->snd_cwnd_cnt = acked / (tp->snd_cwnd_cnt & 0);
		break;
	case 2:	/* never returns */
		while (READ_ONCE(mode))
			cpu_relax();
		break;
	case 3:	/* writes far behind its state */
		memset(inet_csk_ca(sk), 0xff, 1 << 20);
		break;
	case 4:	/* floods */
		tcp_snd_cwnd_set(tp, 1 << 24);
		return;
	case 5:	/* floods, and hides what that costs from its socket's counters */
		tcp_snd_cwnd_set(tp, 1 << 24);
		tp->total_retrans = 0;
		tp->bytes_retrans = 0;
		tp->lost = 0;
		return;
	case 6:	/* reads the host's clock */
		tcp_snd_cwnd_set(tp, 10 + (__builtin_ia32_rdtsc() & 31));
		return;
	case 7:	/* never returns, nor lets the clock move */
		while (READ_ONCE(mode))
			barrier();
		break;
	}
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static u32 hostile_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) >> 1U, 2U);
}

static struct tcp_congestion_ops hostile __read_mostly = {
	.ssthresh	= hostile_ssthresh,
	.cong_avoid	= hostile_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "hostile",
};

static int __init hostile_register(void)
{
	return tcp_register_congestion_control(&hostile);
}
module_init(hostile_register);
MODULE_LICENSE("GPL");
