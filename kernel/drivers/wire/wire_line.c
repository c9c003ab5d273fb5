// SPDX-License-Identifier: GPL-2.0-only
/*
 * The serialisation of one direction of a cable. Frames leave one after another at an exact
 * rate, and this file computes when the last byte of each has left.
 *
 * Time is in ns, data in nanobits (10^-9 bit), since one ns at R bit/s carries exactly R
 * nanobits. A frame of N nanobits leaves after the smallest whole number of ns whose capacity is
 * at least N. The unused capacity of the last ns ("spare") belongs to the next frame if that
 * frame was already waiting. So k frames back to back leave after ceil(k * N / R) ns, and no
 * error accumulates.
 *
 *	|<------- frame 1 ------->|<------- frame 2 ------->|
 *	ns  .    .    .    .    .    .    .    .    .    .
 *	                        |-| spare: given to frame 2
 *
 * A trace makes the rate a step function of time. A frame that meets a change continues at the
 * new rate, and waits while the rate is 0. A trace of opportunities is the other common form
 * (Mahimahi, R. Netravali et al., USENIX ATC 2015): at given instants up to a number of bytes
 * may leave. If no waiting frame uses an opportunity, it is lost.
 *
 * A frame may need many periods of a repeated trace. The capacity of a period is known after one
 * whole period, so the remaining periods are skipped by arithmetic. A period without capacity is
 * a permanent outage.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/wire_line_test.c.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/time64.h>
#include "wire_line.h"

/*
 * Returns the number of steps at or before @time, and the start of its period in *@base. @time
 * is not before the epoch.
 */
static unsigned int wire_trace_find(const struct wire_trace *trace, u64 time,
				    u64 *base)
{
	unsigned int low = 0, high = trace->count;
	u64 offset = time - trace->epoch_ns;

	*base = trace->epoch_ns;
	if (trace->period_ns) {
		*base += div64_u64(offset, trace->period_ns) * trace->period_ns;
		offset = time - *base;
	}
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (trace->steps[middle].at_ns <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the rate at @time, and in *@until the time up to which it is constant. */
static u64 wire_line_rate(const struct wire_line *line, u64 time, u64 *until)
{
	const struct wire_trace *trace = &line->trace;
	unsigned int passed;
	u64 base;

	*until = WIRE_NEVER;
	if (trace->kind != WIRE_RATE)
		return line->rate_bps;
	if (time < trace->epoch_ns) {
		*until = trace->epoch_ns;
		return line->rate_bps;
	}
	passed = wire_trace_find(trace, time, &base);
	if (passed < trace->count)
		*until = base + trace->steps[passed].at_ns;
	else if (trace->period_ns)
		*until = base + trace->period_ns;
	return passed ? trace->steps[passed - 1].amount : line->rate_bps;
}

u64 wire_line_changes(const struct wire_line *line, u64 now_ns)
{
	u64 until;

	wire_line_rate(line, now_ns, &until);
	return until;
}

/* Returns whether a period of the line's rates begins at @time. */
static bool wire_period_begins(const struct wire_line *line, u64 time)
{
	const struct wire_trace *trace = &line->trace;

	return trace->kind == WIRE_RATE && trace->period_ns && time >= trace->epoch_ns &&
	       !((time - trace->epoch_ns) % trace->period_ns);
}

/*
 * Skips periods that carry @carried nanobits each, but not the period in which the last of
 * @need nanobits leaves. Returns the time after them; WIRE_NEVER if the bits never leave.
 */
static u64 wire_pass_periods(const struct wire_line *line, u64 time, u64 carried,
			     u64 *need)
{
	u64 periods, duration;

	if (!carried)
		return WIRE_NEVER;
	periods = div64_u64(*need - 1, carried);
	*need -= periods * carried;
	if (check_mul_overflow(periods, line->trace.period_ns, &duration) ||
	    check_add_overflow(time, duration, &time))
		return WIRE_NEVER;
	return time;
}

static u64 wire_send_at_rate(struct wire_line *line, u64 start, u64 spare,
			     u32 bytes)
{
	u64 need = (u64)bytes * BITS_PER_BYTE * NSEC_PER_SEC;
	u64 at_period = 0;	/* nanobits needed when the last period began */

	for (;;) {
		u64 until, rate = wire_line_rate(line, start, &until);
		u64 duration;

		if (!rate && until == WIRE_NEVER)
			return WIRE_NEVER;
		if (rate) {
			spare = min(spare, rate - 1);
			duration = need <= spare ? 0 :
				   div64_u64(need - spare + rate - 1, rate);
			if (duration <= until - start) {
				line->spare = spare + duration * rate - need;
				return start + duration;
			}
			need -= spare + (until - start) * rate;
		}
		start = until;
		spare = 0;
		if (!wire_period_begins(line, start))
			continue;
		if (at_period) {
			start = wire_pass_periods(line, start, at_period - need, &need);
			if (start == WIRE_NEVER)
				return WIRE_NEVER;
		}
		at_period = need;
	}
}

/* Returns the first opportunity at or after @time, and the @bytes that may leave then. */
static u64 wire_next_opportunity(const struct wire_trace *trace, u64 time,
				 u64 *bytes)
{
	const struct wire_step *first = trace->steps;
	const struct wire_step *step = first;
	u64 base = trace->epoch_ns;

	if (time > trace->epoch_ns) {
		/* steps strictly before @time, hence the - 1 */
		step += wire_trace_find(trace, time - 1, &base);
		if (step == first + trace->count) {
			if (!trace->period_ns)
				return WIRE_NEVER;
			base += trace->period_ns;
			step = first;
		}
	}
	*bytes = step->amount;
	/* the end of a period is the beginning of the next one */
	if (trace->period_ns && step->at_ns == trace->period_ns && !first->at_ns)
		*bytes += first->amount;
	return base + step->at_ns;
}

static u64 wire_send_at_opportunity(struct wire_line *line, u64 now_ns,
				    u32 bytes)
{
	u64 at = max(now_ns, line->free_ns);

	if (now_ns > line->free_ns)
		line->spare_bytes = 0;
	while (bytes > line->spare_bytes) {
		bytes -= line->spare_bytes;
		at = wire_next_opportunity(&line->trace,
					   max(at, line->opportunity_ns),
					   &line->spare_bytes);
		if (at == WIRE_NEVER)
			return WIRE_NEVER;
		line->opportunity_ns = at + 1;
	}
	line->spare_bytes -= bytes;
	return at;
}

u64 wire_line_send(struct wire_line *line, u64 now_ns, u32 bytes)
{
	const struct wire_trace *trace = &line->trace;
	u64 start = max(now_ns, line->free_ns);
	u64 spare = now_ns < line->free_ns ? line->spare : 0;

	if (line->free_ns == WIRE_NEVER)
		return WIRE_NEVER;
	line->spare = 0;
	if (trace->kind == WIRE_OPPORTUNITY && start >= trace->epoch_ns)
		line->free_ns = wire_send_at_opportunity(line, now_ns, bytes);
	else
		line->free_ns = wire_send_at_rate(line, start, spare, bytes);
	return line->free_ns;
}

void wire_line_revive(struct wire_line *line, u64 now_ns)
{
	if (line->free_ns != WIRE_NEVER)
		return;
	line->free_ns = now_ns;
	line->spare = 0;
	line->spare_bytes = 0;
}

void wire_line_stop(struct wire_line *line, u64 now_ns)
{
	line->free_ns = min(line->free_ns, now_ns);
	line->opportunity_ns = min(line->opportunity_ns, now_ns);
	line->spare = 0;
	line->spare_bytes = 0;
}
