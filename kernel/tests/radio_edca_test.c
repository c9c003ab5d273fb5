// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: channel access and losses, radio_edca.c and radio_errors.c. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include "radio_duration.h"
#include "radio_edca.h"
#include "radio_errors.h"

#define IDLE	1000000ULL
#define BE_AIFS	(IDLE + 43000)

static struct radio_edca best_effort(u32 backoff)
{
	struct radio_edca edca = {
		.aifsn = 3, .cw_min = 15, .cw_max = 1023, .cw = 15,
		.backoff = backoff,
	};

	return edca;
}

static void starts_after_aifs_and_backoff(struct kunit *test)
{
	struct radio_edca none = best_effort(0), seven = best_effort(7);

	KUNIT_EXPECT_EQ(test, radio_edca_start(&none, IDLE, IDLE), BE_AIFS);
	KUNIT_EXPECT_EQ(test, radio_edca_start(&seven, IDLE, IDLE), BE_AIFS + 63000);
}

/* A frame that arrives at an idle medium waits for the next slot boundary */
static void late_frames_start_at_boundaries(struct kunit *test)
{
	static const u64 slot = RADIO_SLOT_NS;
	struct radio_edca seven = best_effort(7), voice = { .aifsn = 2 };
	u64 late;

	for (late = 0; late < 4 * slot; late += 500) {
		u64 now = BE_AIFS + 20 * slot + late;
		u64 next = BE_AIFS + (20 + (late + slot - 1) / slot) * slot;

		KUNIT_EXPECT_EQ(test, radio_edca_start(&seven, IDLE, now), next);
		KUNIT_EXPECT_EQ(test, radio_edca_start(&voice, IDLE, now), next);
	}
}

static void counts_boundaries(struct kunit *test)
{
	/* another station starts k slots after our AIFS: boundaries 0 to k have passed */
	static const struct {
		u64 at;
		u32 left;
	} cases[] = {
		{ IDLE + 16000, 9 }, { BE_AIFS - 1, 9 }, { BE_AIFS, 8 },
		{ BE_AIFS + 8999, 8 }, { BE_AIFS + 9000, 7 },
		{ BE_AIFS + 8 * 9000, 0 }, { BE_AIFS + 1000000, 0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct radio_edca edca = best_effort(9);

		radio_edca_freeze(&edca, IDLE, cases[i].at);
		KUNIT_EXPECT_EQ(test, edca.backoff, cases[i].left);
	}
}

static void window_doubles_and_returns(struct kunit *test)
{
	static const u32 windows[] = { 31, 63, 127, 255, 511, 1023, 1023 };
	struct radio_edca edca = best_effort(0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		radio_edca_failed(&edca, U32_MAX);
		KUNIT_EXPECT_EQ(test, edca.cw, windows[i]);
		KUNIT_EXPECT_EQ(test, edca.backoff, windows[i]);
	}
	radio_edca_reset(&edca, 0);
	KUNIT_EXPECT_EQ(test, edca.cw, 15U);
	KUNIT_EXPECT_EQ(test, edca.backoff, 0U);
}

static void draws_are_uniform(struct kunit *test)
{
	struct radio_random random = { .seed = 7 };
	struct radio_edca edca = best_effort(0);
	u32 counts[16] = {}, i;

	for (i = 0; i < 160000; i++) {
		radio_edca_draw(&edca, radio_random_next(&random));
		KUNIT_ASSERT_LE(test, edca.backoff, 15U);
		counts[edca.backoff]++;
	}
	/* 10000 each; 4 standard deviations are 387 */
	for (i = 0; i < 16; i++) {
		KUNIT_EXPECT_GT(test, counts[i], 9613U);
		KUNIT_EXPECT_LT(test, counts[i], 10387U);
	}
}

static void same_seed_same_numbers(struct kunit *test)
{
	struct radio_random a = { .seed = 3 }, b = { .seed = 3 }, c = { .seed = 4 };
	u32 equal = 0, i;

	for (i = 0; i < 1000; i++) {
		u32 number = radio_random_next(&a);

		KUNIT_EXPECT_EQ(test, number, radio_random_next(&b));
		equal += number == radio_random_next(&c);
	}
	KUNIT_EXPECT_LT(test, equal, 2U);
}

static void losses_by_snr(struct kunit *test)
{
	struct radio_rate rate = { RADIO_HT, 7, 1, 1, 1 };
	u32 ppm = RADIO_PPM, i;

	/* at the sensitivity one of ten frames of 4096 bytes is lost */
	ppm = radio_error_ppm(&rate, 2200, 4096);
	KUNIT_EXPECT_GE(test, ppm, 99900U);
	KUNIT_EXPECT_LE(test, ppm, 100100U);
	/* 1 - 0.9^(1538/4096) = 0.03879 */
	ppm = radio_error_ppm(&rate, 2200, 1538);
	KUNIT_EXPECT_GE(test, ppm, 38700U);
	KUNIT_EXPECT_LE(test, ppm, 38880U);
	/* a decade per dB: 0.01048 */
	ppm = radio_error_ppm(&rate, 2300, 4096);
	KUNIT_EXPECT_GE(test, ppm, 10430U);
	KUNIT_EXPECT_LE(test, ppm, 10530U);
	KUNIT_EXPECT_EQ(test, radio_error_ppm(&rate, 6000, 4096), 0U);
	KUNIT_EXPECT_EQ(test, radio_error_ppm(&rate, 0, 4096), RADIO_PPM);
	for (ppm = RADIO_PPM, i = 0; i < 6000; i += 10) {
		KUNIT_ASSERT_LE(test, radio_error_ppm(&rate, i, 1538), ppm);
		ppm = radio_error_ppm(&rate, i, 1538);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(starts_after_aifs_and_backoff),
	KUNIT_CASE(late_frames_start_at_boundaries),
	KUNIT_CASE(counts_boundaries),
	KUNIT_CASE(window_doubles_and_returns),
	KUNIT_CASE(draws_are_uniform),
	KUNIT_CASE(same_seed_same_numbers),
	KUNIT_CASE(losses_by_snr),
	{ }
};

static struct kunit_suite suite = {
	.name = "radio_edca",
	.test_cases = cases,
};

kunit_test_suite(suite);
