/* SPDX-License-Identifier: GPL-2.0-only */
/* The arithmetic of one direction of a cable; see wire_line.c. */
#ifndef _WIRE_LINE_H
#define _WIRE_LINE_H

#include <linux/types.h>

/* What begins @at_ns after the epoch. */
struct wire_step {
	u64 at_ns;
	u64 amount;	/* a rate in bit/s (0: an outage), or bytes that may leave */
};

enum wire_trace_kind {
	WIRE_CONSTANT,		/* no trace */
	WIRE_RATE,		/* steps are changes of the rate */
	WIRE_OPPORTUNITY,	/* steps are instants, each at another time */
};

/* A rate that changes over time. */
struct wire_trace {
	enum wire_trace_kind kind;
	u64 epoch_ns;		/* time 0 of the steps; constant rate before */
	u64 period_ns;		/* the steps repeat after this; 0: they do not */
	unsigned int count;
	struct wire_step *steps;	/* in order of time */
};

struct wire_line {
	/* parameters */
	u64 rate_bps;		/* 1 .. 10^12; where no trace says otherwise */
	struct wire_trace trace;

	/* state */
	u64 free_ns;		/* the line is busy until then */
	u64 spare;		/* nanobits of the last ns not used */
	u64 opportunity_ns;	/* earlier opportunities are used up */
	u64 spare_bytes;	/* of the last opportunity not used */
};

#define WIRE_NEVER	U64_MAX

/*
 * Occupies the line with @bytes from @now_ns or from when it is free, and
 * returns the ns at which the last of them has left; WIRE_NEVER if the trace
 * never lets them pass (the line is then busy until wire_line_revive()).
 */
u64 wire_line_send(struct wire_line *line, u64 now_ns, u32 bytes);

/* Nothing leaves any more: what is on its way into the line at @now_ns is gone. */
void wire_line_stop(struct wire_line *line, u64 now_ns);

/* Ends an outage without end: the line gets another trace at @now_ns. */
void wire_line_revive(struct wire_line *line, u64 now_ns);

#endif
