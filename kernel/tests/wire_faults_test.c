// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the seeded faults of wire_faults.c. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include "wire_faults.h"

#define FRAMES	200000
#define BURST_FRAMES	2000000

static void none_without_a_rate(struct kunit *test)
{
	struct wire_faults faults = { .seed = 1 };
	u64 n;

	for (n = 0; n < 1000; n++) {
		struct wire_fate fate = wire_fate(&faults, false, n);

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
		KUNIT_ASSERT_TRUE(test, wire_fate(&faults, false, n).lost);
}

/* 200,000 draws at 1 %: mean 2000, standard deviation 44.5; the bound is five of them */
static void frequency(struct kunit *test)
{
	struct wire_faults faults = { .seed = 7, .loss_ppb = WIRE_PPB / 100,
				      .reorder_ppb = WIRE_PPB / 100 };
	int lost = 0, reordered = 0, both = 0;
	u64 n;

	for (n = 0; n < FRAMES; n++) {
		struct wire_fate fate = wire_fate(&faults, false, n);

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
	struct wire_faults combined = alone;
	u64 n;

	combined.duplicate_ppb = WIRE_PPB / 2;
	combined.jitter_ns = 1000000;
	for (n = 0; n < 10000; n++)
		KUNIT_ASSERT_EQ(test, wire_fate(&alone, false, n).lost,
				wire_fate(&combined, false, n).lost);
}

static void seeds_differ(struct kunit *test)
{
	struct wire_faults first = { .seed = 1, .loss_ppb = WIRE_PPB / 2 };
	struct wire_faults second = { .seed = 2, .loss_ppb = WIRE_PPB / 2 };
	int equal = 0;
	u64 n;

	for (n = 0; n < 10000; n++)
		equal += wire_fate(&first, false, n).lost == wire_fate(&second, false, n).lost;
	/* half of them by chance; standard deviation 50 */
	KUNIT_EXPECT_LT(test, abs(equal - 5000), 250);
}

static void jitter_fills_its_range(struct kunit *test)
{
	struct wire_faults faults = { .seed = 1, .jitter_ns = 1000 };
	u64 n, low = 1000, high = 0;

	for (n = 0; n < 100000; n++) {
		u64 jitter = wire_fate(&faults, false, n).jitter_ns;

		low = min(low, jitter);
		high = max(high, jitter);
	}
	KUNIT_EXPECT_EQ(test, low, 0ULL);
	KUNIT_EXPECT_EQ(test, high, 999ULL);
}

/* The fates are those of the versions without bursts. */
static void fates_of_old(struct kunit *test)
{
	static const u64 expected[] = { 102, 210, 286, 310, 312, 340, 480, 950 };
	struct wire_faults faults = { .seed = 7, .loss_ppb = WIRE_PPB / 100 };
	int matched = 0;
	u64 n;

	for (n = 0; n <= expected[ARRAY_SIZE(expected) - 1]; n++) {
		bool lost = wire_fate(&faults, false, n).lost;

		KUNIT_ASSERT_EQ(test, lost, wire_fate(&faults, true, n).lost);
		if (lost)
			KUNIT_ASSERT_EQ(test, n, expected[matched++]);
	}
	KUNIT_EXPECT_EQ(test, matched, (int)ARRAY_SIZE(expected));
}

/* Shorter lengths are counted separately. */
#define LENGTHS	12

struct bursts {
	int lost;
	int count;
	int of_length[LENGTHS + 1];
};

static void burst_ended(struct bursts *bursts, int length)
{
	bursts->count++;
	bursts->of_length[min(length, LENGTHS)]++;
}

static struct bursts bursts_of(const struct wire_faults *faults, int frames)
{
	struct bursts bursts = { };
	int length = 0;
	u64 n;

	for (n = 0; n < frames; n++) {
		if (wire_fate(faults, length, n).lost) {
			bursts.lost++;
			length++;
		} else if (length) {
			burst_ended(&bursts, length);
			length = 0;
		}
	}
	if (length)
		burst_ended(&bursts, length);
	return bursts;
}

/*
 * Of N frames with loss rate P and bursts of mean B, the number of losses has the variance N P
 * (1 - P) (2 B (1 - P) - 1). This is that of independent losses times (1 + c) / (1 - c), where c
 * = 1 - p - r is the correlation of neighbours. A geometric length has the variance B (B - 1),
 * and the mean of K lengths that variance divided by K. K is near N P / B. The bounds are five
 * sigma for N = 2,000,000.
 */
static void bursts_have_rate_and_length(struct kunit *test)
{
	static const struct {
		u64 loss_ppb, burst_milli;
		int lost, lost_sigmas;
		int milli_sigmas;
	} cases[] = {
		{ 100000000, 5000, 200000, 6000, 112 },
		{ 10000000, 1500, 20000, 987, 37 },
		{ 10000000, 20000, 20000, 4371, 3082 },
		{ 800000000, 5000, 1600000, 2828, 40 },
		{ 10000000, 1000, 20000, 696, 0 },	/* isolated */
		{ 500000000, 1000, 1000000, 0, 0 },	/* every other frame */
	};
	int i, milli;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_faults faults = {
			.seed = 7, .loss_ppb = cases[i].loss_ppb,
			.loss_burst_milli = cases[i].burst_milli,
		};
		struct bursts bursts = bursts_of(&faults, BURST_FRAMES);

		KUNIT_EXPECT_LE(test, abs(bursts.lost - cases[i].lost),
				cases[i].lost_sigmas);
		KUNIT_ASSERT_GT(test, bursts.count, 0);
		milli = div_u64((u64)bursts.lost * WIRE_MILLI, bursts.count);
		KUNIT_EXPECT_LE(test, abs(milli - (int)cases[i].burst_milli),
				cases[i].milli_sigmas);
	}
}

/* Of the bursts of at least k frames, the share r ends after k: five sigma for each k. */
static void burst_lengths_are_geometric(struct kunit *test)
{
	struct wire_faults faults = { .seed = 7, .loss_ppb = WIRE_PPB / 10,
				      .loss_burst_milli = 4000 };
	struct bursts bursts = bursts_of(&faults, BURST_FRAMES);
	int length, left = bursts.count;

	KUNIT_ASSERT_GT(test, bursts.count, 40000);
	for (length = 1; length < LENGTHS; length++) {
		int count = bursts.of_length[length];
		/* a quarter of the bursts that are no shorter; variance 3 / 16 of their number */
		s64 off = 4 * count - left;

		KUNIT_EXPECT_LE(test, off * off, 25LL * 3 * left);
		left -= count;
	}
	KUNIT_EXPECT_EQ(test, left, bursts.of_length[LENGTHS]);
}

static void bursts_follow_the_seed(struct kunit *test)
{
	struct wire_faults first = { .seed = 1, .loss_ppb = WIRE_PPB / 2,
				   .loss_burst_milli = 2000 };
	struct wire_faults same = first, second = first;
	bool lost_first = false, lost_same = false, lost_second = false;
	int equal = 0;
	u64 n;

	same.duplicate_ppb = WIRE_PPB / 2;
	same.jitter_ns = 1000000;
	second.seed = 2;
	for (n = 0; n < 10000; n++) {
		lost_first = wire_fate(&first, lost_first, n).lost;
		lost_same = wire_fate(&same, lost_same, n).lost;
		lost_second = wire_fate(&second, lost_second, n).lost;
		KUNIT_ASSERT_EQ(test, lost_first, lost_same);
		equal += lost_first == lost_second;
	}
	/* p = r = 1/2: each is a fair coin; standard deviation 50 */
	KUNIT_EXPECT_LT(test, abs(equal - 5000), 250);
}

static struct kunit_case wire_faults_cases[] = {
	KUNIT_CASE(none_without_a_rate),
	KUNIT_CASE(always_at_certainty),
	KUNIT_CASE(frequency),
	KUNIT_CASE(one_fault_moves_no_other),
	KUNIT_CASE(seeds_differ),
	KUNIT_CASE(jitter_fills_its_range),
	KUNIT_CASE(fates_of_old),
	KUNIT_CASE(bursts_have_rate_and_length),
	KUNIT_CASE(burst_lengths_are_geometric),
	KUNIT_CASE(bursts_follow_the_seed),
	{}
};

static struct kunit_suite wire_faults_suite = {
	.name = "wire_faults",
	.test_cases = wire_faults_cases,
};

kunit_test_suite(wire_faults_suite);
