// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: wire_line.c against closed forms. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include "wire_line.h"

/* ceil(frames * bytes * 8 * 10^9 / rate): the ns after which all frames have left */
static u64 ideal(u64 frames, u64 bytes, u64 rate)
{
	return div64_u64(frames * bytes * 8 * NSEC_PER_SEC + rate - 1, rate);
}

static void single_frame(struct kunit *test)
{
	static const u64 rates[] = { 9600, 10000000, 33333333, 100000000,
				     1000000000, 2500000000ULL, 10000000000ULL };
	static const u32 sizes[] = { 84, 130, 1538, 9038 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			struct wire_line line = { .rate_bps = rates[i] };
			u64 left = wire_line_send(&line, 777, sizes[j]);

			KUNIT_EXPECT_EQ(test, left - 777,
					ideal(1, sizes[j], rates[i]));
		}
	}
}

static void known_values(struct kunit *test)
{
	struct wire_line gigabit = { .rate_bps = 1000000000 };
	struct wire_line fast = { .rate_bps = 100000000 };

	KUNIT_EXPECT_EQ(test, wire_line_send(&gigabit, 0, 1538), 12304ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&fast, 0, 130), 10400ULL);
}

static void back_to_back_never_drifts(struct kunit *test)
{
	static const u64 rates[] = { 7, 97000001, 333333333, 999999999,
				     9999999967ULL };
	unsigned int i;
	u64 k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct wire_line line = { .rate_bps = rates[i] };

		for (k = 1; k <= 1000; k++)
			KUNIT_ASSERT_EQ(test, wire_line_send(&line, 0, 1538),
					ideal(k, 1538, rates[i]));
	}
}

static void idle_time_is_not_saved(struct kunit *test)
{
	struct wire_line line = { .rate_bps = 333333333 };
	u64 left = wire_line_send(&line, 0, 100);

	KUNIT_EXPECT_EQ(test, wire_line_send(&line, left + 5, 100),
			left + 5 + ideal(1, 100, 333333333));
}

static void rate_changes_inside_a_frame(struct kunit *test)
{
	struct wire_step steps[] = { { 0, 1000000000 }, { 4000, 100000000 } };
	struct wire_line line = {
		.rate_bps = 1000000000,
		.trace = { .kind = WIRE_RATE, .count = 2, .steps = steps },
	};

	/* 4000 ns carry 500 bytes at 1 Gbit/s; the other 1000 take 80000 ns */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 1500), 84000ULL);
}

static void constant_before_the_epoch(struct kunit *test)
{
	struct wire_step steps[] = { { 0, 100000000 } };
	struct wire_line line = {
		.rate_bps = 1000000000,
		.trace = { .kind = WIRE_RATE, .epoch_ns = 1000000, .count = 1,
			   .steps = steps },
	};

	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 125), 1000ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 1000000, 125), 1010000ULL);
}

static void outage_holds_the_frame(struct kunit *test)
{
	struct wire_step steps[] = { { 0, 1000000000 }, { 1000, 0 },
				     { 5000, 1000000000 } };
	struct wire_line line = {
		.rate_bps = 1000000000,
		.trace = { .kind = WIRE_RATE, .count = 3, .steps = steps },
	};

	/* half of the frame leaves before, half after; the next frame waits in full */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 500, 125), 5500ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 600, 125), 6500ULL);
}

static void outage_for_ever(struct kunit *test)
{
	struct wire_step steps[] = { { 1000, 0 } };
	struct wire_line line = {
		.rate_bps = 1000000000,
		.trace = { .kind = WIRE_RATE, .count = 1, .steps = steps },
	};

	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 125), 1000ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 1000, 125), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 2000, 125), WIRE_NEVER);
}

static void trace_repeats(struct kunit *test)
{
	struct wire_step steps[] = { { 0, 1000000000 }, { 1000, 500000000 } };
	struct wire_line line = {
		.rate_bps = 1,
		.trace = { .kind = WIRE_RATE, .period_ns = 3000, .count = 2,
			   .steps = steps },
	};
	u64 period;

	/* a period of 3000 ns carries 125 + 125 bytes */
	for (period = 0; period < 100; period++) {
		u64 start = period * 3000;

		KUNIT_EXPECT_EQ(test, wire_line_send(&line, start, 125),
				start + 1000);
		KUNIT_EXPECT_EQ(test, wire_line_send(&line, start, 125),
				start + 3000);
	}
}

static void a_period_that_carries_nothing_is_an_outage(struct kunit *test)
{
	/* the step at the end of the period lasts for 0 ns */
	struct wire_step steps[] = { { 0, 0 }, { 1000, 1000000000 } };
	struct wire_line line = {
		.rate_bps = 1000000000,
		.trace = { .kind = WIRE_RATE, .epoch_ns = 500, .period_ns = 1000,
			   .count = 2, .steps = steps },
	};

	/* 500 of 1000 ns pass before the epoch */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 125), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 10, 125), WIRE_NEVER);
	wire_line_revive(&line, 20);
	line.trace.kind = WIRE_CONSTANT;
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 20, 125), 1020ULL);
	wire_line_revive(&line, 30);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 40, 125), 2020ULL);
}

/* A frame of 10^12 nanobits over periods of 1 ns: a loop over them would take minutes. */
static void periods_are_passed_by_arithmetic(struct kunit *test)
{
	struct wire_step slow[] = { { 0, 1 } };
	struct wire_step pulse[] = { { 0, 0 }, { 999, 1000 } };
	struct wire_line line = {
		.rate_bps = 1,
		.trace = { .kind = WIRE_RATE, .period_ns = 1, .count = 1, .steps = slow },
	};
	struct wire_line pulses = {
		.rate_bps = 1,
		.trace = { .kind = WIRE_RATE, .period_ns = 1000, .count = 2, .steps = pulse },
	};

	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 125), 1000ULL * NSEC_PER_SEC);
	/* 1000 nanobits in the last ns of each period */
	KUNIT_EXPECT_EQ(test, wire_line_send(&pulses, 0, 125), 1000ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, wire_line_send(&pulses, 0, 125), 2000ULL * NSEC_PER_SEC);
	/* more than 2^64 ns */
	pulses.trace.period_ns = 3600ULL * NSEC_PER_SEC;
	pulses.free_ns = 0;
	pulse[1].at_ns = pulses.trace.period_ns - 1;
	KUNIT_EXPECT_EQ(test, wire_line_send(&pulses, 0, 125), WIRE_NEVER);
}

static void opportunities(struct kunit *test)
{
	struct wire_step steps[] = { { 1000, 1500 }, { 2000, 3000 },
				     { 5000, 1500 } };
	struct wire_line line = {
		.rate_bps = 1,
		.trace = { .kind = WIRE_OPPORTUNITY, .period_ns = 5000,
			   .count = 3, .steps = steps },
	};

	/* a small frame, one that fits next to it, one that exceeds the rest */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 500), 1000ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 10, 900), 1000ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 20, 1000), 2000ULL);
	/* 3000 bytes at 2000, of which 900 are used: one more frame fits */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 30, 1500), 2000ULL);
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 40, 1500), 5000ULL);
	/* the opportunity at 5000 is used: the next one is 1000 into the period */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 5000, 1500), 6000ULL);
	/* an unused opportunity is lost */
	KUNIT_EXPECT_EQ(test, wire_line_send(&line, 8000, 1500), 10000ULL);
}

static void opportunities_at_both_ends_of_the_period(struct kunit *test)
{
	struct wire_step steps[] = { { 0, 1500 }, { 1000, 1500 } };
	struct wire_line line = {
		.rate_bps = 1,
		.trace = { .kind = WIRE_OPPORTUNITY, .period_ns = 1000,
			   .count = 2, .steps = steps },
	};
	static const u64 left[] = { 0, 1000, 1000, 2000, 2000, 3000, 3000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(left); i++)
		KUNIT_EXPECT_EQ(test, wire_line_send(&line, 0, 1500), left[i]);
}

static struct kunit_case wire_line_cases[] = {
	KUNIT_CASE(single_frame),
	KUNIT_CASE(known_values),
	KUNIT_CASE(back_to_back_never_drifts),
	KUNIT_CASE(idle_time_is_not_saved),
	KUNIT_CASE(rate_changes_inside_a_frame),
	KUNIT_CASE(constant_before_the_epoch),
	KUNIT_CASE(outage_holds_the_frame),
	KUNIT_CASE(outage_for_ever),
	KUNIT_CASE(trace_repeats),
	KUNIT_CASE(a_period_that_carries_nothing_is_an_outage),
	KUNIT_CASE(periods_are_passed_by_arithmetic),
	KUNIT_CASE(opportunities),
	KUNIT_CASE(opportunities_at_both_ends_of_the_period),
	{}
};

static struct kunit_suite wire_line_suite = {
	.name = "wire_line",
	.test_cases = wire_line_cases,
};

kunit_test_suite(wire_line_suite);
