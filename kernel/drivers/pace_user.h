/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _HOURGLASS_PACE_USER_H
#define _HOURGLASS_PACE_USER_H

/* Sleeps on the host; a signal, as of a device that has become readable, ends it early. */
void pace_sleep(long long ns);

#endif
