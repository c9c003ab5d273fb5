// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rates of PPDUs, and the status reports to mac80211.
 *
 * With a fixed MCS, data frames use it as far as both ends support it. A radio with mcs=minstrel
 * sends to a radio with a fixed MCS at that MCS. All other frames use the lowest basic rate:
 * 6 Mbit/s, or at 2.4 GHz 1 Mbit/s with the long preamble. This is the choice
 * of mac80211's rate_control_send_low() with hostapd's basic rates (1, 2, 5.5, 11). With
 * mcs=minstrel mac80211 selects up to four rates with a number of tries each. It also selects
 * which of them begin with RTS/CTS (the fallback rates).
 *
 * Reports contain rates up to VHT in the frame's ieee80211_tx_info, which minstrel reads. This
 * structure cannot express HE rates. A chip with AQL reports like mt76 (Linux 6.1, mt76/tx.c,
 * mt76_tx_status_unlock): the rate of the last try as a rate_info. mac80211 estimates the
 * airtime of its next frames from it.
 */
#include "radio.h"

/* Returns the lowest basic rate, which every station supports. */
struct radio_rate radio_rate_lowest(const struct radio_phy *phy)
{
	return (struct radio_rate){
		.mode = phy->params.band == 2 ? RADIO_DSSS : RADIO_LEGACY, .streams = 1,
	};
}

/* Limits the rate to that of the slower end of the link. */
static void radio_rate_of_peer(const struct radio_phy *phy, const u8 *address,
			       struct radio_rate *rate)
{
	const struct radio_phy *peer = radio_phy_peer(phy, address);
	struct radio_rate other;

	if (!peer || peer->params.mcs == RADIO_MINSTREL ||
	    !radio_params_rate(&peer->params, &other))
		return;
	rate->mcs = min(rate->mcs, other.mcs);
	rate->streams = min(rate->streams, other.streams);
}

/* Returns the parameters that fix the rate of a link, or NULL if minstrel selects its rates. */
static const struct radio_params *radio_fixed(const struct radio_phy *phy,
					      const struct ieee80211_sta *sta)
{
	const struct radio_phy *peer;

	if (phy->params.mcs != RADIO_MINSTREL)
		return &phy->params;
	peer = radio_phy_peer(phy, sta->addr);
	return peer && peer->params.mcs != RADIO_MINSTREL ? &peer->params : NULL;
}

bool radio_rate_is_fixed(const struct radio_phy *phy, const struct ieee80211_sta *sta)
{
	return radio_fixed(phy, sta);
}

/* Returns the configured rate, as far as the peer supports it. */
static void radio_rate_fixed(const struct radio_phy *phy,
			     const struct ieee80211_sta *sta,
			     const struct radio_params *params,
			     struct radio_rate *rate)
{
	const struct ieee80211_link_sta *caps = radio_link(sta);

	if (!caps->ht_cap.ht_supported || !radio_params_rate(params, rate)) {
		*rate = radio_rate_lowest(phy);
		return;
	}
	if (rate->mode == RADIO_HE && !caps->he_cap.has_he) {
		rate->mode = RADIO_VHT;
		rate->gi = 1;
	}
	if (rate->mode == RADIO_VHT && !caps->vht_cap.vht_supported)
		rate->mode = RADIO_HT;
	radio_rate_of_peer(phy, sta->addr, rate);
	rate->width = min_t(u8, rate->width, caps->bandwidth);
	if (caps->rx_nss)
		rate->streams = min_t(u8, rate->streams, caps->rx_nss);
	while (!radio_bits_per_symbol(rate) && rate->mcs)
		rate->mcs--;
}

/* Converts a rate of mac80211. At 2.4 GHz the DSSS rates come first. */
static struct radio_rate radio_rate_of(const struct radio_phy *phy,
				       const struct ieee80211_tx_rate *from)
{
	struct radio_rate rate = { .mode = RADIO_LEGACY, .streams = 1 };

	if (from->flags & IEEE80211_TX_RC_VHT_MCS) {
		rate.mode = RADIO_VHT;
		rate.mcs = ieee80211_rate_get_vht_mcs(from);
		rate.streams = ieee80211_rate_get_vht_nss(from);
	} else if (from->flags & IEEE80211_TX_RC_MCS) {
		rate.mode = RADIO_HT;
		rate.mcs = from->idx % 8;
		rate.streams = from->idx / 8 + 1;
	} else {
		rate.mcs = from->idx;
		if (phy->params.band != 2)
			return rate;
		if (from->idx < RADIO_DSSS_RATES)
			rate.mode = RADIO_DSSS;
		else
			rate.mcs -= RADIO_DSSS_RATES;
		return rate;
	}
	rate.gi = !!(from->flags & IEEE80211_TX_RC_SHORT_GI);
	if (from->flags & IEEE80211_TX_RC_160_MHZ_WIDTH)
		rate.width = 3;
	else if (from->flags & IEEE80211_TX_RC_80_MHZ_WIDTH)
		rate.width = 2;
	else if (from->flags & IEEE80211_TX_RC_40_MHZ_WIDTH)
		rate.width = 1;
	return rate;
}

/* Returns the rate's index in the band's table: see radio_caps.c. */
u8 radio_rate_index(const struct radio_phy *phy, const struct radio_rate *rate)
{
	return rate->mcs + (rate->mode == RADIO_LEGACY && phy->params.band == 2 ?
			    RADIO_DSSS_RATES : 0);
}

/* Writes the rate in mac80211's form, if that can express it. */
static void radio_rate_show(const struct radio_phy *phy,
			    const struct radio_rate *rate,
			    struct ieee80211_tx_rate *to)
{
	static const u16 widths[] = { 0, IEEE80211_TX_RC_40_MHZ_WIDTH,
				      IEEE80211_TX_RC_80_MHZ_WIDTH,
				      IEEE80211_TX_RC_160_MHZ_WIDTH };

	to->flags = widths[rate->width];
	switch (rate->mode) {
	case RADIO_DSSS:
	case RADIO_LEGACY:
		to->idx = radio_rate_index(phy, rate);
		to->flags = 0;
		return;
	case RADIO_HT:
		to->idx = rate->mcs + 8 * (rate->streams - 1);
		to->flags |= IEEE80211_TX_RC_MCS;
		break;
	case RADIO_VHT:
		ieee80211_rate_set_vht(to, rate->mcs, rate->streams);
		to->flags |= IEEE80211_TX_RC_VHT_MCS;
		break;
	default:
		to->idx = -1;
		to->flags = 0;
		return;
	}
	if (rate->gi)
		to->flags |= IEEE80211_TX_RC_SHORT_GI;
}

/* Sets the rates of a PPDU whose first frame is @skb. */
void radio_ppdu_rates(struct radio_ppdu *ppdu, struct sk_buff *skb)
{
	struct radio_phy *phy = ppdu->queue->phy;
	struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
	struct ieee80211_hdr *header = (struct ieee80211_hdr *)skb->data;
	struct ieee80211_tx_rate rates[IEEE80211_TX_MAX_RATES];
	const struct radio_params *fixed = NULL;
	unsigned int i;

	ppdu->rates[0] = radio_rate_lowest(phy);
	ppdu->tries[0] = phy->params.hw_tries;
	if (ppdu->sta && ieee80211_is_data(header->frame_control))
		fixed = radio_fixed(phy, ppdu->sta);
	if (fixed)
		radio_rate_fixed(phy, ppdu->sta, fixed, &ppdu->rates[0]);
	if (fixed || phy->params.mcs != RADIO_MINSTREL)
		return;
	ieee80211_get_tx_rates(info->control.vif, ppdu->sta, skb, rates,
			       ARRAY_SIZE(rates));
	for (i = 0; i < ARRAY_SIZE(rates) && rates[i].idx >= 0; i++) {
		ppdu->rates[i] = radio_rate_of(phy, &rates[i]);
		ppdu->tries[i] = max_t(u8, rates[i].count, 1);
		if (rates[i].flags & IEEE80211_TX_RC_USE_RTS_CTS)
			ppdu->rts |= BIT(i);
	}
}

/* Fills in the status of a frame. @first: the frame reports for its whole aggregate. */
void radio_status(struct radio_phy *phy, const struct radio_ppdu *ppdu,
		  struct radio_mpdu *mpdu, u32 acked, bool first)
{
	struct ieee80211_tx_info *info = IEEE80211_SKB_CB(mpdu->skb);
	unsigned int i, last = min_t(u8, ppdu->series, IEEE80211_TX_MAX_RATES - 1);

	info->flags &= ~(IEEE80211_TX_STAT_AMPDU | IEEE80211_TX_STAT_ACK);
	memset(&info->status, 0, sizeof(info->status));
	for (i = 0; i < IEEE80211_TX_MAX_RATES; i++) {
		info->status.rates[i].idx = -1;
		if (i > last || !ppdu->tries[i])
			continue;
		radio_rate_show(phy, &ppdu->rates[i], &info->status.rates[i]);
		info->status.rates[i].count = i < ppdu->series ? ppdu->tries[i] :
							ppdu->tries_spent + 1;
	}
	info->status.tx_time = min_t(u64, div_u64(ppdu->air_ns, NSEC_PER_USEC),
				     U16_MAX);
	if (mpdu->acked)
		info->flags |= IEEE80211_TX_STAT_ACK;
	if (ppdu->ack == RADIO_NO_ACK)
		info->flags |= IEEE80211_TX_STAT_NOACK_TRANSMITTED;
	if (first && ppdu->ampdu) {
		info->flags |= IEEE80211_TX_STAT_AMPDU;
		info->status.ampdu_len = min_t(u32, ppdu->count, U8_MAX);
		info->status.ampdu_ack_len = min_t(u32, acked, U8_MAX);
	}
}

/* Converts the rate to cfg80211's form, which can express every mode. */
void radio_rate_info(const struct radio_rate *rate, struct rate_info *info)
{
	static const u8 widths[] = { RATE_INFO_BW_20, RATE_INFO_BW_40,
				     RATE_INFO_BW_80, RATE_INFO_BW_160 };

	memset(info, 0, sizeof(*info));
	info->bw = widths[rate->width];
	info->nss = rate->streams;
	info->mcs = rate->mcs;
	switch (rate->mode) {
	case RADIO_DSSS:
	case RADIO_LEGACY:
		info->mcs = 0;
		info->legacy = radio_rate_100k(rate);
		return;
	case RADIO_HT:
		info->mcs += 8 * (rate->streams - 1);
		info->flags = RATE_INFO_FLAGS_MCS;
		break;
	case RADIO_VHT:
		info->flags = RATE_INFO_FLAGS_VHT_MCS;
		break;
	default:
		info->flags = RATE_INFO_FLAGS_HE_MCS;
		info->he_gi = rate->gi;
		return;
	}
	if (rate->gi)
		info->flags |= RATE_INFO_FLAGS_SHORT_GI;
}

/* Reports a frame to @sta with its rate, for airtime estimates, and frees it. */
void radio_status_priced(struct radio_phy *phy, struct ieee80211_sta *sta,
			 struct sk_buff *skb)
{
	const struct radio_rate *rate = &radio_station(sta)->rate;
	struct ieee80211_tx_status status = {
		.sta = sta, .info = IEEE80211_SKB_CB(skb), .skb = skb,
	};
	struct radio_reported reported = {};

	if (rate->streams && radio_rate_is_fixed(phy, sta))
		radio_rate_info(rate, radio_rate_status(&status, &reported));
	ieee80211_tx_status_ext(phy->hw, &status);
}
