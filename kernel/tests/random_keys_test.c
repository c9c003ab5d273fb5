// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: separate keys of random numbers. */
#include <kunit/test.h>
#include <linux/hourglass_random_keys.h>
#include <linux/random.h>

struct draws {
	u64 bytes;
	u64 u64;
	u32 u32;
};

static struct draws draw(void)
{
	struct draws draws = { .u64 = get_random_u64(), .u32 = get_random_u32() };

	get_random_bytes(&draws.bytes, sizeof(draws.bytes));
	return draws;
}

static struct draws draw_in(void *function, u32 instance)
{
	struct random_scope scope;
	struct draws draws;

	random_scope_enter(&scope, function, instance);
	draws = draw();
	random_scope_leave(&scope);
	return draws;
}

static void a_key_depends_on_function_and_namespace(struct kunit *test)
{
	struct draws first = draw_in(draw, 1), again = draw_in(draw, 1);
	struct draws other_namespace = draw_in(draw, 2), other_function = draw_in(draw_in, 1);

	KUNIT_EXPECT_EQ(test, first.bytes, again.bytes);
	KUNIT_EXPECT_EQ(test, first.u64, again.u64);
	KUNIT_EXPECT_EQ(test, first.u32, again.u32);
	KUNIT_EXPECT_NE(test, first.u64, other_namespace.u64);
	KUNIT_EXPECT_NE(test, first.u64, other_function.u64);
	KUNIT_EXPECT_NE(test, first.u64, first.bytes);
}

static void the_innermost_function_counts(struct kunit *test)
{
	struct random_scope outer;
	struct draws first, inner;

	KUNIT_EXPECT_FALSE(test, random_key_is_separate());
	random_scope_enter(&outer, draw, 1);
	inner = draw_in(draw_in, 1);
	KUNIT_EXPECT_TRUE(test, random_key_is_separate());
	first = draw();
	random_scope_leave(&outer);
	KUNIT_EXPECT_FALSE(test, random_key_is_separate());
	KUNIT_EXPECT_EQ(test, inner.u64, draw_in(draw_in, 1).u64);
	KUNIT_EXPECT_EQ(test, first.u64, draw_in(draw, 1).u64);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_key_depends_on_function_and_namespace),
	KUNIT_CASE(the_innermost_function_counts),
	{}
};

static struct kunit_suite suite = { .name = "hourglass_random_keys", .test_cases = cases };

kunit_test_suite(suite);
