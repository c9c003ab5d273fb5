// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the shaper of wire_shaper.c against closed forms. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include "wire_line.h"
#include "wire_shaper.h"

#define FRAME	1514U

/* max(0, ceil((k frames - burst) / rate)): the ns at which frame k leaves */
static u64 leaves(u64 k, u64 burst, u64 rate)
{
	if (k * FRAME <= burst)
		return 0;
	return DIV64_U64_ROUND_UP((k * FRAME - burst) * 8 * NSEC_PER_SEC, rate);
}

static void burst_then_rate_to_the_ns(struct kunit *test)
{
	static const u64 rates[] = { 1000, 97000001, 333333333, 10000000000ULL };
	static const u64 bursts[] = { FRAME, 10000, 100 * FRAME };
	unsigned int i, j;
	u64 k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (j = 0; j < ARRAY_SIZE(bursts); j++) {
			struct wire_shaper shaper = {
				.sustained = { .rate_bps = rates[i], .burst_bytes = bursts[j] },
			};

			for (k = 1; k <= 300; k++)
				KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, FRAME),
						leaves(k, bursts[j], rates[i]));
		}
	}
}

/* The peak rate until the burst is used, then the sustained rate: the later of both bounds. */
static void peak_bounds_the_burst(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 20000000, .burst_bytes = 100000 },
		.peak = { .rate_bps = 100000000, .burst_bytes = FRAME },
	};
	u64 k;

	for (k = 1; k <= 300; k++)
		KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, FRAME),
				max(leaves(k, 100000, 20000000), leaves(k, FRAME, 100000000)));
}

static void limit_of_bytes(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 12112000, .burst_bytes = FRAME },	/* a frame per ms */
		.limit_bytes = 3 * FRAME,
	};
	unsigned int i;

	/* the first leaves at once, three wait; the head leaves at 1 ms and frees its place */
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), i * 1000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, 1), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 999999, FRAME), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 1000000, FRAME), 4000000ULL);
	KUNIT_EXPECT_EQ(test, shaper.waiting_bytes, 3ULL * FRAME);
	wire_shaper_free(&shaper);
	KUNIT_EXPECT_EQ(test, shaper.waiting_bytes, 0ULL);
}

static void limit_of_time(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 12112000, .burst_bytes = FRAME },
		.latency_ns = 2500000,
	};
	unsigned int i;

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), i * 1000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 499999, FRAME), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 500000, FRAME), 3000000ULL);
}

/* A frame that is dropped, for its size or its wait, takes no tokens and delays no frame. */
static void a_dropped_frame_costs_nothing(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 8000000, .burst_bytes = FRAME },	/* a byte per us */
		.peak = { .rate_bps = 16000000, .burst_bytes = FRAME },
		.latency_ns = 1000000,
	};

	KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, FRAME), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, FRAME + 1), WIRE_NEVER);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, 1000), 1000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 900000, 1), 1001000ULL);
}

/* Frames that arrive before an opportunity are granted together, and leave one after another. */
static void grants_then_the_rate(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 12112000, .burst_bytes = FRAME },	/* a frame per ms */
		.grant = { .cycle_ns = 2000000, .delay_ns = 3000000, .epoch_ns = 1000000 },
	};

	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 1000001, FRAME), 6000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 3000000, FRAME), 7000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 3000001, FRAME), 8000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 3000001, FRAME), 9000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 5000001, FRAME), 10000000ULL);
	/* idle: the next opportunity and the delay */
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 30000000, FRAME), 34000000ULL);
}

/* A small frame does not pass a waiting large one. */
static void first_come_first_served(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 8000000, .burst_bytes = 2000 },
	};

	KUNIT_ASSERT_EQ(test, wire_shaper_send(&shaper, 0, 1500), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, 1500), 1000000ULL);
	KUNIT_EXPECT_EQ(test, wire_shaper_send(&shaper, 0, 40), 1040000ULL);
}

/* For any sizes and times, the bucket is never overdrawn, and the queue never too long. */
static void never_more_than_burst_and_rate(struct kunit *test)
{
	struct wire_shaper shaper = {
		.sustained = { .rate_bps = 50000000, .burst_bytes = 8000 },
		.limit_bytes = 100000,
	};
	u64 now = 0, left = 0, sent = 0, dropped = 0, mix = 1;
	int i;

	for (i = 0; i < 100000; i++) {
		u32 bytes;
		u64 at;

		mix = mix * 6364136223846793005ULL + 1442695040888963407ULL;
		bytes = 60 + (mix >> 33) % 1455;
		now += (mix >> 45) % 200000;	/* offered rate: 63 Mbit/s */
		at = wire_shaper_send(&shaper, now, bytes);
		if (at == WIRE_NEVER) {
			dropped++;
			continue;
		}
		KUNIT_ASSERT_GE(test, at, max(now, left));
		left = at;
		sent += bytes;
		KUNIT_ASSERT_LE(test, sent, 8000 + div64_u64(left * 50, 8000));
		KUNIT_ASSERT_LE(test, shaper.waiting_bytes, 100000ULL);
	}
	KUNIT_EXPECT_GT(test, dropped, 0ULL);
	KUNIT_EXPECT_GT(test, sent + 8000 + 100000, div64_u64(left * 50, 8000));
	wire_shaper_free(&shaper);
}

static struct kunit_case wire_shaper_cases[] = {
	KUNIT_CASE(burst_then_rate_to_the_ns),
	KUNIT_CASE(peak_bounds_the_burst),
	KUNIT_CASE(limit_of_bytes),
	KUNIT_CASE(limit_of_time),
	KUNIT_CASE(a_dropped_frame_costs_nothing),
	KUNIT_CASE(grants_then_the_rate),
	KUNIT_CASE(first_come_first_served),
	KUNIT_CASE(never_more_than_burst_and_rate),
	{}
};

static struct kunit_suite wire_shaper_suite = {
	.name = "wire_shaper",
	.test_cases = wire_shaper_cases,
};

kunit_test_suite(wire_shaper_suite);
