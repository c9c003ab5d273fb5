// SPDX-License-Identifier: GPL-2.0-only
/*
 * Request and grant: how a cable modem, a PON or a mobile phone gets its uplink.
 *
 * Frames wait for the next of the periodic instants at which a sender may ask. One request
 * asks for all that has come by then; what it grants begins a fixed delay later. From then
 * on the frames leave one after another at the shaper's rate (wire_shaper.c).
 *
 *	epoch       + cycle      + 2 cycle
 *	  |---- f1 ----|-- f2 f3 ----|------------|
 *	               |   delay     |   delay
 *	               +-----------> f1==
 *	                             +-----------> f2==f3==
 *
 * On an idle line a frame that comes x before an instant, 0 <= x < cycle, waits x + delay:
 * cycle / 2 + delay in the mean. A line that is asked for more than it carries is never idle:
 * the request for a frame is granted while those before it leave, as with requests that ride
 * on data (DOCSIS: piggybacking; LTE, 5G: buffer status reports).
 *
 * technique	cycle			delay
 * DOCSIS 3.x	interval of MAPs, 2 ms	two to three of them (CableLabs, "Low Latency DOCSIS", 2019)
 * LTE		scheduling requests, 5 to 10 ms	8 ms: grant and transmission 4 ms each (TS 36.321)
 * XG-PON	frames of 125 us	one or two of them (ITU-T G.987.3)
 *
 * Left out: requests that collide, several requests at once, grants smaller than the request
 * (a rate that is cut in time has a trace or a shaper), unsolicited grants, retransmissions.
 *
 * No locks, no clock, no device: proved in kernel/tests/wire_grant_test.c.
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
