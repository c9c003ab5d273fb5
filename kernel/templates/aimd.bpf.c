// SPDX-License-Identifier: GPL-2.0-only
/*
 * AIMD in BPF: additive increase, multiplicative decrease (RFC 5681).
 *
 *	each ACK		cwnd += acked / cwnd
 *	each loss event		cwnd /= 2
 *
 * It computes what aimd.c computes, so both give the same packets.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* The state of a socket, in its space for congestion controls. */
struct aimd {
	__u32 losses;	/* loss events so far */
	__u32 peak;	/* the window before the last loss event, in segments */
};

static struct aimd *state(struct sock *sk)
{
	return (struct aimd *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static bool cwnd_limited(const struct tcp_sock *tp)
{
	if (tp->is_cwnd_limited)
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

SEC("struct_ops")
void BPF_PROG(aimd_init, struct sock *sk)
{
	struct aimd *ca = state(sk);

	ca->losses = 0;
	ca->peak = 0;
}

SEC("struct_ops")
void BPF_PROG(aimd_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(aimd_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct aimd *ca = state(sk);
	__u32 half = tp->snd_cwnd / 2;

	ca->losses++;
	ca->peak = tp->snd_cwnd;
	return half < 2 ? 2 : half;
}

SEC("struct_ops")
__u32 BPF_PROG(aimd_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops aimd = {
	.init		= (void *)aimd_init,
	.ssthresh	= (void *)aimd_ssthresh,
	.cong_avoid	= (void *)aimd_cong_avoid,
	.undo_cwnd	= (void *)aimd_undo_cwnd,
	.name		= "aimd",
};

char _license[] SEC("license") = "GPL";
