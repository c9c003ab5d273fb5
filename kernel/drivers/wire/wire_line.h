/* SPDX-License-Identifier: GPL-2.0-only */
/* The serialisation of one direction of a cable; see wire_line.c. */
#ifndef _WIRE_LINE_H
#define _WIRE_LINE_H

#include <linux/types.h>

/* A value from @at_ns after the epoch on. */
struct wire_step {
	u64 at_ns;
	u64 amount;	/* a rate in bit/s (0: outage), or bytes that may leave */
};

enum wire_trace_kind {
	WIRE_CONSTANT,		/* no trace */
	WIRE_RATE,		/* the steps are changes of the rate */
	WIRE_OPPORTUNITY,	/* the steps are instants, all different */
};

/* A rate that changes over time. */
struct wire_trace {
	enum wire_trace_kind kind;
	u64 epoch_ns;		/* time 0 of the steps; before, the rate is constant */
	u64 period_ns;		/* the steps repeat after this; 0: no repetition */
	unsigned int count;
	struct wire_step *steps;	/* in order of time */
};

struct wire_line {
	/* parameters */
	u64 rate_bps;		/* 1 .. 10^12; without a trace */
	struct wire_trace trace;

	/* state */
	u64 free_ns;		/* the line is busy until then */
	u64 spare;		/* unused nanobits of the last ns */
	u64 opportunity_ns;	/* earlier opportunities are used */
	u64 spare_bytes;	/* unused bytes of the last opportunity */
};

#define WIRE_NEVER	U64_MAX

/*
 * Occupies the line with @bytes from @now_ns, or from when it is free. Returns the ns at which
 * the last byte has left; WIRE_NEVER if the trace never lets them pass (the line is then busy
 * until wire_line_revive()).
 */
u64 wire_line_send(struct wire_line *line, u64 now_ns, u32 bytes);

/* Returns the time after @now_ns at which the rate changes; WIRE_NEVER if it does not. */
u64 wire_line_changes(const struct wire_line *line, u64 now_ns);

/* Stops the line at @now_ns: frames that have not left are lost. */
void wire_line_stop(struct wire_line *line, u64 now_ns);

/* Ends a permanent outage: the line gets another trace at @now_ns. */
void wire_line_revive(struct wire_line *line, u64 now_ns);

#endif
