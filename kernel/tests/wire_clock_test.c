// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the clock of wire_clock.c against values computed by hand. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include "wire_clock.h"

#define PPM(ppm)	((s64)(ppm) * 65536)

static void an_unset_clock_is_the_monotonic_one(struct kunit *test)
{
	struct wire_clock clock = { };

	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 1234), 1234ULL);
	KUNIT_EXPECT_EQ(test, wire_clock_when(&clock, 1234), 1234ULL);
}

static void a_set_clock_runs_on_from_its_time(struct kunit *test)
{
	struct wire_clock clock = { };

	wire_clock_set(&clock, 100, 5000);
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 100), 5000ULL);
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 350), 5250ULL);
	KUNIT_EXPECT_EQ(test, wire_clock_when(&clock, 5250), 350ULL);
	/* a time that has passed before the clock was set */
	KUNIT_EXPECT_EQ(test, wire_clock_when(&clock, 4999), 100ULL);
}

static void a_reading_before_the_change_ignores_the_rate(struct kunit *test)
{
	struct wire_clock clock = { };

	wire_clock_set(&clock, 1000000, 5000000);
	wire_clock_tune(&clock, 1000000, PPM(-500));
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 950000), 4950000ULL);
	wire_clock_tune(&clock, 1000000, PPM(500));
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 950000), 4950000ULL);
}

static void a_tuned_clock_gains_by_its_rate(struct kunit *test)
{
	struct wire_clock clock = { };

	wire_clock_tune(&clock, 0, PPM(100));
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, NSEC_PER_SEC), 1000100000ULL);
	wire_clock_tune(&clock, NSEC_PER_SEC, PPM(-100));
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 2ULL * NSEC_PER_SEC), 2000000000ULL);
	wire_clock_tune(&clock, 2ULL * NSEC_PER_SEC, 0);
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 3ULL * NSEC_PER_SEC), 3000000000ULL);
}

static void hours_do_not_overflow(struct kunit *test)
{
	struct wire_clock clock = { };

	wire_clock_set(&clock, 0, 1700000000ULL * NSEC_PER_SEC);
	wire_clock_tune(&clock, 0, PPM(62499));
	KUNIT_EXPECT_EQ(test, wire_clock_read(&clock, 36000ULL * NSEC_PER_SEC) - clock.ns,
			36000ULL * 1062499000ULL);
}

/* The reading at the returned ns is not before the time asked for, the one before it is. */
static void when_is_the_first_ns(struct kunit *test)
{
	const s64 rates[] = { 0, 1, -1, PPM(7), PPM(-7), PPM(62499), PPM(-62499) };
	unsigned int i;
	u64 ns;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct wire_clock clock = { };

		wire_clock_set(&clock, 17, 1000);
		wire_clock_tune(&clock, 17, rates[i]);
		for (ns = 1001; ns < 100000; ns += 97) {
			u64 mono_ns = wire_clock_when(&clock, ns);

			KUNIT_ASSERT_GE(test, wire_clock_read(&clock, mono_ns), ns);
			KUNIT_ASSERT_LT(test, wire_clock_read(&clock, mono_ns - 1), ns);
		}
	}
}

static struct kunit_case wire_clock_cases[] = {
	KUNIT_CASE(an_unset_clock_is_the_monotonic_one),
	KUNIT_CASE(a_set_clock_runs_on_from_its_time),
	KUNIT_CASE(a_reading_before_the_change_ignores_the_rate),
	KUNIT_CASE(a_tuned_clock_gains_by_its_rate),
	KUNIT_CASE(hours_do_not_overflow),
	KUNIT_CASE(when_is_the_first_ns),
	{}
};

static struct kunit_suite wire_clock_suite = {
	.name = "wire_clock",
	.test_cases = wire_clock_cases,
};

kunit_test_suite(wire_clock_suite);
