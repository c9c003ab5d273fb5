// SPDX-License-Identifier: GPL-2.0-only
/*
 * The capabilities of a radio: channels, rates, HT, VHT and HE, by its parameters alone. It has
 * no power save, no checksum or scatter-gather offload (like ath9k), and only open networks. All
 * channels may be used: the driver sets its own regulatory domain.
 */
#include <net/cfg80211.h>
#include "radio.h"

/* Channel numbers; radio_caps_channels() computes their frequencies. */
static const u8 radio_channels_2[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static const u8 radio_channels_5[] = { 36, 40, 44, 48, 52, 56, 60, 64 };

/* 2.4 GHz has the four DSSS/CCK rates first. 5 GHz begins with 6 Mbit/s. */
static const struct ieee80211_rate radio_rates[] = {
	{ .bitrate = 10 }, { .bitrate = 20 }, { .bitrate = 55 }, { .bitrate = 110 },
	{ .bitrate = 60 }, { .bitrate = 90 }, { .bitrate = 120 }, { .bitrate = 180 },
	{ .bitrate = 240 }, { .bitrate = 360 }, { .bitrate = 480 }, { .bitrate = 540 },
};

static const struct ieee80211_regdomain radio_regdomain = {
	.n_reg_rules = 2,
	.alpha2 = "99",
	.reg_rules = {
		REG_RULE(2402, 2482, 40, 0, 20, 0),
		REG_RULE(5170, 5330, 160, 0, 20, 0),
	},
};

/* Computes the fixed rate of the parameters. Returns false if no such rate exists. */
bool radio_params_rate(const struct radio_params *params, struct radio_rate *rate)
{
	static const u8 modes[] = { RADIO_HT, RADIO_VHT, RADIO_HE };
	u8 width = ilog2(max_t(u32, params->width / 20, 1));

	*rate = (struct radio_rate){
		.mode = modes[params->standard], .mcs = params->mcs,
		.streams = params->streams, .width = width, .gi = params->sgi,
	};
	if (rate->mode == RADIO_HT) {
		rate->mcs = params->mcs % 8;
		rate->streams = params->mcs / 8 + 1;
	} else if (rate->mode == RADIO_HE) {
		rate->gi = params->sgi ? 0 : 2;
	}
	return radio_bits_per_symbol(rate);
}

/* Returns whether the radio supports 40 MHz: also for 802.11ac at 20 MHz, since otherwise
 * mac80211 would associate without VHT.
 */
static bool radio_caps_wide(const struct radio_params *params)
{
	return params->width > 20 || (params->standard >= RADIO_AC && params->band != 2);
}

static void radio_caps_ht(struct radio_phy *phy, struct ieee80211_sta_ht_cap *cap)
{
	unsigned int i;

	cap->ht_supported = true;
	cap->cap = IEEE80211_HT_CAP_SM_PS | IEEE80211_HT_CAP_MAX_AMSDU;
	if (phy->params.sgi)
		cap->cap |= IEEE80211_HT_CAP_SGI_20;
	if (radio_caps_wide(&phy->params)) {
		cap->cap |= IEEE80211_HT_CAP_SUP_WIDTH_20_40;
		if (phy->params.sgi)
			cap->cap |= IEEE80211_HT_CAP_SGI_40;
	}
	cap->ampdu_factor = IEEE80211_HT_MAX_AMPDU_64K;
	cap->ampdu_density = phy->chip->density_us ? IEEE80211_HT_MPDU_DENSITY_8 :
						     IEEE80211_HT_MPDU_DENSITY_NONE;
	for (i = 0; i < phy->params.streams; i++)
		cap->mcs.rx_mask[i] = 0xff;
	cap->mcs.tx_params = IEEE80211_HT_MCS_TX_DEFINED;
}

/* Returns an MCS map of two bits per stream: @top for supported streams, 3 for the others. */
static u16 radio_mcs_map(u32 streams, u16 top)
{
	u16 map = 0;
	unsigned int i;

	for (i = 0; i < 8; i++)
		map |= (i < streams ? top : 3) << (2 * i);
	return map;
}

static void radio_caps_vht(struct radio_phy *phy, struct ieee80211_sta_vht_cap *cap)
{
	u16 map = radio_mcs_map(phy->params.streams, IEEE80211_VHT_MCS_SUPPORT_0_9);

	cap->vht_supported = true;
	cap->cap = IEEE80211_VHT_CAP_MAX_MPDU_LENGTH_11454 |
		   IEEE80211_VHT_CAP_MAX_A_MPDU_LENGTH_EXPONENT_MASK;
	if (phy->params.sgi)
		cap->cap |= IEEE80211_VHT_CAP_SHORT_GI_80;
	if (phy->params.width == 160) {
		cap->cap |= IEEE80211_VHT_CAP_SUPP_CHAN_WIDTH_160MHZ;
		if (phy->params.sgi)
			cap->cap |= IEEE80211_VHT_CAP_SHORT_GI_160;
	}
	cap->vht_mcs.rx_mcs_map = cpu_to_le16(map);
	cap->vht_mcs.tx_mcs_map = cpu_to_le16(map);
}

static void radio_caps_he(struct radio_phy *phy)
{
	struct ieee80211_sta_he_cap *cap = &phy->iftypes.he_cap;
	u16 map = radio_mcs_map(phy->params.streams, IEEE80211_HE_MCS_SUPPORT_0_11);

	phy->iftypes.types_mask = BIT(NL80211_IFTYPE_STATION) | BIT(NL80211_IFTYPE_AP);
	cap->has_he = true;
	cap->he_cap_elem.mac_cap_info[0] = IEEE80211_HE_MAC_CAP0_HTC_HE;
	/* A-MPDU length exponent extension 1; 802.11ax-2021, table 9-322a */
	cap->he_cap_elem.mac_cap_info[3] = IEEE80211_HE_MAC_CAP3_OMI_CONTROL | 1 << 3;
	if (phy->params.band == 2)
		cap->he_cap_elem.phy_cap_info[0] =
			IEEE80211_HE_PHY_CAP0_CHANNEL_WIDTH_SET_40MHZ_IN_2G;
	else
		cap->he_cap_elem.phy_cap_info[0] =
			IEEE80211_HE_PHY_CAP0_CHANNEL_WIDTH_SET_40MHZ_80MHZ_IN_5G;
	if (phy->params.width == 160)
		cap->he_cap_elem.phy_cap_info[0] |=
			IEEE80211_HE_PHY_CAP0_CHANNEL_WIDTH_SET_160MHZ_IN_5G;
	cap->he_cap_elem.phy_cap_info[1] = IEEE80211_HE_PHY_CAP1_LDPC_CODING_IN_PAYLOAD;
	cap->he_mcs_nss_supp.rx_mcs_80 = cpu_to_le16(map);
	cap->he_mcs_nss_supp.tx_mcs_80 = cpu_to_le16(map);
	cap->he_mcs_nss_supp.rx_mcs_160 = cpu_to_le16(map);
	cap->he_mcs_nss_supp.tx_mcs_160 = cpu_to_le16(map);
	cap->he_mcs_nss_supp.rx_mcs_80p80 = cpu_to_le16(0xffff);
	cap->he_mcs_nss_supp.tx_mcs_80p80 = cpu_to_le16(0xffff);
#ifdef ieee80211_set_sband_iftype_data
	_ieee80211_set_sband_iftype_data(&phy->sband, &phy->iftypes, 1);
#else
	phy->sband.iftype_data = &phy->iftypes;
	phy->sband.n_iftype_data = 1;
#endif
}

static void radio_caps_channels(struct radio_phy *phy, bool low)
{
	const u8 *numbers = low ? radio_channels_2 : radio_channels_5;
	unsigned int i;

	phy->sband.n_channels = low ? ARRAY_SIZE(radio_channels_2) :
				      ARRAY_SIZE(radio_channels_5);
	for (i = 0; i < phy->sband.n_channels; i++) {
		struct ieee80211_channel *channel = &phy->channels[i];

		channel->band = phy->sband.band;
		channel->hw_value = numbers[i];
		channel->center_freq = (low ? 2407 : 5000) + 5 * numbers[i];
		channel->max_power = 20;
	}
	phy->sband.channels = phy->channels;
}

static void radio_caps_band(struct radio_phy *phy)
{
	struct ieee80211_supported_band *sband = &phy->sband;
	bool low = phy->params.band == 2;

	memcpy(phy->bitrates, radio_rates, sizeof(radio_rates));
	sband->band = low ? NL80211_BAND_2GHZ : NL80211_BAND_5GHZ;
	radio_caps_channels(phy, low);
	sband->bitrates = low ? phy->bitrates : phy->bitrates + 4;
	sband->n_bitrates = ARRAY_SIZE(radio_rates) - (low ? 0 : 4);
	radio_caps_ht(phy, &sband->ht_cap);
	if (phy->params.standard >= RADIO_AC && !low)
		radio_caps_vht(phy, &sband->vht_cap);
	if (phy->params.standard == RADIO_AX)
		radio_caps_he(phy);
	phy->hw->wiphy->bands[sband->band] = sband;
}

static void radio_caps_flags(struct radio_phy *phy)
{
	struct ieee80211_hw *hw = phy->hw;

	ieee80211_hw_set(hw, AMPDU_AGGREGATION);
	ieee80211_hw_set(hw, SIGNAL_DBM);
	ieee80211_hw_set(hw, REPORTS_TX_ACK_STATUS);
	ieee80211_hw_set(hw, SUPPORT_FAST_XMIT);
	ieee80211_hw_set(hw, HOST_BROADCAST_PS_BUFFERING);
	ieee80211_hw_set(hw, MFP_CAPABLE);
	if (phy->params.mcs == RADIO_MINSTREL)
		ieee80211_hw_set(hw, SUPPORTS_RC_TABLE);
	else
		ieee80211_hw_set(hw, HAS_RATE_CONTROL);
	if (phy->params.fair)
		wiphy_ext_feature_set(hw->wiphy, NL80211_EXT_FEATURE_AIRTIME_FAIRNESS);
	if (phy->params.aql)
		wiphy_ext_feature_set(hw->wiphy, NL80211_EXT_FEATURE_AQL);
}

void radio_caps_set(struct radio_phy *phy)
{
	struct ieee80211_hw *hw = phy->hw;
	struct wiphy *wiphy = hw->wiphy;

	hw->queues = IEEE80211_NUM_ACS;
	hw->max_rates = IEEE80211_TX_MAX_RATES;
	hw->max_rate_tries = 10;
	hw->sta_data_size = sizeof(struct radio_station);
	hw->vif_data_size = sizeof(struct radio_vif);
	hw->extra_tx_headroom = 4;	/* like ath9k: headroom is part of truesize */
	hw->max_rx_aggregation_subframes = phy->params.standard == RADIO_AX ? 256 : 64;
	hw->max_tx_aggregation_subframes = hw->max_rx_aggregation_subframes;
	radio_caps_flags(phy);
	wiphy->interface_modes = BIT(NL80211_IFTYPE_STATION) | BIT(NL80211_IFTYPE_AP) |
				 BIT(NL80211_IFTYPE_ADHOC) | BIT(NL80211_IFTYPE_MONITOR);
	wiphy->max_scan_ssids = 4;
	wiphy->max_scan_ie_len = IEEE80211_MAX_DATA_LEN;
	wiphy->flags &= ~WIPHY_FLAG_PS_ON_BY_DEFAULT;
	if (phy->params.csa)
		wiphy->flags |= WIPHY_FLAG_HAS_CHANNEL_SWITCH;
	wiphy->regulatory_flags |= REGULATORY_CUSTOM_REG;
	radio_caps_band(phy);
	wiphy_apply_custom_regulatory(wiphy, &radio_regdomain);
}
