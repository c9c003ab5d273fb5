/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _HOURGLASS_PROC_H
#define _HOURGLASS_PROC_H

#include <linux/pid_namespace.h>

struct proc_dir_entry;

/* Returns whether the agent or a tool of the set-up runs, not a program of a node. */
static inline bool hourglass_is_agent(void)
{
	return task_active_pid_ns(current) == &init_pid_ns;
}

/* Returns the directory /proc/hourglass, or NULL if it cannot be created. */
struct proc_dir_entry *hourglass_proc(void);

#endif
