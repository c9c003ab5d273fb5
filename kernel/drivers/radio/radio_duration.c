// SPDX-License-Identifier: GPL-2.0-only
/*
 * The duration of 802.11 PPDUs, in whole ns.
 *
 *	PPDU = preamble + symbols * symbol,  symbols = ceil((16 + 8 L + tail) / bits)
 *
 * mode		preamble us (N training symbols)	symbol us	tail bits
 * DSSS		192 (long)				8 L / rate, rounded up to 1
 * legacy	20					4		6
 * HT mixed	32 + 4 N				4, SGI 3.6	6 per encoder
 * VHT		36 + 4 N				4, SGI 3.6	6 per encoder
 * HE SU	36 + N (6.4 + GI; 16 at 3.2)		12.8 + GI	0 (LDPC)
 *
 * With the short guard interval, HT and VHT durations are rounded up to a multiple of 4 us.
 * Source: IEEE 802.11-2020, 16.3.4 (DSSS), 17.4.3, 19.4.3 (HT), 21.4.3 (VHT),
 * 802.11ax-2021, 27.4.3 (HE). SIFS is 16 us in both bands: at 2.4 GHz this is the SIFS of 10 us
 * and the signal extension of 6 us. DSSS has no signal extension, so its exchanges are 6 us too
 * long here.
 *
 * Left out: the short preamble of DSSS, HE packet extension, LDPC's extra symbol, HE midambles,
 * and the few VHT rates at 160 MHz with an exceptional number of encoders.
 *
 * Pure functions: no lock, clock or device. Tests: kernel/tests/radio_duration_test.c.
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include "radio_duration.h"

#define US	1000

/* Coded bits per subcarrier, and code rate, by MCS. */
static const struct {
	u8 bits, numerator, denominator;
} radio_mcs[] = {
	{ 1, 1, 2 }, { 2, 1, 2 }, { 2, 3, 4 }, { 4, 1, 2 }, { 4, 3, 4 }, { 6, 2, 3 },
	{ 6, 3, 4 }, { 6, 5, 6 }, { 8, 3, 4 }, { 8, 5, 6 }, { 10, 3, 4 }, { 10, 5, 6 },
};

/* Data subcarriers, by mode and width. */
static const u16 radio_carriers[][4] = {
	[RADIO_LEGACY] = { 48 },
	[RADIO_HT] = { 52, 108 },
	[RADIO_VHT] = { 52, 108, 234, 468 },
	[RADIO_HE] = { 234, 468, 980, 1960 },
};

static const u8 radio_top_mcs[] = {
	[RADIO_DSSS] = 3, [RADIO_LEGACY] = 7, [RADIO_HT] = 7, [RADIO_VHT] = 9, [RADIO_HE] = 11,
};

/* Data bits per symbol at 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s. Next: bits per 2 us at 1, 2,
 * 5.5 and 11 Mbit/s.
 */
static const u16 radio_legacy_bits[] = { 24, 36, 48, 72, 96, 144, 192, 216 };
static const u16 radio_dsss_bits[] = { 2, 4, 11, 22 };

/* Returns the number of convolutional encoders: one per 300 (HT) or 600 (VHT) Mbit/s. */
static u32 radio_encoders(u8 mode, u32 bits)
{
	switch (mode) {
	case RADIO_HT:
		return DIV_ROUND_UP(bits, 1080);
	case RADIO_VHT:
		return DIV_ROUND_UP(bits, 2160);
	case RADIO_HE:
		return 0;
	}
	return 1;
}

u32 radio_bits_per_symbol(const struct radio_rate *rate)
{
	u32 coded, bits, encoders, numerator, denominator;

	if (rate->mode > RADIO_HE || rate->width > 3 ||
	    rate->mcs > radio_top_mcs[rate->mode] || !rate->streams ||
	    rate->streams > 4)
		return 0;
	if (rate->mode == RADIO_DSSS)
		return radio_dsss_bits[rate->mcs];
	if (rate->mode == RADIO_LEGACY)
		return radio_legacy_bits[rate->mcs];
	coded = radio_carriers[rate->mode][rate->width] * rate->streams *
		radio_mcs[rate->mcs].bits;
	numerator = radio_mcs[rate->mcs].numerator;
	denominator = radio_mcs[rate->mcs].denominator;
	bits = coded * numerator / denominator;
	encoders = radio_encoders(rate->mode, bits);
	/* a VHT rate whose bits the encoders cannot share evenly does not exist (21.5) */
	if (rate->mode == RADIO_VHT && coded % (encoders * denominator))
		return 0;
	return bits;
}

static u64 radio_preamble_ns(const struct radio_rate *rate)
{
	static const u8 training[] = { 0, 1, 2, 4, 4 };
	u32 fields = training[rate->streams];

	switch (rate->mode) {
	case RADIO_DSSS:
		return 192 * US;
	case RADIO_HT:
		return (32 + 4 * fields) * US;
	case RADIO_VHT:
		return (36 + 4 * fields) * US;
	case RADIO_HE:
		if (rate->gi == 2)
			return 36 * US + fields * 16 * US;
		return 36 * US + fields * (6400 + (rate->gi ? 1600 : 800));
	}
	return 20 * US;
}

static u32 radio_tail_bits(const struct radio_rate *rate, u32 bits)
{
	return 16 + 6 * radio_encoders(rate->mode, bits);
}

static bool radio_short_gi(const struct radio_rate *rate)
{
	return rate->gi && (rate->mode == RADIO_HT || rate->mode == RADIO_VHT);
}

static u64 radio_symbol_ns(const struct radio_rate *rate)
{
	if (rate->mode == RADIO_DSSS)
		return 2 * US;
	if (rate->mode == RADIO_HE)
		return 12800 + (800U << rate->gi);
	return radio_short_gi(rate) ? 3600 : 4000;
}

u64 radio_part_ns(const struct radio_rate *rate, u32 bytes)
{
	return radio_preamble_ns(rate) +
		DIV_ROUND_UP(8 * bytes + 16, radio_bits_per_symbol(rate)) *
		radio_symbol_ns(rate);
}

u64 radio_ppdu_ns(const struct radio_rate *rate, u32 bytes)
{
	u32 bits = radio_bits_per_symbol(rate);
	u64 data;

	if (rate->mode == RADIO_DSSS)
		return radio_preamble_ns(rate) + DIV_ROUND_UP(16 * bytes, bits) * US;
	data = DIV_ROUND_UP(8 * bytes + radio_tail_bits(rate, bits), bits) *
	       radio_symbol_ns(rate);
	if (radio_short_gi(rate))
		data = div_u64(data + 4 * US - 1, 4 * US) * (4 * US);
	return radio_preamble_ns(rate) + data;
}

u32 radio_ppdu_bytes(const struct radio_rate *rate, u64 ns)
{
	u32 bits = radio_bits_per_symbol(rate), tail = radio_tail_bits(rate, bits);
	u64 preamble = radio_preamble_ns(rate), data;

	if (ns <= preamble)
		return 0;
	data = ns - preamble;
	if (radio_short_gi(rate))
		data = div_u64(data, 4 * US) * (4 * US);
	data = div64_u64(data, radio_symbol_ns(rate)) * bits;
	return data <= tail ? 0 : (u32)min_t(u64, (data - tail) / 8, U32_MAX);
}

/* Returns the highest of 6, 12 and 24 Mbit/s that is no faster than the modulation; DSSS: @rate. */
struct radio_rate radio_control_rate(const struct radio_rate *rate)
{
	struct radio_rate control = { .mode = RADIO_LEGACY, .streams = 1 };

	if (rate->mode == RADIO_DSSS)
		control = *rate;
	else if (rate->mode == RADIO_LEGACY)
		control.mcs = min(rate->mcs & ~1, 4);
	else
		control.mcs = rate->mcs ? (rate->mcs < 3 ? 2 : 4) : 0;
	return control;
}

u64 radio_control_ns(const struct radio_rate *rate, u32 bytes)
{
	struct radio_rate control = radio_control_rate(rate);

	return radio_ppdu_ns(&control, bytes);
}

u32 radio_subframe_bytes(const struct radio_rate *rate, u32 mpdu, u32 least,
			 u32 density_us)
{
	u32 delimiters = 0, symbols, lasting;

	if (mpdu < least)
		delimiters = DIV_ROUND_UP(least - mpdu, RADIO_DELIMITER);
	if (density_us) {
		symbols = radio_short_gi(rate) ? (5 * density_us - 4) / 18 :
			div_u64((u64)density_us * US, radio_symbol_ns(rate));
		lasting = max(symbols, 1U) * radio_bits_per_symbol(rate) / 8;
		if (mpdu < lasting)
			delimiters = max(delimiters,
					 (lasting - mpdu) / RADIO_DELIMITER);
	}
	return ALIGN(RADIO_DELIMITER + mpdu, 4) + delimiters * RADIO_DELIMITER;
}

u32 radio_rate_100k(const struct radio_rate *rate)
{
	return div64_u64((u64)radio_bits_per_symbol(rate) * 10000,
			 radio_symbol_ns(rate));
}
