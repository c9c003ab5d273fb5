/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What radio tells of its frames, to whoever subscribes: register_trace_radio_...().
 *
 * A frame's story: taken, sent once or more, arrived if its receiver got it, then given to
 * the receiver's mac80211 at its interrupt; or given up. `cookie` of struct radio_mpdu is
 * the subscriber's: it is NULL when the frame is taken, and radio does not look at it. No
 * event of the trace buffer: see wire_trace.h. A subscriber changes nothing else.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM radio

#if !defined(_RADIO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RADIO_TRACE_H

#include <linux/tracepoint.h>
#include "compat.h"

struct net_device;
struct radio_held;
struct radio_mpdu;
struct radio_phy;
struct radio_ppdu;

/* The driver has a frame of mac80211's. */
DECLARE_TRACE_EVENT(radio_taken,
		    TP_PROTO(struct radio_mpdu *mpdu),
		    TP_ARGS(mpdu));

/* The PPDU begins, once more perhaps: its start and end are known. */
DECLARE_TRACE_EVENT(radio_sent,
		    TP_PROTO(const struct radio_ppdu *ppdu),
		    TP_ARGS(ppdu));

/* @phy has received the frame without an error, its last bit at @arrival_ns. */
DECLARE_TRACE_EVENT(radio_arrived,
		    TP_PROTO(const struct radio_phy *phy, const struct radio_ppdu *ppdu,
			     struct radio_mpdu *mpdu, u64 arrival_ns),
		    TP_ARGS(phy, ppdu, mpdu, arrival_ns));

/* mac80211 of @phy gets all that has arrived. */
DECLARE_TRACE_EVENT(radio_interrupt,
		    TP_PROTO(const struct radio_phy *phy),
		    TP_ARGS(phy));

/* What has arrived goes nowhere: @phy stops. */
DECLARE_TRACE_EVENT(radio_missed,
		    TP_PROTO(const struct radio_phy *phy),
		    TP_ARGS(phy));

/* The frame was sent as often as it may be. */
DECLARE_TRACE_EVENT(radio_lost,
		    TP_PROTO(struct radio_mpdu *mpdu, const char *reason),
		    TP_ARGS(mpdu, reason));

/* The frame is dropped before the air had it, or between two tries. */
DECLARE_TRACE_EVENT(radio_dropped,
		    TP_PROTO(struct radio_mpdu *mpdu, const char *reason),
		    TP_ARGS(mpdu, reason));

/* What a radio holds at this instant: see radio_sample(). */
DECLARE_TRACE_EVENT(radio_sampled,
		    TP_PROTO(const struct net_device *dev, const struct radio_held *held),
		    TP_ARGS(dev, held));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE radio_trace
#include <trace/define_trace.h>
