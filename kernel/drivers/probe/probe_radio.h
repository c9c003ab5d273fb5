/* SPDX-License-Identifier: GPL-2.0-only */
/* Common declarations of the probe's files for radios. Tracepoints of frames: radio_trace.h. */
#ifndef _PROBE_RADIO_H
#define _PROBE_RADIO_H

#include "probe.h"
#include "radio.h"

/* probe_radiotap.c */
u32 probe_radiotap(u8 *head, const struct radio_ppdu *ppdu, const struct radio_mpdu *mpdu,
		   const struct radio_phy *to);

#endif
