/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoints of a radio's frames, for subscribers: register_trace_radio_...(). A frame is
 * taken and then sent once or more. Either it arrives at its receiver, which gives a copy of it to
 * mac80211 later, or it is given up. Like those of wire_trace.h, these tracepoints write no event
 * to the trace buffer. `cookie` of struct radio_mpdu belongs to the subscriber: it is NULL when
 * the frame is taken, and the driver does not read it. So does `dev_scratch` of the copy: it is 0
 * when the frame arrives, and must be 0 after radio_given. A subscriber changes nothing else.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM radio

#if !defined(_RADIO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RADIO_TRACE_H

#include <linux/tracepoint.h>
#include "compat.h"

struct net_device;
struct radio_backlog;
struct radio_mpdu;
struct radio_phy;
struct radio_ppdu;
struct sk_buff;

/* The driver took a frame from mac80211. */
DECLARE_TRACE_EVENT(radio_taken,
		    TP_PROTO(struct radio_mpdu *mpdu),
		    TP_ARGS(mpdu));

/* A transmission of the PPDU begins: its start and end are known. */
DECLARE_TRACE_EVENT(radio_sent,
		    TP_PROTO(const struct radio_ppdu *ppdu),
		    TP_ARGS(ppdu));

/* @phy received the frame without an error, its last bit at @arrival_ns, as @copy. */
DECLARE_TRACE_EVENT(radio_arrived,
		    TP_PROTO(const struct radio_phy *phy, const struct radio_ppdu *ppdu,
			     struct radio_mpdu *mpdu, struct sk_buff *copy, u64 arrival_ns),
		    TP_ARGS(phy, ppdu, mpdu, copy, arrival_ns));

/* mac80211 gets an arrived frame. */
DECLARE_TRACE_EVENT(radio_given,
		    TP_PROTO(struct sk_buff *copy),
		    TP_ARGS(copy));

/* An arrived frame is dropped: @phy stops. */
DECLARE_TRACE_EVENT(radio_missed,
		    TP_PROTO(const struct radio_phy *phy, struct sk_buff *copy),
		    TP_ARGS(phy, copy));

/* The frame is given up after its last try. */
DECLARE_TRACE_EVENT(radio_lost,
		    TP_PROTO(struct radio_mpdu *mpdu, const char *reason),
		    TP_ARGS(mpdu, reason));

/* The frame is dropped before its first transmission, or between two. */
DECLARE_TRACE_EVENT(radio_dropped,
		    TP_PROTO(struct radio_mpdu *mpdu, const char *reason),
		    TP_ARGS(mpdu, reason));

/* The backlog of a radio now: see radio_sample(). */
DECLARE_TRACE_EVENT(radio_sampled,
		    TP_PROTO(const struct net_device *dev, const struct radio_backlog *backlog),
		    TP_ARGS(dev, backlog));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE radio_trace
#include <trace/define_trace.h>
