// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random numbers from a seed, and the error model.
 *
 * Bytes are lost independently of each other: P(MPDU of L bytes is lost) = 1 - exp(-L r), with
 *
 *	r(SNR) = -ln(0.9) / 4096 * 10^((sensitivity - SNR) / 1 dB)
 *
 * At the receiver's sensitivity the loss probability of an MPDU of 4096 bytes is 0.1, as the
 * standard defines sensitivity. The SNRs follow from the standard's minimum sensitivities (IEEE
 * 802.11-2020, tables 17-18, 19-23, 21-25; 802.11ax-2021, 27-51; 2 and 11 Mbit/s: 15.4.8.2 and
 * 16.3.8.2, and 3 dB less for half the rate). These are values at 20 MHz, from which thermal
 * noise (-101 dBm), a noise figure of 10 dB and an implementation margin of 5 dB are subtracted,
 * as in the standard.
 *
 * A decade per dB is the slope of the K = 7 convolutional code over an AWGN channel. SNR is that
 * of one stream. Fading is left out. The random sequence is SplitMix64 (G. Steele, D. Lea, C.
 * Flood, OOPSLA 2014).
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include "radio_errors.h"

/* log2(10), log2(e), and -log2(ln(1/0.9) / 4096) in 16.16 */
#define LOG2_10		217706
#define LOG2_E		94548
#define LOG2_BYTE	999201

/* Required SNR in 1/100 dB by MCS, and for 6, 9 ... 54 Mbit/s. */
static const s16 radio_sensitivity[] = {
	400, 700, 900, 1200, 1600, 2000, 2100, 2200, 2700, 2900, 3200, 3400,
};

static const s16 radio_legacy_sensitivity[] = {
	400, 500, 700, 900, 1200, 1600, 2000, 2100,
};

/* ... and for 1, 2, 5.5 and 11 */
static const s16 radio_dsss_sensitivity[] = { 300, 600, 700, 1000 };

u32 radio_random_next(struct radio_random *random)
{
	u64 z = random->seed + ++random->count * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

/* 2^-x in 1.32, for x in 16.16 */
static u64 radio_exp2_minus(u64 x)
{
	/* 2^-(1/2), 2^-(1/4), ... in 0.32 */
	static const u32 roots[16] = {
		3037000500U, 3611622603U, 3938502376U, 4112874773U,
		4202935003U, 4248701965U, 4271771996U, 4283353945U,
		4289156690U, 4292061010U, 4293513907U, 4294240540U,
		4294603903U, 4294785595U, 4294876445U, 4294921870U,
	};
	u64 result = 1ULL << 32;
	unsigned int i;

	for (i = 0; i < 16; i++)
		if (x & (1U << (15 - i)))
			result = result * roots[i] >> 32;
	x >>= 16;
	return x > 31 ? 0 : result >> x;
}

static s32 radio_need_cdb(const struct radio_rate *rate)
{
	switch (rate->mode) {
	case RADIO_DSSS:
		return radio_dsss_sensitivity[rate->mcs];
	case RADIO_LEGACY:
		return radio_legacy_sensitivity[rate->mcs];
	}
	return radio_sensitivity[rate->mcs];
}

u32 radio_error_ppm(const struct radio_rate *rate, s32 snr_cdb, u32 bytes)
{
	s32 need = radio_need_cdb(rate);
	/* log2 of 1/r, 16.16 */
	s64 exponent = LOG2_BYTE + div_s64((s64)(snr_cdb - need) * LOG2_10, 100);
	u64 loss;

	if (exponent < 0)
		return RADIO_PPM;
	/* L r log2(e), 16.16: the negative exponent of the success probability */
	loss = (u64)bytes * LOG2_E;
	loss = mul_u64_u64_shr(loss, radio_exp2_minus(exponent), 32);
	return RADIO_PPM - (u32)(radio_exp2_minus(loss) * RADIO_PPM >> 32);
}
