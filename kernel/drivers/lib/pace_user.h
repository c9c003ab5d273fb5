/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _HOURGLASS_PACE_USER_H
#define _HOURGLASS_PACE_USER_H

/* Sleeps on the host. A signal ends the sleep early, for example that of a readable device. */
void pace_sleep(long long ns);

#endif
