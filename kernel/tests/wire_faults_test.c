// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the seeded faults of wire_faults.c. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include "wire_faults.h"

#define FRAMES	200000

static void none_without_a_rate(struct kunit *test)
{
	struct wire_faults faults = { .seed = 1 };
	u64 n;

	for (n = 0; n < 1000; n++) {
		struct wire_fate fate = wire_fate(&faults, n);

		KUNIT_ASSERT_FALSE(test, fate.lost || fate.corrupted ||
				   fate.duplicated || fate.reordered);
		KUNIT_ASSERT_EQ(test, fate.jitter_ns, 0ULL);
	}
}

static void always_at_certainty(struct kunit *test)
{
	struct wire_faults faults = { .seed = 1, .loss_ppb = WIRE_PPB };
	u64 n;

	for (n = 0; n < FRAMES; n++)
		KUNIT_ASSERT_TRUE(test, wire_fate(&faults, n).lost);
}

/* 200,000 draws at 1 %: mean 2000, standard deviation 44.5; five of them */
static void frequency(struct kunit *test)
{
	struct wire_faults faults = { .seed = 7, .loss_ppb = WIRE_PPB / 100,
				      .reorder_ppb = WIRE_PPB / 100 };
	int lost = 0, reordered = 0, both = 0;
	u64 n;

	for (n = 0; n < FRAMES; n++) {
		struct wire_fate fate = wire_fate(&faults, n);

		lost += fate.lost;
		reordered += fate.reordered;
		both += fate.lost && fate.reordered;
	}
	KUNIT_EXPECT_LT(test, abs(lost - 2000), 223);
	KUNIT_EXPECT_LT(test, abs(reordered - 2000), 223);
	/* independent: 20 expected, standard deviation 4.5 */
	KUNIT_EXPECT_LT(test, abs(both - 20), 23);
}

static void one_fault_moves_no_other(struct kunit *test)
{
	struct wire_faults alone = { .seed = 3, .loss_ppb = WIRE_PPB / 10 };
	struct wire_faults beside = alone;
	u64 n;

	beside.duplicate_ppb = WIRE_PPB / 2;
	beside.jitter_ns = 1000000;
	for (n = 0; n < 10000; n++)
		KUNIT_ASSERT_EQ(test, wire_fate(&alone, n).lost,
				wire_fate(&beside, n).lost);
}

static void seeds_differ(struct kunit *test)
{
	struct wire_faults one = { .seed = 1, .loss_ppb = WIRE_PPB / 2 };
	struct wire_faults two = { .seed = 2, .loss_ppb = WIRE_PPB / 2 };
	int equal = 0;
	u64 n;

	for (n = 0; n < 10000; n++)
		equal += wire_fate(&one, n).lost == wire_fate(&two, n).lost;
	/* half of them by chance; standard deviation 50 */
	KUNIT_EXPECT_LT(test, abs(equal - 5000), 250);
}

static void jitter_fills_its_range(struct kunit *test)
{
	struct wire_faults faults = { .seed = 1, .jitter_ns = 1000 };
	u64 n, low = 1000, high = 0;

	for (n = 0; n < 100000; n++) {
		u64 jitter = wire_fate(&faults, n).jitter_ns;

		low = min(low, jitter);
		high = max(high, jitter);
	}
	KUNIT_EXPECT_EQ(test, low, 0ULL);
	KUNIT_EXPECT_EQ(test, high, 999ULL);
}

static struct kunit_case wire_faults_cases[] = {
	KUNIT_CASE(none_without_a_rate),
	KUNIT_CASE(always_at_certainty),
	KUNIT_CASE(frequency),
	KUNIT_CASE(one_fault_moves_no_other),
	KUNIT_CASE(seeds_differ),
	KUNIT_CASE(jitter_fills_its_range),
	{}
};

static struct kunit_suite wire_faults_suite = {
	.name = "wire_faults",
	.test_cases = wire_faults_cases,
};

kunit_test_suite(wire_faults_suite);
