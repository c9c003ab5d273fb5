// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the intervals of wire_itr.c against values computed from the drivers' code. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include "wire_itr.h"

#define US	1000U

static struct wire_itr make(enum wire_law law, u32 usecs, bool shared)
{
	struct wire_itr itr = { .serves = { shared, true } };

	wire_itr_start(&itr, law, usecs);
	return itr;
}

static u32 gap_after(struct wire_itr *itr, enum wire_side side, u32 packets, u32 size, u32 mbps,
		     u64 jiffy)
{
	itr->work[side] = (struct wire_work){ packets, packets * size };
	wire_itr_served(itr, mbps, jiffy);
	return itr->gap_ns;
}

static void a_fixed_interval_counts_from_the_last_interrupt(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_INTERVAL, 50, false);

	KUNIT_EXPECT_EQ(test, itr.next_ns, 0ULL);
	wire_itr_fired(&itr, 1000);
	KUNIT_EXPECT_EQ(test, itr.next_ns, 51000ULL);
	wire_itr_served(&itr, 1000, 7);
	wire_itr_fired(&itr, 51000);
	KUNIT_EXPECT_EQ(test, itr.next_ns, 101000ULL);
}

/* (1514 + 24) / 2 = 769 quarters: 192 us; below 1200 bytes a third; never below 49 us */
static void igb_goes_by_the_mean_frame(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IGB, 162, false);
	static const struct { u32 size, us; } of[] = {
		{ 1514, 192 }, { 66, 49 }, { 800, 68 }, { 9014, 375 }, { 400, 49 }, { 600, 52 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		gap_after(&itr, WIRE_RX, 10, of[i].size, 1000, 0);
		wire_itr_fired(&itr, 0);
		KUNIT_EXPECT_EQ(test, itr.gap_ns, of[i].us * US);
	}
}

static void igb_writes_at_the_next_interrupt(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IGB, 162, false);

	wire_itr_fired(&itr, 0);
	KUNIT_EXPECT_EQ(test, itr.next_ns, 162000ULL);
	gap_after(&itr, WIRE_RX, 1, 66, 1000, 0);
	wire_itr_fired(&itr, 162000);
	KUNIT_EXPECT_EQ(test, itr.next_ns, 324000ULL);
	wire_itr_fired(&itr, 324000);
	KUNIT_EXPECT_EQ(test, itr.next_ns, 373000ULL);
}

/* 980 quarters below a Gigabit. At 2.5 Gbit/s, igc adapts the interval as igb does at a Gigabit. */
static void igb_at_other_rates(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IGB, 162, false);

	gap_after(&itr, WIRE_RX, 10, 66, 100, 0);
	wire_itr_fired(&itr, 0);
	KUNIT_EXPECT_EQ(test, itr.gap_ns, 245 * US);
	gap_after(&itr, WIRE_RX, 10, 1514, 2500, 0);
	wire_itr_fired(&itr, 0);
	KUNIT_EXPECT_EQ(test, itr.gap_ns, 192 * US);
}

/* 5 registers of 2.048 us are 10 us, the value after a pause */
static void ixgbe_after_a_pause(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IXGBE, 50, true);

	KUNIT_EXPECT_EQ(test, itr.gap_ns, 50 * US);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 1000, 1514, 10000, 5), 10240U);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 1, 66, 10000, 9), 10240U);
}

static void ixgbe_grows_while_it_finds_little(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IXGBE, 50, false);
	u32 us;

	gap_after(&itr, WIRE_RX, 1, 66, 10000, 5);
	for (us = 12; us <= 126; us += 2)
		KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 20, 1514, 10000, 5),
				us / 2 * 2048U);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 20, 1514, 10000, 5), 63 * 2048U);
	/* within the range; too many; far too many: 5 * 1514 + 22420 = 29990, 59 times 512 */
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 64, 1514, 10000, 5), 63 * 2048U);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 100, 1514, 10000, 5), 31 * 2048U);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 300, 1514, 10000, 5), 59 * 2048U);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 300, 1514, 1000, 5), 63 * 2048U);
}

/* few and small: (66 * 40 + 2720) / 2 = 2680, 6 times 512, 12 us */
static void ixgbe_few_small_packets(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IXGBE, 50, false);

	gap_after(&itr, WIRE_RX, 1, 66, 10000, 5);
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 2, 66, 10000, 6), 6 * 2048U);
}

/* The smaller rule of both directions applies, and a direction without packets waits. */
static void ixgbe_shares_a_vector(struct kunit *test)
{
	struct wire_itr itr = make(WIRE_IXGBE, 50, true);

	gap_after(&itr, WIRE_RX, 1, 66, 10000, 5);
	itr.work[WIRE_TX] = (struct wire_work){ 20, 20 * 66 };
	/* TX: 10 + 2; RX: few and full, (1514 * 5 + 22420) / 2, 30 times 512: 60 us */
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 2, 1514, 10000, 5), 6 * 2048U);
	/* no TX packets: 12 + 2, the flag unchanged */
	KUNIT_EXPECT_EQ(test, gap_after(&itr, WIRE_RX, 60, 1514, 10000, 5), 6 * 2048U);
	KUNIT_EXPECT_EQ(test, itr.side_word[WIRE_TX], 14U);
}

static struct kunit_case wire_itr_cases[] = {
	KUNIT_CASE(a_fixed_interval_counts_from_the_last_interrupt),
	KUNIT_CASE(igb_goes_by_the_mean_frame),
	KUNIT_CASE(igb_writes_at_the_next_interrupt),
	KUNIT_CASE(igb_at_other_rates),
	KUNIT_CASE(ixgbe_after_a_pause),
	KUNIT_CASE(ixgbe_grows_while_it_finds_little),
	KUNIT_CASE(ixgbe_few_small_packets),
	KUNIT_CASE(ixgbe_shares_a_vector),
	{}
};

static struct kunit_suite wire_itr_suite = {
	.name = "wire_itr",
	.test_cases = wire_itr_cases,
};

kunit_test_suite(wire_itr_suite);
