// SPDX-License-Identifier: GPL-2.0-only
/*
 * pace: virtual time no faster than the wall clock, for interactive use.
 *
 * With hourglass.pace=1 on the command line, the guest stops every few ms of virtual time. It
 * continues when the host's clock has reached the same time, or when a device of the host has
 * input. A guest that was slower does not catch up.
 */
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <os.h>
#include <linux/time-internal.h>
#include "pace_user.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "hourglass."

#define PACE_STEP_NS 5000000LL
#define PACE_LATE_NS 50000000LL

static int pace;
module_param(pace, int, 0);

static struct time_travel_event pace_event;
static long long pace_offset; /* the host's clock minus the guest's */

static void pace_step(struct time_travel_event *event)
{
	long long ahead = pace_offset + (long long)ktime_get_ns() - os_nsecs();

	if (ahead > 0)
		pace_sleep(ahead);
	else if (ahead < -PACE_LATE_NS)
		pace_offset -= ahead;
	hourglass_event_set(&pace_event, PACE_STEP_NS);
}

static int __init pace_init(void)
{
	if (!pace)
		return 0;
	pace_offset = os_nsecs() - (long long)ktime_get_ns();
	time_travel_set_event_fn(&pace_event, pace_step);
	hourglass_event_set(&pace_event, PACE_STEP_NS);
	return 0;
}
late_initcall(pace_init);
