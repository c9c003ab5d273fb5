/* SPDX-License-Identifier: GPL-2.0-only */
/* The duration of 802.11 PPDUs; see radio_duration.c. */
#ifndef _RADIO_DURATION_H
#define _RADIO_DURATION_H

#include <linux/types.h>

#define RADIO_SIFS_NS		16000
#define RADIO_SLOT_NS		9000
#define RADIO_PHY_START_NS	20000	/* aRxPHYStartDelay: until a receiver detects a PPDU */

/* Lengths of control frames in bytes, FCS included. */
#define RADIO_ACK	14
#define RADIO_CTS	14
#define RADIO_RTS	20
#define RADIO_BA	32		/* compressed, 64 frames */
#define RADIO_BA_256	56

#define RADIO_DELIMITER	4
#define RADIO_FCS	4

/* Modes up to RADIO_LEGACY have no aggregates. */
enum radio_mode { RADIO_DSSS, RADIO_LEGACY, RADIO_HT, RADIO_VHT, RADIO_HE };

struct radio_rate {
	u8 mode;	/* enum radio_mode */
	u8 mcs;		/* of one stream: HT 0-7, VHT 0-9, HE 0-11; legacy: 0-7 for 6-54 Mbit/s;
			 * DSSS: 0-3 for 1, 2, 5.5, 11
			 */
	u8 streams;	/* 1-4 */
	u8 width;	/* 20 MHz << width */
	u8 gi;		/* HT, VHT: 1 short; HE: 0, 1, 2 for 0.8, 1.6, 3.2 us */
};

/* Returns the data bits of an OFDM symbol, or of 2 us of DSSS; 0 if no such rate exists. */
u32 radio_bits_per_symbol(const struct radio_rate *rate);

/* Returns the duration of a PPDU with a PSDU of @bytes. */
u64 radio_ppdu_ns(const struct radio_rate *rate, u32 bytes);

/* Returns the time from the first bit of a PPDU to the last bit of the first @bytes of its PSDU,
 * which is longer.
 */
u64 radio_part_ns(const struct radio_rate *rate, u32 bytes);

/* Returns the largest PSDU whose PPDU lasts at most @ns. */
u32 radio_ppdu_bytes(const struct radio_rate *rate, u64 ns);

/* Returns the rate of control frames in an exchange at @rate. */
struct radio_rate radio_control_rate(const struct radio_rate *rate);

/* Returns the duration of a control frame of @bytes in an exchange at @rate. */
u64 radio_control_ns(const struct radio_rate *rate, u32 bytes);

/*
 * Returns the length of an MPDU of @mpdu bytes as a subframe before another one: a delimiter,
 * further delimiters up to @least bytes and @density_us, then padding.
 */
u32 radio_subframe_bytes(const struct radio_rate *rate, u32 mpdu, u32 least,
			 u32 density_us);

/* Returns the rate in units of 100 kbit/s. */
u32 radio_rate_100k(const struct radio_rate *rate);

#endif
