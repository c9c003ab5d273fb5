// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: radio_duration.c against the standard's tables and closed forms. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include "radio_duration.h"

/* 802.11-2020, tables 19-27 to 19-38: one stream, MCS 0-7, 20 and 40 MHz */
static const u32 ht_bits[2][8] = {
	{ 26, 52, 78, 104, 156, 208, 234, 260 },
	{ 54, 108, 162, 216, 324, 432, 486, 540 },
};

static const u32 lengths[] = { 14, 90, 1538, 1544, 24680, 49404, 65535 };

static u64 ceiling(u64 a, u64 b)
{
	return div64_u64(a + b - 1, b);
}

/* 19.4.3: every MCS, width, guard interval and length */
static void ht_durations(struct kunit *test)
{
	static const u32 preamble_us[] = { 0, 36, 40, 48, 48 };
	unsigned int all = 32 * 2 * 2 * ARRAY_SIZE(lengths), n;

	for (n = 0; n < all; n++) {
		u32 mcs = n % 32, width = n / 32 % 2, gi = n / 64 % 2;
		u32 length = lengths[n / 128];
		struct radio_rate rate = {
			.mode = RADIO_HT, .mcs = mcs % 8, .gi = gi,
			.streams = mcs / 8 + 1, .width = width,
		};
		u32 bits = ht_bits[width][mcs % 8] * rate.streams;
		u32 encoders = bits > 1080 ? 2 : 1;
		u64 symbols = ceiling(8 * length + 16 + 6 * encoders, bits);
		u64 us = gi ? 4 * ceiling(symbols * 36, 40) : 4 * symbols;

		KUNIT_ASSERT_EQ(test, radio_bits_per_symbol(&rate), bits);
		KUNIT_ASSERT_EQ(test, radio_ppdu_ns(&rate, length),
				1000 * (preamble_us[rate.streams] + us));
	}
}

static void legacy_durations(struct kunit *test)
{
	static const u32 mbit[] = { 6, 9, 12, 18, 24, 36, 48, 54 };
	struct radio_rate rate = { .mode = RADIO_LEGACY, .streams = 1 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(mbit); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			rate.mcs = i;
			KUNIT_ASSERT_EQ(test, radio_ppdu_ns(&rate, lengths[j]),
					20000 + 4000 * ceiling(22 + 8 * lengths[j],
							       4 * mbit[i]));
		}
}

/* 16.3.4 by hand: 192 us, then the bytes at 1, 2, 5.5 and 11 Mbit/s, in whole us */
static void dsss_durations(struct kunit *test)
{
	static const struct {
		u32 mcs, bytes, us, rate_100k;
	} cases[] = {
		{ 0, 14, 304, 10 }, { 0, 165, 1512, 10 }, { 1, 14, 248, 20 },
		{ 2, 14, 213, 55 }, { 2, 1538, 2430, 55 }, { 3, 14, 203, 110 },
		{ 3, 1538, 1311, 110 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct radio_rate rate = {
			.mode = RADIO_DSSS, .mcs = cases[i].mcs, .streams = 1,
		};

		KUNIT_EXPECT_EQ(test, radio_ppdu_ns(&rate, cases[i].bytes),
				1000ULL * cases[i].us);
		KUNIT_EXPECT_EQ(test, radio_rate_100k(&rate), cases[i].rate_100k);
		/* an acknowledgment at the same rate */
		KUNIT_EXPECT_EQ(test, radio_control_ns(&rate, RADIO_ACK),
				radio_ppdu_ns(&rate, RADIO_ACK));
	}
}

/* The frames of an aggregate end one after another, the last one with its PPDU */
static void parts_of_a_ppdu(struct kunit *test)
{
	struct radio_rate rate = { RADIO_HT, 7, 2, 0, 1 };
	u32 psdu = 31 * 1544 + 1542, n;

	/* 40 us; the first 1,542 bytes and 2 of service are 12,352 bits: 24 symbols of 520 */
	KUNIT_EXPECT_EQ(test, radio_part_ns(&rate, 1542), 40000 + 24 * 3600ULL);
	/* 16 of 32: 197,632 bits, 381 symbols */
	KUNIT_EXPECT_EQ(test, radio_part_ns(&rate, 15 * 1544 + 1542),
			40000 + 381 * 3600ULL);
	for (n = 1; n < 32; n++)
		KUNIT_EXPECT_LT(test, radio_part_ns(&rate, (n - 1) * 1544 + 1542),
				radio_part_ns(&rate, n * 1544 + 1542));
	KUNIT_EXPECT_LE(test, radio_part_ns(&rate, psdu), radio_ppdu_ns(&rate, psdu));
}

/* Mbit/s as the standard's tables print them, in units of 100 kbit/s */
static void known_rates(struct kunit *test)
{
	static const struct {
		struct radio_rate rate;
		u32 expected;
	} cases[] = {
		{ { RADIO_HT, 7, 1, 0, 0 }, 650 },
		{ { RADIO_HT, 7, 1, 1, 1 }, 1500 },
		{ { RADIO_HT, 7, 3, 1, 1 }, 4500 },
		{ { RADIO_VHT, 8, 1, 0, 0 }, 780 },
		{ { RADIO_VHT, 9, 1, 0, 0 }, 0 },
		{ { RADIO_VHT, 9, 3, 0, 0 }, 2600 },
		{ { RADIO_VHT, 9, 1, 2, 1 }, 4333 },
		{ { RADIO_VHT, 6, 3, 2, 1 }, 0 },
		{ { RADIO_VHT, 9, 2, 3, 1 }, 17333 },
		{ { RADIO_HE, 11, 1, 0, 0 }, 1433 },
		{ { RADIO_HE, 11, 1, 2, 0 }, 6004 },
		{ { RADIO_HE, 11, 2, 3, 0 }, 24019 },
		{ { RADIO_HE, 0, 1, 0, 2 }, 73 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, radio_rate_100k(&cases[i].rate),
				cases[i].expected);
}

/* 21.4.3 and 27.4.3 by hand */
static void known_durations(struct kunit *test)
{
	struct radio_rate vht = { RADIO_VHT, 9, 1, 2, 1 };
	struct radio_rate he = { RADIO_HE, 11, 1, 2, 0 };
	struct radio_rate slow = { RADIO_HE, 0, 1, 0, 2 };

	/* 12320 bits + 22 = 8 symbols of 1560; 28.8 us, rounded to 32 */
	KUNIT_EXPECT_EQ(test, radio_ppdu_ns(&vht, 1540), 40000 + 32000ULL);
	/* 12320 + 16 = 2 symbols of 8166, each 13.6 us; training 7.2 */
	KUNIT_EXPECT_EQ(test, radio_ppdu_ns(&he, 1540), 36000 + 7200 + 27200ULL);
	/* 816 bits = 7 symbols of 117, each 16 us; training 16 */
	KUNIT_EXPECT_EQ(test, radio_ppdu_ns(&slow, 100), 36000 + 16000 + 112000ULL);
}

static void control_frames(struct kunit *test)
{
	struct radio_rate fast = { RADIO_HT, 7, 1, 1, 1 };
	struct radio_rate middle = { RADIO_HT, 2, 1, 0, 0 };
	struct radio_rate slow = { RADIO_HT, 0, 1, 0, 0 };

	KUNIT_EXPECT_EQ(test, radio_control_ns(&fast, RADIO_ACK), 28000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&fast, RADIO_CTS), 28000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&fast, RADIO_RTS), 28000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&fast, RADIO_BA), 32000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&middle, RADIO_ACK), 32000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&slow, RADIO_ACK), 44000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&slow, RADIO_RTS), 52000ULL);
	KUNIT_EXPECT_EQ(test, radio_control_ns(&slow, RADIO_BA), 68000ULL);
}

/* The PPDU of n frames of 1538 bytes, in us, computed independently */
static void ppdus_of_full_frames(struct kunit *test)
{
	static const struct {
		struct radio_rate rate;
		u32 frames, us;
	} cases[] = {
		{ { RADIO_HT, 7, 1, 0, 1 }, 1, 212 }, { { RADIO_HT, 7, 1, 0, 1 }, 2, 384 },
		{ { RADIO_HT, 7, 1, 1, 1 }, 1, 120 }, { { RADIO_HT, 7, 1, 1, 1 }, 2, 204 },
		{ { RADIO_HT, 7, 1, 1, 1 }, 8, 700 }, { { RADIO_HT, 7, 1, 1, 1 }, 16, 1356 },
		{ { RADIO_HT, 7, 1, 1, 1 }, 17, 1440 }, { { RADIO_HT, 7, 1, 1, 1 }, 32, 2672 },
		{ { RADIO_HT, 7, 2, 0, 1 }, 32, 2780 }, { { RADIO_HT, 7, 2, 1, 1 }, 32, 1360 },
		{ { RADIO_HT, 7, 3, 0, 1 }, 32, 1876 }, { { RADIO_HT, 7, 3, 1, 1 }, 32, 928 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 n = cases[i].frames;
		u32 bytes = n == 1 ? 1538 : 1544 * (n - 1) + 1542;

		KUNIT_EXPECT_EQ(test, radio_ppdu_ns(&cases[i].rate, bytes),
				1000ULL * cases[i].us);
	}
}

/* The number of full frames in 4096 us: ath9k's table */
static void frames_in_an_aggregate(struct kunit *test)
{
	static const struct {
		struct radio_rate rate;
		u32 frames;
	} cases[] = {
		{ { RADIO_HT, 3, 1, 0, 1 }, 9 }, { { RADIO_HT, 4, 1, 0, 1 }, 14 },
		{ { RADIO_HT, 5, 1, 0, 1 }, 18 }, { { RADIO_HT, 7, 1, 0, 1 }, 23 },
		{ { RADIO_HT, 4, 2, 0, 1 }, 28 }, { { RADIO_HT, 0, 1, 1, 1 }, 4 },
		{ { RADIO_HT, 3, 1, 1, 1 }, 19 }, { { RADIO_HT, 4, 1, 1, 1 }, 29 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 limit = radio_ppdu_bytes(&cases[i].rate, 4096000);

		/* the last frame has no padding */
		KUNIT_EXPECT_EQ(test, (limit + 2) / 1544, cases[i].frames);
	}
}

/* radio_ppdu_bytes() is the inverse: its result fits, one byte more does not */
static void bytes_are_the_inverse(struct kunit *test)
{
	static const u64 limits[] = { 100000, 1504000, 3008000, 4096000, 5484000 };
	unsigned int n;

	for (n = 0; n < 4 * 12 * 4 * ARRAY_SIZE(limits); n++) {
		struct radio_rate rate = {
			RADIO_LEGACY + n % 4, n / 4 % 12, 2, n / 48 % 4, 1,
		};
		u64 limit = limits[n / 192];
		u32 bytes;

		if (!radio_bits_per_symbol(&rate))
			continue;
		bytes = radio_ppdu_bytes(&rate, limit);
		KUNIT_ASSERT_LE(test, radio_ppdu_ns(&rate, bytes), limit);
		KUNIT_ASSERT_GT(test, radio_ppdu_ns(&rate, bytes + 1), limit);
	}
}

static void subframes(struct kunit *test)
{
	struct radio_rate single = { RADIO_HT, 7, 1, 1, 1 };
	struct radio_rate dual = { RADIO_HT, 7, 2, 1, 1 };

	/* full frames have a delimiter and two bytes of padding */
	KUNIT_EXPECT_EQ(test, radio_subframe_bytes(&single, 1538, 256, 8), 1544U);
	/* a bare TCP acknowledgment: 96 bytes and 42 delimiters */
	KUNIT_EXPECT_EQ(test, radio_subframe_bytes(&single, 90, 256, 8), 264U);
	/* 8 us at 300 Mbit/s: 270 bytes */
	KUNIT_EXPECT_EQ(test, radio_subframe_bytes(&dual, 90, 256, 8), 276U);
	KUNIT_EXPECT_EQ(test, radio_subframe_bytes(&dual, 90, 0, 0), 96U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ht_durations),
	KUNIT_CASE(legacy_durations),
	KUNIT_CASE(dsss_durations),
	KUNIT_CASE(parts_of_a_ppdu),
	KUNIT_CASE(known_rates),
	KUNIT_CASE(known_durations),
	KUNIT_CASE(control_frames),
	KUNIT_CASE(ppdus_of_full_frames),
	KUNIT_CASE(frames_in_an_aggregate),
	KUNIT_CASE(bytes_are_the_inverse),
	KUNIT_CASE(subframes),
	{ }
};

static struct kunit_suite suite = {
	.name = "radio_duration",
	.test_cases = cases,
};

kunit_test_suite(suite);
