// SPDX-License-Identifier: GPL-2.0-only
/*
 * watch: offsets of fields, for a reader of the guest's memory.
 *
 * A watchdog on the host (src/hourglass/engine/guest_memory.py) reads virtual time and the
 * running program from the memory of a guest that seems to hang. The symbol table contains the
 * addresses of variables but no offsets of fields. This file exports these offsets, in bytes and
 * in the order of `FIELDS` there. Nothing here is executed.
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
	offsetof(struct mm_struct, context), /* begins with the pid of the process on the host */
	offsetof(struct mm_struct, arg_start),
	offsetof(struct mm_struct, arg_end),
	offsetof(struct task_struct, nsproxy),
	offsetof(struct nsproxy, uts_ns),
	offsetof(struct uts_namespace, name.nodename),
};
