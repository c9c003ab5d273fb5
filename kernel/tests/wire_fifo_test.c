// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: wire_fifo.c against closed forms. */
#include <kunit/test.h>
#include <linux/kernel.h>
#include "wire_fifo.h"

#define FRAME	1514
#define TICK	123040ULL	/* a full frame on a cable of 100 Mbit/s */

static struct wire_fifo make(struct kunit *test, u32 size)
{
	u32 room = wire_fifo_room(size);

	return (struct wire_fifo){
		.size = size,
		.room = room,
		.entries = kunit_kzalloc(test, room * sizeof(struct wire_fifo_entry), GFP_KERNEL),
	};
}

static void without_memory_complete_is_sent(struct kunit *test)
{
	struct wire_fifo fifo = { };

	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 5, 1000, FRAME), 1000ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 5, U64_MAX, FRAME), U64_MAX);
}

/* Back to back, frame n is fetched when the frame before the last five has left. */
static void a_full_memory_runs_ahead_by_its_size(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 7808);
	u64 n, fitting = 7808 / FRAME;

	for (n = 1; n <= 1000; n++)
		KUNIT_ASSERT_EQ(test, wire_fifo_fetch(&fifo, 0, n * TICK, FRAME),
				n <= fitting ? 0 : (n - fitting) * TICK);
}

static void small_frames_fill_it_too(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 600);
	u64 n;

	for (n = 1; n <= 100; n++)
		KUNIT_ASSERT_EQ(test, wire_fifo_fetch(&fifo, 0, n * 10, 60),
				n <= 10 ? 0 : (n - 10) * 10);
}

static void what_has_left_takes_no_room(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 2 * FRAME);

	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, 100, FRAME), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, 200, FRAME), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, 300, FRAME), 100ULL);
	/* fetched at once, but not before the previous frame */
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 50, 350, 1), 200ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 1000, 1100, FRAME), 1000ULL);
}

static void larger_than_the_memory(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 4096);

	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, 100, 9014), 100ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, 110, 1000), 100ULL);
}

static void an_outage_without_end(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 2 * FRAME);

	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, U64_MAX, FRAME), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, U64_MAX, FRAME), 0ULL);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 0, U64_MAX, FRAME), U64_MAX);
	wire_fifo_reset(&fifo);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, 10, 20, FRAME), 10ULL);
}

/* Frames fetched when there is room are complete at once, and leave as if queued earlier. */
static void frames_that_wait_for_room(struct kunit *test)
{
	struct wire_fifo fifo = make(test, 7808);
	u64 n, now = 0, fitting = 7808 / FRAME;

	for (n = 1; n <= 1000; n++) {
		now = wire_fifo_room_ns(&fifo, now, FRAME);
		KUNIT_ASSERT_EQ(test, now, n <= fitting ? 0 : (n - fitting) * TICK);
		KUNIT_ASSERT_EQ(test, wire_fifo_fetch(&fifo, now, n * TICK, FRAME), now);
	}
	/* a large frame waits until the memory is empty, and is fetched while it leaves */
	now = wire_fifo_room_ns(&fifo, now, 9014);
	KUNIT_EXPECT_EQ(test, now, 1000 * TICK);
	KUNIT_EXPECT_EQ(test, wire_fifo_fetch(&fifo, now, 1006 * TICK, 9014), 1006 * TICK);
	KUNIT_EXPECT_EQ(test, wire_fifo_room_ns(&fifo, now, FRAME), 1006 * TICK);
}

static struct kunit_case wire_fifo_cases[] = {
	KUNIT_CASE(without_memory_complete_is_sent),
	KUNIT_CASE(a_full_memory_runs_ahead_by_its_size),
	KUNIT_CASE(small_frames_fill_it_too),
	KUNIT_CASE(what_has_left_takes_no_room),
	KUNIT_CASE(larger_than_the_memory),
	KUNIT_CASE(an_outage_without_end),
	KUNIT_CASE(frames_that_wait_for_room),
	{}
};

static struct kunit_suite wire_fifo_suite = {
	.name = "wire_fifo",
	.test_cases = wire_fifo_cases,
};

kunit_test_suite(wire_fifo_suite);
