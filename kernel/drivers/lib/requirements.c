// SPDX-License-Identifier: GPL-2.0-only
/*
 * The properties of User Mode Linux that hooks and drivers rely on. Another configuration does
 * not compile, and a guest in another mode does not boot:
 *
 *	one CPU		virtual time excludes SMP; the drivers have no locks
 *	PREEMPT_NONE	other models check for runnable tasks at more points
 *	ptrace		the hooks for system calls and registers have no code for seccomp mode
 */
#include <linux/build_bug.h>
#include <linux/init.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>
#include <skas.h>
#include "compat.h"

static_assert(!IS_ENABLED(CONFIG_SMP), "Hourglass needs a kernel without CONFIG_SMP");
static_assert(IS_ENABLED(CONFIG_PREEMPT_NONE), "Hourglass needs CONFIG_PREEMPT_NONE");

static int __init check_seccomp_mode(void)
{
	if (using_seccomp)
		panic("Hourglass needs ptrace instead of seccomp mode: boot with seccomp=off");
	return 0;
}
early_initcall(check_seccomp_mode);
