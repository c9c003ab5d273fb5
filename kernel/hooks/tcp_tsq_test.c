// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the settings of TCP Small Queues and GSO autosizing. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/tcp_tsq.h>

#define RATE		12500000UL	/* 100 Mbit/s, in bytes per second */
#define TRUESIZE	2304
#define KERNEL		12207UL		/* RATE >> 10, the kernel's value */

/* Returns a socket that sends at @rate, in its own namespace. */
static struct sock *tsq_sock(struct kunit *test, unsigned long rate)
{
	struct net *net = kunit_kzalloc(test, sizeof(*net), GFP_KERNEL);
	struct sock *sk = kunit_kzalloc(test, sizeof(*sk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, net);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sk);
	sock_net_set(sk, net);
	sk->sk_pacing_rate = rate;
	return sk;
}

static struct netns_ipv4 *tsq_knobs(const struct sock *sk)
{
	return &sock_net(sk)->ipv4;
}

/* Computes the limit like tcp_small_queue_check(), without the cap. */
static unsigned long tsq_limit(const struct sock *sk, unsigned int truesize)
{
	struct sk_buff skb = { .truesize = truesize };

	return tcp_tsq_limit(sk, tcp_tsq_time_limit(sk, &skb, KERNEL));
}

static void tsq_rate_times_time(struct kunit *test)
{
	struct sock *sk = tsq_sock(test, RATE);

	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, 1), 12ULL);
	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, 1000), 12500ULL);
	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, TCP_TSQ_USECS_MAX), 125000000ULL);
	sk->sk_pacing_rate = 1999999;
	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, 1), 1ULL);
	sk->sk_pacing_rate = 0;
	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, TCP_TSQ_USECS_MAX), 0ULL);
}

/* The maximum rate, for both sizes of a long, and the maximum time. */
static void tsq_no_overflow(struct kunit *test)
{
	u64 rate = min_t(u64, ULONG_MAX, 1ULL << 40);
	struct sock *sk = tsq_sock(test, ULONG_MAX);

	KUNIT_EXPECT_EQ(test, tcp_pacing_bytes(sk, TCP_TSQ_USECS_MAX), rate * 10);
	KUNIT_EXPECT_GE(test, ULONG_MAX / 2, (unsigned long)TCP_TSQ_UNLIMITED);

	tsq_knobs(sk)->sysctl_tcp_tsq_mode = TCP_TSQ_TIME;
	tsq_knobs(sk)->sysctl_tcp_tsq_usecs = TCP_TSQ_USECS_MAX;
	KUNIT_EXPECT_EQ(test, (u64)tsq_limit(sk, TRUESIZE),
			min_t(u64, rate * 10, TCP_TSQ_UNLIMITED));
}

static void tsq_default_is_the_kernel(struct kunit *test)
{
	struct sock *sk = tsq_sock(test, RATE);

	tsq_knobs(sk)->sysctl_tcp_tsq_usecs = 4000;
	tsq_knobs(sk)->sysctl_tcp_tsq_bytes = 65536;
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, TRUESIZE), KERNEL);
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, 65536), KERNEL);
}

static void tsq_time(struct kunit *test)
{
	struct sock *sk = tsq_sock(test, RATE);

	tsq_knobs(sk)->sysctl_tcp_tsq_mode = TCP_TSQ_TIME;
	tsq_knobs(sk)->sysctl_tcp_tsq_usecs = 4000;
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, TRUESIZE), 50000UL);
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, 25000), 50000UL);
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, 25001), 50002UL);
}

static void tsq_bytes_and_off(struct kunit *test)
{
	struct sock *sk = tsq_sock(test, RATE);

	tsq_knobs(sk)->sysctl_tcp_tsq_mode = TCP_TSQ_BYTES;
	tsq_knobs(sk)->sysctl_tcp_tsq_usecs = 4000;
	tsq_knobs(sk)->sysctl_tcp_tsq_bytes = 1;
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, TRUESIZE), 1UL);
	tsq_knobs(sk)->sysctl_tcp_tsq_bytes = INT_MAX;
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, TRUESIZE), (unsigned long)INT_MAX);
	tsq_knobs(sk)->sysctl_tcp_tsq_mode = TCP_TSQ_OFF;
	KUNIT_EXPECT_EQ(test, tsq_limit(sk, TRUESIZE), (unsigned long)TCP_TSQ_UNLIMITED);
}

static void tsq_gso(struct kunit *test)
{
	struct sock *sk = tsq_sock(test, RATE);

	KUNIT_EXPECT_EQ(test, tcp_gso_bytes(sk, KERNEL, 65536), KERNEL);
	tsq_knobs(sk)->sysctl_tcp_gso_usecs = 500;
	KUNIT_EXPECT_EQ(test, tcp_gso_bytes(sk, KERNEL, 65536), 6250UL);
	tsq_knobs(sk)->sysctl_tcp_gso_usecs = TCP_TSQ_USECS_MAX;
	KUNIT_EXPECT_EQ(test, tcp_gso_bytes(sk, KERNEL, 65536), 65536UL);
	tsq_knobs(sk)->sysctl_tcp_tsq_mode = TCP_TSQ_OFF;
	KUNIT_EXPECT_EQ(test, tcp_gso_bytes(sk, KERNEL, 65536), 65536UL);
}

static struct kunit_case tsq_cases[] = {
	KUNIT_CASE(tsq_rate_times_time),
	KUNIT_CASE(tsq_no_overflow),
	KUNIT_CASE(tsq_default_is_the_kernel),
	KUNIT_CASE(tsq_time),
	KUNIT_CASE(tsq_bytes_and_off),
	KUNIT_CASE(tsq_gso),
	{}
};

static struct kunit_suite tsq_suite = {
	.name = "tcp_tsq",
	.test_cases = tsq_cases,
};

kunit_test_suite(tsq_suite);

MODULE_DESCRIPTION("KUnit tests of TCP Small Queues and GSO autosizing");
MODULE_LICENSE("GPL");
