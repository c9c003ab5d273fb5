// SPDX-License-Identifier: GPL-2.0-only
/* The part of pace.c that runs with the host's C library. */
#include <time.h>
#include "pace_user.h"

void pace_sleep(long long ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&left, NULL);
}
