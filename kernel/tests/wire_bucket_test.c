// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the token bucket of wire_bucket.c, as a policer, against closed forms. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include "wire_bucket.h"
#include "wire_line.h"

static const u64 rates[] = { 8000, 97000001, 333333333, 999999999, 1000000000000ULL };

static void a_full_bucket_passes_its_burst(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 1000000, .burst_bytes = 10 * 1514 };
	int i;

	for (i = 0; i < 10; i++)
		KUNIT_ASSERT_TRUE(test, wire_bucket_pass(&bucket, 777, 1514));
	KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, 777, 1514));
	KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, 777, 1));
}

/* From an empty bucket a frame of 1514 bytes passes after exactly ceil(12112 * 10^9 / rate) ns. */
static void filled_to_the_ns(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct wire_bucket bucket = { .rate_bps = rates[i], .burst_bytes = 1514 };
		u64 fills = DIV64_U64_ROUND_UP(1514ULL * 8 * NSEC_PER_SEC, rates[i]);

		KUNIT_ASSERT_TRUE(test, wire_bucket_pass(&bucket, 0, 1514));
		KUNIT_EXPECT_EQ(test, wire_bucket_ready(&bucket, 0, 1514), fills);
		KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, fills - 1, 1514));
		KUNIT_EXPECT_TRUE(test, wire_bucket_pass(&bucket, fills, 1514));
	}
}

/*
 * The rest of each ns is not lost. If a frame is offered each ns, the k-th one beyond the burst
 * passes at ceil(k L / rate), for any k.
 */
static void nothing_drifts(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 333333333, .burst_bytes = 100 };
	u64 now = 0, passed = 0;

	for (now = 0; now < 1000000; now++) {
		if (!wire_bucket_pass(&bucket, now, 50))
			continue;
		if (passed >= 2)
			KUNIT_ASSERT_EQ(test, now,
					DIV64_U64_ROUND_UP((passed - 1) * 400ULL * NSEC_PER_SEC,
							   333333333));
		passed++;
	}
	/* burst, and tokens of 999,999 ns: 333.333 kbit, 833 frames */
	KUNIT_EXPECT_EQ(test, passed, 2ULL + 833);
}

/* At most burst + rate T passes, and less than a frame of that is unused. */
static void never_more_than_burst_and_rate(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 50000000, .burst_bytes = 64000 };
	u64 now = 0, passed = 0, mix = 1, most;
	int i;

	for (i = 0; i < 200000; i++) {
		u32 bytes;

		mix = mix * 6364136223846793005ULL + 1442695040888963407ULL;
		bytes = 60 + (mix >> 33) % 1455;
		now += (mix >> 45) % 30000;	/* offered rate: 450 Mbit/s */
		if (wire_bucket_pass(&bucket, now, bytes))
			passed += bytes;
		most = 64000 + div64_u64(now * 50, 8000);
		KUNIT_ASSERT_LE(test, passed, most);
	}
	/* or the tokens of one pause of 30 us */
	KUNIT_EXPECT_GT(test, passed + 1514 + 188, most);
}

static void idle_time_fills_no_more_than_the_burst(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 1000000000000ULL, .burst_bytes = 1000000000 };
	u64 year = 31536000ULL * NSEC_PER_SEC;

	wire_bucket_take(&bucket, 5, 1000000000, false);
	KUNIT_EXPECT_EQ(test, wire_bucket_ready(&bucket, 5, 1000000000), 5ULL + 8000000);
	KUNIT_EXPECT_EQ(test, wire_bucket_ready(&bucket, year, 1000000000), year);
	wire_bucket_take(&bucket, year, 1000000000, true);
	KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, year, 1));
}

static void larger_than_the_bucket(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 1000, .burst_bytes = 1000 };

	KUNIT_EXPECT_EQ(test, wire_bucket_ready(&bucket, 0, 1001), WIRE_NEVER);
	KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, 1000000, 1001));
	KUNIT_EXPECT_TRUE(test, wire_bucket_pass(&bucket, 1000000, 1000));
}

/* A dropped frame takes no tokens: a small frame may pass after a large one was dropped. */
static void a_dropped_frame_costs_nothing(struct kunit *test)
{
	struct wire_bucket bucket = { .rate_bps = 8000000000ULL, .burst_bytes = 1500 };

	KUNIT_ASSERT_TRUE(test, wire_bucket_pass(&bucket, 0, 1500));
	KUNIT_EXPECT_FALSE(test, wire_bucket_pass(&bucket, 100, 101));
	KUNIT_EXPECT_TRUE(test, wire_bucket_pass(&bucket, 100, 100));
}

static struct kunit_case wire_bucket_cases[] = {
	KUNIT_CASE(a_full_bucket_passes_its_burst),
	KUNIT_CASE(filled_to_the_ns),
	KUNIT_CASE(nothing_drifts),
	KUNIT_CASE(never_more_than_burst_and_rate),
	KUNIT_CASE(idle_time_fills_no_more_than_the_burst),
	KUNIT_CASE(larger_than_the_bucket),
	KUNIT_CASE(a_dropped_frame_costs_nothing),
	{}
};

static struct kunit_suite wire_bucket_suite = {
	.name = "wire_bucket",
	.test_cases = wire_bucket_cases,
};

kunit_test_suite(wire_bucket_suite);
