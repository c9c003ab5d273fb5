// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupt throttling of Intel's chips, and its adaptation by their drivers.
 *
 * A register holds an interval. Each interrupt loads it into a counter, and no other interrupt
 * comes until the counter is 0. The first event after that interrupts at once. So an idle NIC
 * adds no delay, and a busy one interrupts once per interval, for any number of events:
 *
 *	events	 |    | | || |          |
 *	interrupts	 |         |  (all 5)   |
 *		 |<-gap -->|
 *
 * The drivers choose a new interval after each NAPI poll, by the packets of that poll. The
 * integer arithmetic is that of their code, Linux 6.1:
 *
 * igb		igb_update_ring_itr(), igb_main.c:5707, conservative (IGB_DEFAULT_ITR 3). The
 *		interval is proportional to the mean frame, 49 to 375 us. At other rates than
 *		1 Gbit/s it is 245 us. igb_write_itr(), :7015, writes it at the next
 *		interrupt, so it applies from the interrupt after that.
 * ixgbe	ixgbe_update_itr(), ixgbe_main.c:2525. The interval grows by 2 us while an
 *		interrupt finds less than 48 packets, and is halved when it finds 96. With few
 *		or very many packets it follows from the mean frame. After a tick without an
 *		update it is 10 us. The smaller interval of the two directions is written at
 *		once (ixgbe_set_itr(), :2737), in steps of 2.048 us (82599: 20.48 us at
 *		100 Mbit/s).
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_itr_test.c.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include "wire_itr.h"

/* igb.h:29-32, igb_main.c:7016 */
#define IGB_4K		980
#define IGB_20K		196
#define IGB_EITR	0x7ffc

/* ixgbe.h:462-466, ixgbe_type.h:270 */
#define IXGBE_MIN_INC	2
#define IXGBE_MIN	10
#define IXGBE_MAX	126
#define IXGBE_LATENCY	0x80
#define IXGBE_EITR	0xff8

static u32 wire_igb_gap_ns(u32 word)
{
	return max_t(u32, word & IGB_EITR, 4) / 4 * NSEC_PER_USEC;
}

static u32 wire_ixgbe_gap_ns(u32 word, u32 mbps)
{
	return (word & IXGBE_EITR) / 8 * (mbps == 100 ? 20480 : 2048);
}

/* Sets the interval in us: the first one, or for a fixed law the only one. */
void wire_itr_start(struct wire_itr *itr, enum wire_law law, u32 usecs)
{
	bool tx = itr->serves[WIRE_TX], rx = itr->serves[WIRE_RX];

	*itr = (struct wire_itr){
		.law = law,
		.serves = { tx, rx },
		.gap_ns = law == WIRE_DELAY ? 0 : usecs * NSEC_PER_USEC,
		.word = usecs * 4,
		.side_word = { IXGBE_MAX | IXGBE_LATENCY, IXGBE_MAX | IXGBE_LATENCY },
	};
}

void wire_itr_fired(struct wire_itr *itr, u64 now_ns)
{
	itr->next_ns = now_ns + itr->gap_ns;
	if (itr->law == WIRE_IGB)
		itr->gap_ns = wire_igb_gap_ns(itr->word);
}

static u32 wire_mean(const struct wire_work *work)
{
	return work->packets ? work->bytes / work->packets : 0;
}

static void wire_igb_update(struct wire_itr *itr, u32 mbps)
{
	u32 size = max(wire_mean(&itr->work[WIRE_TX]), wire_mean(&itr->work[WIRE_RX]));

	if (mbps < 1000) {	/* above, it is igc: an I210 has no such rate */
		itr->word = IGB_4K;
	} else if (size) {
		size = min(size + 24, 3000U);
		itr->word = max_t(u32, size > 300 && size < 1200 ? size / 3 : size / 2, IGB_20K);
	}
	memset(itr->work, 0, sizeof(itr->work));
}

/* Returns the interval for a mean frame, in 1/256 us at 10 Gbit/s. */
static u32 wire_ixgbe_by_size(u32 size)
{
	if (size <= 60)
		return 5120;
	if (size <= 316)
		return size * 40 + 2720;
	if (size <= 1084)
		return size * 15 + 11452;
	if (size < 1968)
		return size * 5 + 22420;
	return 32256;
}

static u32 wire_ixgbe_scaled(u32 interval, u32 mbps)
{
	if (mbps == 10 || mbps == 1000 || mbps == 2500)
		return DIV_ROUND_UP(min(interval, 8064U), IXGBE_MIN_INC * 64) * IXGBE_MIN_INC;
	return DIV_ROUND_UP(interval, IXGBE_MIN_INC * 256) * IXGBE_MIN_INC;
}

/* Returns the interval in us, with the flag for latency mode. */
static u32 wire_ixgbe_choose(const struct wire_itr *itr, const struct wire_work *work,
			     u32 before, u32 mbps)
{
	u32 more = min_t(u32, itr->word / 4 + IXGBE_MIN_INC, IXGBE_MAX);

	if (!work->packets)
		return more + (before & IXGBE_LATENCY);
	if (work->packets < 4 && work->bytes < 9000)
		return IXGBE_LATENCY +
		       wire_ixgbe_scaled(wire_ixgbe_by_size(wire_mean(work)) / 2, mbps);
	if (work->packets < 48)
		return more;
	if (work->packets < 96)
		return itr->word / 4;
	if (work->packets < 256)
		return max_t(u32, itr->word / 8, IXGBE_MIN);
	return wire_ixgbe_scaled(wire_ixgbe_by_size(wire_mean(work)), mbps);
}

static void wire_ixgbe_update(struct wire_itr *itr, u32 mbps, u64 now_jiffy)
{
	enum wire_side side;
	u32 word;

	for (side = WIRE_TX; side < WIRE_SIDES; side++) {
		if (!itr->serves[side])
			continue;
		if (now_jiffy > itr->side_jiffy[side])
			itr->side_word[side] = IXGBE_MIN | IXGBE_LATENCY;
		else
			itr->side_word[side] = wire_ixgbe_choose(itr, &itr->work[side],
								 itr->side_word[side], mbps);
		itr->side_jiffy[side] = now_jiffy + 1;
		itr->work[side] = (struct wire_work){ };
	}
	word = min(itr->side_word[WIRE_TX], itr->side_word[WIRE_RX]);
	itr->word = (word & ~IXGBE_LATENCY) * 4;
	itr->gap_ns = wire_ixgbe_gap_ns(itr->word, mbps);
}

/* Adapts the interval after a poll, for a link of @mbps. */
void wire_itr_served(struct wire_itr *itr, u32 mbps, u64 now_jiffy)
{
	if (itr->law == WIRE_IGB)
		wire_igb_update(itr, mbps);
	else if (itr->law == WIRE_IXGBE)
		wire_ixgbe_update(itr, mbps, now_jiffy);
}
