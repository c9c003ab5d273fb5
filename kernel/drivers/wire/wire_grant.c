// SPDX-License-Identifier: GPL-2.0-only
/*
 * Request and grant: the uplink of a cable modem, a PON or a mobile phone.
 *
 * Frames wait for the next of the periodic request opportunities. One request covers all frames
 * that have arrived by then. Its grant begins after a fixed delay. From then on the frames leave
 * one after another at the shaper's rate (wire_shaper.c).
 *
 *	epoch       + cycle      + 2 cycle
 *	  |---- f1 ----|-- f2 f3 ----|------------|
 *	               |   delay     |   delay
 *	               +-----------> f1==
 *	                             +-----------> f2==f3==
 *
 * On an idle line a frame that arrives x before an opportunity, 0 <= x < cycle, waits x + delay:
 * cycle / 2 + delay on average. An overloaded line is never idle: a frame's request is granted
 * while earlier frames leave, as with requests in data frames (DOCSIS: piggybacking; LTE, 5G:
 * buffer status reports).
 *
 * technique	cycle			delay
 * DOCSIS 3.x	interval of MAPs, 2 ms	two to three of them (CableLabs, "Low Latency DOCSIS", 2019)
 * LTE		scheduling requests, 5 to 10 ms	8 ms: grant and transmission 4 ms each (TS 36.321)
 * XG-PON	frames of 125 us	one or two of them (ITU-T G.987.3)
 *
 * Left out: collisions of requests, several requests at once, grants smaller than the request (a
 * trace or a shaper models a rate that varies), unsolicited grants, retransmissions.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_grant_test.c.
 */
#include <linux/math64.h>
#include "wire_grant.h"

u64 wire_grant_ready(const struct wire_grant *grant, u64 now_ns)
{
	u64 cycles;

	if (!grant->cycle_ns || now_ns < grant->epoch_ns)
		return now_ns;
	cycles = DIV64_U64_ROUND_UP(now_ns - grant->epoch_ns, grant->cycle_ns);
	return grant->epoch_ns + cycles * grant->cycle_ns + grant->delay_ns;
}
