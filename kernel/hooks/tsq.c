// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Small Queues and GSO autosizing, settable per network namespace.
 *
 * TCP Small Queues (tcp_small_queue_check(), net/ipv4/tcp_output.c) bounds the
 * truesize that one socket has in qdisc and driver. The kernel's own rule is
 *
 *	limit = max(2 * skb->truesize, pacing_rate >> sk_pacing_shift)
 *	if not paced: limit = min(limit, tcp_limit_output_bytes)
 *
 * with sk_pacing_shift = 10, about 1 ms of data. C. A. Grazia, M. Klapez and
 * M. Casoni, "The New TCP Modules on the Block", IEEE Access 2021, made the
 * millisecond a parameter and the limit removable; this is that knob.
 *
 * parameter	unit	default	why
 * tsq_mode	-	0	0: the kernel's rule, untouched
 * tsq_ns	ns	1000000	mode 1: what the shift of 10 stands for
 * tsq_bytes	bytes	131072	mode 2: the papers' static limit of 128 KB
 * gso_ns	ns	0	0: the kernel's autosizing, untouched
 */
#include <linux/bits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/version.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>
#include <net/hourglass_tsq.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, entries) register_net_sysctl(net, path, table)
#endif

/* Far above any send buffer, far below where "<<= factor" overflows. */
#define TSQ_NO_LIMIT	BIT(48)

struct tsq_net {
	int mode;
	int bytes;
	unsigned long ns;
	unsigned long gso_ns;
	struct ctl_table_header *header;
	struct ctl_table *table;
};

static unsigned int tsq_net_id __read_mostly;

static struct tsq_net *tsq_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), tsq_net_id);
}

enum tsq_mode tsq_mode(const struct sock *sk)
{
	return READ_ONCE(tsq_net(sk)->mode);
}

/*
 * Bytes sent in @ns at the socket's pacing rate (bytes per second), rounded
 * down. A rate not known yet is ~0UL; the bound keeps the product in 64 bits.
 */
static unsigned long tsq_bytes_in(const struct sock *sk, unsigned long ns)
{
	unsigned long rate = min(READ_ONCE(sk->sk_pacing_rate), BIT(40));

	return rate / NSEC_PER_SEC * ns +
	       rate % NSEC_PER_SEC * ns / NSEC_PER_SEC;
}

static unsigned long tsq_time_limit(const struct sock *sk,
				    const struct sk_buff *skb, unsigned long ns)
{
	unsigned long limit = max_t(unsigned long, 2 * skb->truesize,
				    tsq_bytes_in(sk, ns));

	if (READ_ONCE(sk->sk_pacing_status) == SK_PACING_NONE)
		limit = min_t(unsigned long, limit,
			      READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_limit_output_bytes));
	return limit;
}

unsigned long tsq_limit(const struct sock *sk, const struct sk_buff *skb,
			unsigned long kernel)
{
	const struct tsq_net *tsq = tsq_net(sk);

	switch (READ_ONCE(tsq->mode)) {
	case TSQ_TIME:
		return tsq_time_limit(sk, skb, READ_ONCE(tsq->ns));
	case TSQ_BYTES:
		return READ_ONCE(tsq->bytes);
	case TSQ_OFF:
		return TSQ_NO_LIMIT;
	default:
		return kernel;
	}
}

unsigned long tsq_gso_bytes(const struct sock *sk, unsigned long kernel,
			    unsigned long max)
{
	unsigned long ns = READ_ONCE(tsq_net(sk)->gso_ns);

	return ns ? min(tsq_bytes_in(sk, ns), max) : kernel;
}

static int tsq_mode_max = TSQ_OFF;
static unsigned long tsq_ns_max = 10UL * NSEC_PER_SEC;

/* Four entries and the end mark that kernels before 6.11 want. */
static struct ctl_table *tsq_make_table(struct tsq_net *tsq)
{
	const struct ctl_table table[] = {
		{
			.procname = "tcp_tsq_mode",
			.data = &tsq->mode,
			.maxlen = sizeof(tsq->mode),
			.mode = 0644,
			.proc_handler = proc_dointvec_minmax,
			.extra1 = SYSCTL_ZERO,
			.extra2 = &tsq_mode_max,
		}, {
			.procname = "tcp_tsq_ns",
			.data = &tsq->ns,
			.maxlen = sizeof(tsq->ns),
			.mode = 0644,
			.proc_handler = proc_doulongvec_minmax,
			.extra2 = &tsq_ns_max,
		}, {
			.procname = "tcp_tsq_bytes",
			.data = &tsq->bytes,
			.maxlen = sizeof(tsq->bytes),
			.mode = 0644,
			.proc_handler = proc_dointvec_minmax,
			.extra1 = SYSCTL_ONE,
		}, {
			.procname = "tcp_gso_ns",
			.data = &tsq->gso_ns,
			.maxlen = sizeof(tsq->gso_ns),
			.mode = 0644,
			.proc_handler = proc_doulongvec_minmax,
			.extra2 = &tsq_ns_max,
		},
		{ }
	};

	return kmemdup(table, sizeof(table), GFP_KERNEL);
}

static int __net_init tsq_net_init(struct net *net)
{
	struct tsq_net *tsq = net_generic(net, tsq_net_id);

	tsq->ns = NSEC_PER_MSEC;
	tsq->bytes = 128 * 1024;
	tsq->table = tsq_make_table(tsq);
	if (!tsq->table)
		return -ENOMEM;
	tsq->header = register_net_sysctl_sz(net, "net/ipv4", tsq->table, 4);
	if (!tsq->header) {
		kfree(tsq->table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit tsq_net_exit(struct net *net)
{
	struct tsq_net *tsq = net_generic(net, tsq_net_id);

	unregister_net_sysctl_table(tsq->header);
	kfree(tsq->table);
}

static struct pernet_operations tsq_net_ops = {
	.init = tsq_net_init,
	.exit = tsq_net_exit,
	.id = &tsq_net_id,
	.size = sizeof(struct tsq_net),
};

static int __init tsq_init(void)
{
	return register_pernet_subsys(&tsq_net_ops);
}
subsys_initcall(tsq_init);
