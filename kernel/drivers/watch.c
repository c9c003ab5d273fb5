// SPDX-License-Identifier: GPL-2.0-only
/*
 * watch: where things are, for who looks into the guest's memory from outside.
 *
 * A watchdog on the host (src/hourglass/engine/inside.py) reads virtual time and
 * the running program from the memory of a guest that seems to stand still. The
 * symbol table tells it where variables are, but not where fields are: that
 * stands here, as offsets in bytes, in the order of `FIELDS` there. Nothing is
 * executed.
 */
#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/utsname.h>
#include <as-layout.h>
#include <sysdep/ptrace.h>
#include "compat.h"

static const u32 hourglass_watch[] __used = {
	CPU_TASKS_CURRENT,
	offsetof(struct task_struct, comm),
	offsetof(struct task_struct, tgid),
	offsetof(struct task_struct, thread.regs.regs.gp[HOST_IP]),
	offsetof(struct task_struct, thread.regs.regs.syscall),
	offsetof(struct task_struct, mm),
	offsetof(struct mm_struct, context), /* begins with the process of the host */
	offsetof(struct mm_struct, arg_start),
	offsetof(struct mm_struct, arg_end),
	offsetof(struct task_struct, nsproxy),
	offsetof(struct nsproxy, uts_ns),
	offsetof(struct uts_namespace, name.nodename),
};
