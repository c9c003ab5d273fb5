// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameters of a radio, as words "key=value".
 *
 * key		unit	default (ath9k, ath9k_htc, generic)	meaning
 * chip			ath9k		personality: ath9k, ath9k_htc, generic
 * standard		n		n, ac, ax: capabilities, and mode of the fixed rate
 * medium		0		radios with the same number share a channel
 * band		GHz	5		2 or 5
 * width	MHz	40		20, 40 (n); 80, 160 (ac, ax at 5 GHz)
 * streams		by mcs		1-4
 * sgi			1		shortest guard interval (ax: 0.8 us, else 3.2 us)
 * mcs			7		n: 0-31; ac: 0-9, ax: 0-11 of each stream; minstrel
 * snr_cdb *	dB/100	6000		of transmitted frames; see radio_errors.c
 * per_ppm *	10^-6	0		minimum loss probability of an MPDU
 * seed			1		of backoffs and losses
 * rx_last_us *	us	500, 250, 0	interrupt after the last frame received
 * rx_first_us *	us	2000, 700, 0	... after the first
 * max_subframes *	32, 17, 64 (ax 256)	of an aggregate
 * max_airtime_us *	us	4096, 5484, 5484	of an aggregate's PPDU
 * depth *		2, 1, 1		aggregates in a hardware queue
 * fifo *		-, 246, -	frames that the driver takes (ath9k_htc)
 * gap_us *	us	-, 100, -	between aggregates: the firmware's processor
 * usb_ns *	ns	-, 25, -	time of a byte on USB
 * collide *		1		0: simultaneous starts do not collide
 * pacing_shift *	10		of mac80211 (hw->tx_sk_pacing_shift): default 7
 * aql			0, 0, 1		airtime queue limits of mac80211
 * fair			1		airtime fairness of mac80211
 * csa			0		channel switch; hostapd's beacons announce it
 * rts_bytes *	bytes	0		longer PPDUs begin with RTS/CTS; 0: none
 * propagation_ns *	ns	0	one way
 * hw_tries *		10		of a PPDU without a response, at one rate
 * sw_tries *		30, 10, 30	of an MPDU, in total
 *
 * The worse values of its two ends apply to both directions of a link: the lower mcs (if both are
 * numbers), the lower snr_cdb and the higher per_ppm. So a distant station also receives badly.
 *
 * Parameters with * can be set while a radio runs. Sources: the heads of radio_pull.c and
 * radio_usb.c; 802.11-2020 for 5484 us; net/mac80211/main.c for the shift.
 */
#include <linux/etherdevice.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include "radio.h"

static const char * const radio_chips[] = { "ath9k", "ath9k_htc", "generic", NULL };
static const char * const radio_standards[] = { "n", "ac", "ax", NULL };

static const struct radio_params radio_common = {
	.band = 5, .width = 40, .sgi = 1, .mcs = 7, .snr_cdb = 6000, .seed = 1,
	.collide = 1, .pacing_shift = 7, .fair = 1, .hw_tries = 10,
};

static const struct radio_key {
	const char *name;
	size_t offset;
	u64 low, high;
	bool live;
	const char * const *names;
} radio_keys[] = {
#define RADIO_KEY(_name, _low, _high, _live) {				\
	.name = #_name, .offset = offsetof(struct radio_params, _name),	\
	.low = (_low), .high = (_high), .live = (_live) }
#define RADIO_WORD(_name, _names) {					\
	.name = #_name, .offset = offsetof(struct radio_params, _name),	\
	.names = (_names) }
	RADIO_WORD(chip, radio_chips),
	RADIO_WORD(standard, radio_standards),
	RADIO_KEY(medium, 0, U32_MAX, false),
	RADIO_KEY(band, 2, 5, false),
	RADIO_KEY(width, 20, 160, false),
	RADIO_KEY(streams, 1, 4, false),
	RADIO_KEY(sgi, 0, 1, false),
	RADIO_KEY(mcs, 0, 31, false),
	RADIO_KEY(snr_cdb, 0, 10000, true),
	RADIO_KEY(per_ppm, 0, RADIO_PPM, true),
	RADIO_KEY(seed, 0, U64_MAX, false),
	RADIO_KEY(rx_last_us, 0, 1000000, true),
	RADIO_KEY(rx_first_us, 0, 1000000, true),
	RADIO_KEY(max_subframes, 1, RADIO_SUBFRAMES, true),
	RADIO_KEY(max_airtime_us, 1, 5484, true),
	RADIO_KEY(depth, 1, 64, true),
	RADIO_KEY(fifo, 1, 100000, true),
	RADIO_KEY(gap_us, 0, 1000000, true),
	RADIO_KEY(usb_ns, 0, 1000000, true),
	RADIO_KEY(collide, 0, 1, true),
	RADIO_KEY(pacing_shift, 1, 30, true),
	RADIO_KEY(aql, 0, 1, false),
	RADIO_KEY(fair, 0, 1, false),
	RADIO_KEY(csa, 0, 1, false),
	RADIO_KEY(rts_bytes, 0, U32_MAX, true),
	RADIO_KEY(propagation_ns, 0, 1000000, true),
	RADIO_KEY(hw_tries, 1, 100, true),
	RADIO_KEY(sw_tries, 1, 1000, true),
};

const struct radio_personality *radio_params_chip(u64 chip)
{
	static const struct radio_personality * const chips[] = {
		&radio_ath9k, &radio_htc, &radio_generic,
	};

	return chips[chip];
}

static u64 *radio_value(struct radio_params *params, const struct radio_key *key)
{
	return (u64 *)((char *)params + key->offset);
}

static int radio_refuse(const char *name, const char *value, const char *why)
{
	pr_err("radio: %s=%s: %s\n", name, value, why);
	return -EINVAL;
}

static int radio_params_set(struct radio_params *params, const struct radio_key *key,
			    const char *text)
{
	u64 value;
	int index;

	if (key->names) {
		index = match_string(key->names, -1, text);
		if (index < 0)
			return radio_refuse(key->name, text, "no such word");
		*radio_value(params, key) = index;
		return 0;
	}
	if (key->offset == offsetof(struct radio_params, mcs) &&
	    !strcmp(text, "minstrel")) {
		params->mcs = RADIO_MINSTREL;
		return 0;
	}
	if (kstrtou64(text, 0, &value) || value < key->low || value > key->high) {
		pr_err("radio: %s=%s: a number from %llu to %llu\n", key->name, text,
		       key->low, key->high);
		return -EINVAL;
	}
	*radio_value(params, key) = value;
	return 0;
}

static const struct radio_key *radio_key(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(radio_keys); i++)
		if (!strcmp(radio_keys[i].name, name))
			return &radio_keys[i];
	return NULL;
}

/* Sets the defaults of a personality where @params has no value yet. */
static void radio_params_default(struct radio_params *params, u64 chip)
{
	const struct radio_params *defaults = &radio_params_chip(chip)->params;
	unsigned int i;

	*params = radio_common;
	for (i = 0; i < ARRAY_SIZE(radio_keys); i++) {
		u64 value = *radio_value((struct radio_params *)defaults, &radio_keys[i]);

		if (value)
			*radio_value(params, &radio_keys[i]) = value;
	}
	params->chip = chip;
}

/* Returns the chip that the words name. */
static int radio_params_which(const char *arguments)
{
	const char *word = strstr(arguments, "chip=");
	char name[16] = {};
	int chip;

	if (!word)
		return RADIO_ATH9K;
	word += strlen("chip=");
	strscpy(name, word, min(sizeof(name), strcspn(word, " \t") + 1));
	chip = match_string(radio_chips, -1, name);
	return chip < 0 ? radio_refuse("chip", name, "ath9k, ath9k_htc or generic") :
			  chip;
}

/* Sets one parameter from "key=value". */
static int radio_params_word(struct radio_params *params, u8 *address, char *word,
			     bool live)
{
	char *value = strchr(word, '=');
	const struct radio_key *key;

	if (!value)
		return radio_refuse(word, "", "key=value");
	*value++ = 0;
	if (!live && !strcmp(word, "addr"))
		return mac_pton(value, address) && is_valid_ether_addr(address) ?
			0 : radio_refuse(word, value, "a MAC address");
	key = radio_key(word);
	if (!key)
		return radio_refuse(word, value, "no such key");
	if (live && !key->live)
		return radio_refuse(word, value, "cannot be set any more");
	return radio_params_set(params, key, value);
}

/* Checks combinations of parameters. */
int radio_params_check(const struct radio_params *params)
{
	static const char * const tops[] = { "31", "9", "11" };
	static const u8 top[] = { 31, 9, 11 };
	struct radio_rate rate;

	if (params->band == 3 || params->band == 4)
		return radio_refuse("band", "3 or 4", "2 or 5");
	if (!is_power_of_2(params->width / 20) || params->width % 20)
		return radio_refuse("width", "this", "20, 40, 80 or 160");
	if (params->width > 40 && (params->standard == RADIO_N || params->band == 2))
		return radio_refuse("width", "80 or 160", "is for ac and ax at 5 GHz");
	if (params->standard == RADIO_AC && params->band == 2)
		return radio_refuse("standard", "ac", "is for 5 GHz");
	if (params->mcs == RADIO_MINSTREL) {
		if (params->standard == RADIO_AX)
			return radio_refuse("mcs", "minstrel", "knows no rate of ax");
		return 0;
	}
	if (params->mcs > top[params->standard])
		return radio_refuse("mcs", "beyond", tops[params->standard]);
	if (params->standard == RADIO_N && params->mcs / 8 >= params->streams)
		return radio_refuse("mcs", "this", "needs more streams");
	if (!radio_params_rate(params, &rate))
		return radio_refuse("mcs", "this", "no rate at this width and streams");
	return 0;
}

/*
 * Parses "key=value ..." into @params; addr= goes to @address. Unless @live, @params begins with
 * the defaults of the chip that the words name.
 */
int radio_params_parse(struct radio_params *params, u8 *address, char *arguments,
		       bool live)
{
	int err = 0, chip = RADIO_ATH9K;
	char *word;

	if (!live) {
		chip = radio_params_which(arguments);
		if (chip < 0)
			return chip;
		radio_params_default(params, chip);
	}
	while (!err && (word = strsep(&arguments, " \t")))
		if (*word)
			err = radio_params_word(params, address, word, live);
	if (err)
		return err;
	if (!params->streams)
		params->streams = params->standard == RADIO_N &&
				  params->mcs != RADIO_MINSTREL ?
				  min_t(u64, params->mcs / 8 + 1, 4) : 1;
	if (!params->max_subframes)
		params->max_subframes = params->standard == RADIO_AX ? RADIO_SUBFRAMES : 64;
	return radio_params_check(params);
}
