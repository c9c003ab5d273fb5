// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: requests and grants, wire_grant.c. */
#include <kunit/test.h>
#include <linux/time64.h>
#include "wire_grant.h"

static void nothing_to_ask_for(struct kunit *test)
{
	struct wire_grant none = { .delay_ns = 5000 };

	KUNIT_EXPECT_EQ(test, wire_grant_ready(&none, 777), 777ULL);
}

static void next_instant_and_delay(struct kunit *test)
{
	struct wire_grant grant = { .cycle_ns = 2000, .delay_ns = 4500, .epoch_ns = 10000 };

	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, 9999), 9999ULL);
	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, 10000), 14500ULL);
	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, 10001), 16500ULL);
	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, 12000), 16500ULL);
	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, 12001), 18500ULL);
}

/* Frames that arrive at every ns of a cycle wait (cycle - 1) / 2 + delay on average, in order. */
static void wait_of_a_whole_cycle(struct kunit *test)
{
	struct wire_grant grant = { .cycle_ns = 1000, .delay_ns = 300 };
	u64 now, waited = 0, last = 0;

	for (now = 5000; now < 6000; now++) {
		u64 ready = wire_grant_ready(&grant, now);

		KUNIT_ASSERT_GE(test, ready, last);
		KUNIT_ASSERT_LE(test, ready - now, 999ULL + 300);
		waited += ready - now;
		last = ready;
	}
	KUNIT_EXPECT_EQ(test, waited, 1000ULL * 999 / 2 + 1000 * 300);
}

static void far_from_the_epoch(struct kunit *test)
{
	struct wire_grant grant = { .cycle_ns = 7, .epoch_ns = 3 };
	u64 year = 31536000ULL * NSEC_PER_SEC;
	u64 now = 3 + 7 * (year / 7);

	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, now), now);
	KUNIT_EXPECT_EQ(test, wire_grant_ready(&grant, now + 1), now + 7);
}

static struct kunit_case wire_grant_cases[] = {
	KUNIT_CASE(nothing_to_ask_for),
	KUNIT_CASE(next_instant_and_delay),
	KUNIT_CASE(wait_of_a_whole_cycle),
	KUNIT_CASE(far_from_the_epoch),
	{}
};

static struct kunit_suite wire_grant_suite = {
	.name = "wire_grant",
	.test_cases = wire_grant_cases,
};

kunit_test_suite(wire_grant_suite);
