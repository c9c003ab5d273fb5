// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: wire_rss.c against the verification suite of Microsoft's RSS documentation. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include "wire_rss.h"

static const u8 key[WIRE_RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* 66.9.149.187:2794 to 161.142.100.80:1766 */
static void the_hash_of_ipv4(struct kunit *test)
{
	static const u8 input[] = { 66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6 };

	KUNIT_EXPECT_EQ(test, wire_rss_toeplitz(key, input, 12), 0x51ccc178U);
	KUNIT_EXPECT_EQ(test, wire_rss_toeplitz(key, input, 8), 0x323e8fc2U);
}

/* 3ffe:2501:200:1fff::7 port 2794 to 3ffe:2501:200:3::1 port 1766 */
static void the_hash_of_ipv6(struct kunit *test)
{
	static const u8 input[] = {
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7,
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1,
		0x0a, 0xea, 0x06, 0xe6,
	};

	KUNIT_EXPECT_EQ(test, wire_rss_toeplitz(key, input, 36), 0x40207d3dU);
	KUNIT_EXPECT_EQ(test, wire_rss_toeplitz(key, input, 32), 0x2cc18cd5U);
}

static void each_queue_has_its_rows(struct kunit *test)
{
	u32 frames[3] = { };
	u32 hash;

	for (hash = 0; hash < 1280; hash++) {
		struct wire_rss rss = { .hash = hash };

		frames[wire_rss_queue(&rss, 3)]++;
	}
	KUNIT_EXPECT_EQ(test, frames[0], 430U);
	KUNIT_EXPECT_EQ(test, frames[1], 430U);
	KUNIT_EXPECT_EQ(test, frames[2], 420U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(the_hash_of_ipv4),
	KUNIT_CASE(the_hash_of_ipv6),
	KUNIT_CASE(each_queue_has_its_rows),
	{}
};

static struct kunit_suite suite = {
	.name = "wire_rss",
	.test_cases = cases,
};

kunit_test_suite(suite);
