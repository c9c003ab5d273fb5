// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: the radiotap header of a captured frame, with its transmission parameters.
 *
 * Fields are in the order of their bits, each aligned to its own size from the start of the
 * header. MPDUs of one A-MPDU have the same reference.
 * Source: www.radiotap.org; <net/ieee80211_radiotap.h>.
 */
#include <linux/kernel.h>
#include <net/ieee80211_radiotap.h>
#include "probe_radio.h"

struct probe_tap {
	u8 *head;
	u32 bytes, present;
};

/* Adds field @bit. */
static void probe_tap_add(struct probe_tap *tap, u8 bit, u32 align, const void *field, u32 bytes)
{
	u32 at = ALIGN(tap->bytes, align);

	memset(tap->head + tap->bytes, 0, at - tap->bytes);
	memcpy(tap->head + at, field, bytes);
	tap->bytes = at + bytes;
	tap->present |= BIT(bit);
}

static void probe_tap_channel(struct probe_tap *tap, const struct ieee80211_channel *channel)
{
	__le16 field[2] = {
		cpu_to_le16(channel->center_freq),
		cpu_to_le16(channel->band == NL80211_BAND_2GHZ ?
			    IEEE80211_CHAN_2GHZ | IEEE80211_CHAN_DYN :
			    IEEE80211_CHAN_5GHZ | IEEE80211_CHAN_OFDM),
	};

	probe_tap_add(tap, IEEE80211_RADIOTAP_CHANNEL, 2, field, sizeof(field));
}

static void probe_tap_ht(struct probe_tap *tap, const struct radio_rate *rate)
{
	u8 field[3] = {
		IEEE80211_RADIOTAP_MCS_HAVE_BW | IEEE80211_RADIOTAP_MCS_HAVE_MCS |
			IEEE80211_RADIOTAP_MCS_HAVE_GI | IEEE80211_RADIOTAP_MCS_HAVE_FMT,
		(rate->width ? IEEE80211_RADIOTAP_MCS_BW_40 : IEEE80211_RADIOTAP_MCS_BW_20) |
			(rate->gi ? IEEE80211_RADIOTAP_MCS_SGI : 0),
		rate->mcs + 8 * (rate->streams - 1),
	};

	probe_tap_add(tap, IEEE80211_RADIOTAP_MCS, 1, field, sizeof(field));
}

static void probe_tap_vht(struct probe_tap *tap, const struct radio_rate *rate)
{
	static const u8 widths[] = { 0, 1, 4, 11 }; /* 20, 40, 80, 160 MHz */
	struct {
		__le16 known_fields;
		u8 flags, width, mcs_nss[4], coding, group;
		__le16 aid;
	} __packed field = {
		.known_fields = cpu_to_le16(IEEE80211_RADIOTAP_VHT_KNOWN_GI |
					    IEEE80211_RADIOTAP_VHT_KNOWN_BANDWIDTH),
		.flags = rate->gi ? IEEE80211_RADIOTAP_VHT_FLAG_SGI : 0,
		.width = widths[rate->width],
		.mcs_nss = { rate->mcs << 4 | rate->streams },
	};

	BUILD_BUG_ON(sizeof(field) != 12);
	probe_tap_add(tap, IEEE80211_RADIOTAP_VHT, 2, &field, sizeof(field));
}

static void probe_tap_he(struct probe_tap *tap, const struct radio_rate *rate)
{
	/* training symbols of 2 x 3.2 us, or 4 x 3.2 us with the longest guard interval */
	u16 training = rate->gi == 2 ? IEEE80211_RADIOTAP_HE_DATA5_LTF_SIZE_4X :
				       IEEE80211_RADIOTAP_HE_DATA5_LTF_SIZE_2X;
	__le16 field[6] = {
		cpu_to_le16(IEEE80211_RADIOTAP_HE_DATA1_DATA_MCS_KNOWN |
			    IEEE80211_RADIOTAP_HE_DATA1_CODING_KNOWN |
			    IEEE80211_RADIOTAP_HE_DATA1_BW_RU_ALLOC_KNOWN),
		cpu_to_le16(IEEE80211_RADIOTAP_HE_DATA2_GI_KNOWN),
		cpu_to_le16(rate->mcs << 8 | IEEE80211_RADIOTAP_HE_DATA3_CODING),
		0,
		cpu_to_le16(rate->width | rate->gi << 4 | training << 6),
		cpu_to_le16(rate->streams),
	};

	probe_tap_add(tap, IEEE80211_RADIOTAP_HE, 2, field, sizeof(field));
}

static void probe_tap_ampdu(struct probe_tap *tap, const struct radio_ppdu *ppdu,
			    const struct radio_mpdu *mpdu)
{
	u16 last = list_is_last(&mpdu->list, &ppdu->mpdus) ? IEEE80211_RADIOTAP_AMPDU_IS_LAST : 0;
	struct {
		__le32 reference;
		__le16 flags;
		u8 delimiter_crc, reserved;
	} __packed field = {
		.reference = cpu_to_le32(ppdu->queue->phy->stats.tx_ppdus),
		.flags = cpu_to_le16(IEEE80211_RADIOTAP_AMPDU_LAST_KNOWN | last),
	};

	probe_tap_add(tap, IEEE80211_RADIOTAP_AMPDU_STATUS, 4, &field, sizeof(field));
}

/*
 * Writes the header of @mpdu to @head, which has PROBE_RADIOTAP bytes. Returns the header's
 * length. @to: the radio that received the frame; NULL: the frame is captured at its sender.
 */
u32 probe_radiotap(u8 *head, const struct radio_ppdu *ppdu, const struct radio_mpdu *mpdu,
		   const struct radio_phy *to)
{
	const struct radio_rate *rate = &ppdu->rates[ppdu->series];
	struct ieee80211_radiotap_header *header = (void *)head;
	struct probe_tap tap = { .head = head, .bytes = sizeof(*header) };
	__le64 start_us = cpu_to_le64(div_u64(ppdu->start_ns, NSEC_PER_USEC));
	u8 flags = 0, legacy, retries = mpdu->tries - 1;
	bool no_ack = ppdu->ack == RADIO_NO_ACK;
	__le16 tx_flags = cpu_to_le16(no_ack ? IEEE80211_RADIOTAP_F_TX_NOACK : 0);
	s8 signal;

	probe_tap_add(&tap, IEEE80211_RADIOTAP_TSFT, 8, &start_us, sizeof(start_us));
	probe_tap_add(&tap, IEEE80211_RADIOTAP_FLAGS, 1, &flags, sizeof(flags));
	if (rate->mode <= RADIO_LEGACY) {
		legacy = radio_rate_100k(rate) / 5;
		probe_tap_add(&tap, IEEE80211_RADIOTAP_RATE, 1, &legacy, sizeof(legacy));
	}
	probe_tap_channel(&tap, ppdu->queue->phy->hw->conf.chandef.chan);
	if (to) {
		signal = radio_rx_signal(to);
		probe_tap_add(&tap, IEEE80211_RADIOTAP_DBM_ANTSIGNAL, 1, &signal, sizeof(signal));
	} else {
		probe_tap_add(&tap, IEEE80211_RADIOTAP_TX_FLAGS, 2, &tx_flags, sizeof(tx_flags));
		probe_tap_add(&tap, IEEE80211_RADIOTAP_DATA_RETRIES, 1, &retries, sizeof(retries));
	}
	if (rate->mode == RADIO_HT)
		probe_tap_ht(&tap, rate);
	if (ppdu->count > 1)
		probe_tap_ampdu(&tap, ppdu, mpdu);
	if (rate->mode == RADIO_VHT)
		probe_tap_vht(&tap, rate);
	if (rate->mode == RADIO_HE)
		probe_tap_he(&tap, rate);
	header->it_version = 0;
	header->it_pad = 0;
	header->it_len = cpu_to_le16(tap.bytes);
	header->it_present = cpu_to_le32(tap.present);
	return tap.bytes;
}
