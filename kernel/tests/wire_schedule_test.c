// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the gates of wire_schedule.c against windows drawn by hand. */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include "wire_schedule.h"

#define BASE	10000ULL
#define CYCLE	1000ULL
#define NEVER	U64_MAX

/* queue 0: 0 to 300 and 700 to 1000; queue 1: 300 to 700; queue 2: always; queue 3: never */
static struct wire_schedule *make(struct kunit *test)
{
	struct wire_schedule *schedule;

	schedule = kunit_kzalloc(test, struct_size(schedule, entries, 3), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, schedule);
	schedule->base_ns = BASE;
	schedule->cycle_ns = CYCLE;
	schedule->count = 3;
	schedule->entries[0] = (struct wire_gates){ 300, BIT(0) | BIT(2) };
	schedule->entries[1] = (struct wire_gates){ 700, BIT(1) | BIT(2) };
	schedule->entries[2] = (struct wire_gates){ 1000, BIT(0) | BIT(2) };
	return schedule;
}

#define STARTS(queue, now_ns, duration_ns, start_ns) \
	KUNIT_EXPECT_EQ(test, wire_schedule_start(schedule, queue, now_ns, duration_ns), \
			(u64)(start_ns))

static void a_frame_waits_for_its_window(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	STARTS(1, BASE, 100, BASE + 300);
	STARTS(1, BASE + 299, 100, BASE + 300);
	STARTS(1, BASE + 300, 100, BASE + 300);
	STARTS(1, BASE + 5 * CYCLE + 450, 100, BASE + 5 * CYCLE + 450);
}

static void a_frame_leaves_before_the_gate_closes(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	STARTS(1, BASE + 600, 100, BASE + 600);
	STARTS(1, BASE + 601, 100, BASE + CYCLE + 300);
	STARTS(1, BASE + 300, 400, BASE + 300);
	STARTS(1, BASE + 300, 401, NEVER);
}

/* 300 ns at the end of a cycle and 300 ns at the beginning of the next one are one window */
static void a_window_crosses_the_cycles(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	STARTS(0, BASE + 310, 600, BASE + 700);
	STARTS(0, BASE + 701, 600, BASE + CYCLE + 700);
	STARTS(0, BASE + 310, 601, NEVER);
}

static void an_open_gate_never_delays_and_a_closed_one_never_opens(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	STARTS(2, BASE + 650, 12345, BASE + 650);
	STARTS(2, BASE + 650, 3600000000000ULL, BASE + 650);
	STARTS(1, BASE + 650, 3600000000000ULL, NEVER);
	STARTS(3, BASE + 650, 1, NEVER);
	STARTS(40, BASE + 650, 1, NEVER);
}

static void all_gates_are_open_before_the_base(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	STARTS(1, 0, 100, 0);
	STARTS(1, BASE - 100, 100, BASE - 100);
	STARTS(1, BASE - 99, 100, BASE + 300);
	STARTS(0, BASE - 99, 399, BASE - 99);
	STARTS(0, BASE - 99, 400, BASE + 700);
	STARTS(3, BASE - 99, 100, NEVER);
}

static void the_previous_schedule_is_in_force_until_the_base(struct kunit *test)
{
	struct wire_schedule *schedule = make(test), *before = make(test);

	before->base_ns = 0;
	schedule->base_ns = BASE + 500;
	schedule->before = before;
	STARTS(1, BASE + 100, 100, BASE + 300);
	STARTS(1, BASE + 400, 100, BASE + 400);
	/* no frame crosses the base */
	STARTS(1, BASE + 401, 100, BASE + 500 + 300);
	STARTS(3, BASE, 100, NEVER);
}

static void the_last_gates_stay_and_a_short_cycle_cuts(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	schedule->cycle_ns = 2000;
	STARTS(0, BASE + 700, 1600, BASE + 700);
	STARTS(0, BASE + 700, 1601, NEVER);
	schedule->cycle_ns = 500;
	STARTS(1, BASE, 200, BASE + 300);
	STARTS(1, BASE, 201, NEVER);
	STARTS(0, BASE + 350, 300, BASE + 500);
}

static void a_base_in_the_past_starts_with_the_next_cycle(struct kunit *test)
{
	struct wire_schedule *schedule = make(test);

	wire_schedule_begin(schedule, BASE - 1);
	KUNIT_EXPECT_EQ(test, schedule->base_ns, BASE);
	wire_schedule_begin(schedule, BASE);
	KUNIT_EXPECT_EQ(test, schedule->base_ns, BASE + CYCLE);
	wire_schedule_begin(schedule, BASE + 7 * CYCLE + 1);
	KUNIT_EXPECT_EQ(test, schedule->base_ns, BASE + 8 * CYCLE);
}

static struct kunit_case wire_schedule_cases[] = {
	KUNIT_CASE(a_frame_waits_for_its_window),
	KUNIT_CASE(a_frame_leaves_before_the_gate_closes),
	KUNIT_CASE(a_window_crosses_the_cycles),
	KUNIT_CASE(an_open_gate_never_delays_and_a_closed_one_never_opens),
	KUNIT_CASE(all_gates_are_open_before_the_base),
	KUNIT_CASE(the_previous_schedule_is_in_force_until_the_base),
	KUNIT_CASE(the_last_gates_stay_and_a_short_cycle_cuts),
	KUNIT_CASE(a_base_in_the_past_starts_with_the_next_cycle),
	{}
};

static struct kunit_suite wire_schedule_suite = {
	.name = "wire_schedule",
	.test_cases = wire_schedule_cases,
};

kunit_test_suite(wire_schedule_suite);
