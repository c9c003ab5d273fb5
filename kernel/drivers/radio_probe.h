/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What radio tells the probe of its frames: probe_radio.c. Nothing of it changes what
 * a radio does.
 */
#ifndef _RADIO_PROBE_H
#define _RADIO_PROBE_H

#include "probe.h"
#include "radio.h"

void __radio_probe_taken(struct radio_mpdu *mpdu);
void __radio_probe_sent(struct radio_ppdu *ppdu);
void __radio_probe_arrived(struct radio_phy *phy, const struct radio_ppdu *ppdu,
			   struct radio_mpdu *mpdu, u64 arrival_ns);
void __radio_probe_interrupt(struct radio_phy *phy);
void __radio_probe_lost(struct radio_mpdu *mpdu, enum probe_place place, const char *reason);
void __radio_probe_missed(struct radio_phy *phy);

/* The driver has a frame of mac80211's. */
static inline void radio_probe_taken(struct radio_mpdu *mpdu)
{
	if (probe_on)
		__radio_probe_taken(mpdu);
}

/* The PPDU begins, once more perhaps: its start and end are known. */
static inline void radio_probe_sent(struct radio_ppdu *ppdu)
{
	if (probe_on)
		__radio_probe_sent(ppdu);
}

/* The frame has been received without an error. */
static inline void radio_probe_arrived(struct radio_phy *phy, const struct radio_ppdu *ppdu,
				       struct radio_mpdu *mpdu, u64 arrival_ns)
{
	if (probe_on)
		__radio_probe_arrived(phy, ppdu, mpdu, arrival_ns);
}

/* mac80211 gets what has arrived. */
static inline void radio_probe_interrupt(struct radio_phy *phy)
{
	if (probe_on)
		__radio_probe_interrupt(phy);
}

/* The frame is given up. */
static inline void radio_probe_lost(struct radio_mpdu *mpdu, enum probe_place place,
				    const char *reason)
{
	if (mpdu->packet)
		__radio_probe_lost(mpdu, place, reason);
}

/* What has arrived goes nowhere: the radio stops. */
static inline void radio_probe_missed(struct radio_phy *phy)
{
	if (probe_on)
		__radio_probe_missed(phy);
}

/* The next frame of mac80211's queue; it may drop some to get there. */
static inline struct sk_buff *radio_dequeue(struct radio_phy *phy, struct ieee80211_txq *txq)
{
	struct sk_buff *skb;

#ifdef CONFIG_HOURGLASS_PROBE
	probe_dequeues = true;
	skb = ieee80211_tx_dequeue(phy->hw, txq);
	probe_dequeues = false;
#else
	skb = ieee80211_tx_dequeue(phy->hw, txq);
#endif
	return skb;
}

/* probe_radiotap.c */

u32 probe_radiotap(u8 *head, const struct radio_ppdu *ppdu, const struct radio_mpdu *mpdu,
		   const struct radio_phy *to);

#endif
