/* SPDX-License-Identifier: GPL-2.0-only */
/* Random numbers from a seed, and the error model; see radio_errors.c. */
#ifndef _RADIO_ERRORS_H
#define _RADIO_ERRORS_H

#include <linux/types.h>
#include "radio_duration.h"

#define RADIO_PPM	1000000U

/* A sequence of uniform bits. */
struct radio_random {
	u64 seed, count;
};

u32 radio_random_next(struct radio_random *random);

/* Returns the loss probability, in 10^-6, of an MPDU of @bytes at @snr_cdb (1/100 dB). */
u32 radio_error_ppm(const struct radio_rate *rate, s32 snr_cdb, u32 bytes);

#endif
