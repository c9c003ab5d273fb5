/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoints of frames, for subscribers: register_trace_wire_...().
 *
 * These tracepoints write no event to the trace buffer, since they serve kernel code that follows
 * packets. Users have captures and ethtool(8) -S. Times are those of the frame's bits, in
 * CLOCK_MONOTONIC. A subscriber changes nothing.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM wire

#if !defined(_WIRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _WIRE_TRACE_H

#include <linux/tracepoint.h>
#include "compat.h"

struct net_device;
struct netdev_queue;
struct sk_buff;
struct wire_flight;

/* The frame leaves the ring of @from, or enters it if @from has one queue. Its path is known. */
DECLARE_TRACE_EVENT(wire_sent,
		    TP_PROTO(const struct sk_buff *frame, const struct net_device *from,
			     const struct net_device *to, const struct wire_flight *flight),
		    TP_ARGS(frame, from, to, flight));

/* @dev drops the frame before transmission. */
DECLARE_TRACE_EVENT(wire_tx_dropped,
		    TP_PROTO(const struct sk_buff *frame, const struct net_device *dev,
			     const char *reason),
		    TP_ARGS(frame, dev, reason));

/* The NIC takes an arrived frame out of its ring, and gives it to the stack if it is intact. */
DECLARE_TRACE_EVENT(wire_received,
		    TP_PROTO(const struct sk_buff *frame, const struct net_device *dev,
			     u64 arrival_ns),
		    TP_ARGS(frame, dev, arrival_ns));

/* @dev drops a frame that has arrived or is in flight to it. */
DECLARE_TRACE_EVENT(wire_rx_dropped,
		    TP_PROTO(const struct sk_buff *frame, const struct net_device *dev,
			     const char *reason),
		    TP_ARGS(frame, dev, reason));

/* The rings of a running NIC now, or only that of @txq: see wire_sample(). */
DECLARE_TRACE_EVENT(wire_sampled,
		    TP_PROTO(const struct net_device *dev, const struct netdev_queue *txq,
			     u32 skbs, u32 bytes),
		    TP_ARGS(dev, txq, skbs, bytes));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE wire_trace
#include <trace/define_trace.h>
