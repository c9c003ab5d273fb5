// SPDX-License-Identifier: GPL-2.0-only
/*
 * Floating-point registers are read from the host's process when they are needed.
 *
 * reason of a stop	its floating-point registers
 * a system call		stay in the process; they are read before a signal is delivered (its
 *			frame, a core dump, a debugger), and before another task of the same
 *			memory may run in that process
 * one of COPYING		are read at once, for the new task or the old one
 * a fault, a signal	are read at once, since its handler in the process changes them
 *
 * While the read is deferred, no other task runs in the process: either its memory has no other
 * user, or the registers are read when the CPU switches. A flag of the task marks the deferred
 * read.
 */
#include <linux/kernel.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/thread_info.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>
#include <hourglass_float_registers.h>

#define TIF_FLOATS_DEFERRED		30	/* a bit that User Mode Linux does not use */

int float_registers_defer(long call)
{
	if (current->ptrace)
		return false;
	switch ((int)call) {
	case __NR_fork:		/* COPYING */
	case __NR_vfork:
	case __NR_clone:
	case __NR_clone3:
	case __NR_execve:
	case __NR_execveat:
	case __NR_rt_sigreturn:
		return false;
	default:
		set_thread_flag(TIF_FLOATS_DEFERRED);
		return true;
	}
}

int float_registers_are_current(void)
{
	return test_and_clear_thread_flag(TIF_FLOATS_DEFERRED);
}

void float_registers_read(struct task_struct *task)
{
	/* the process may have ended; the next user of its registers is informed */
	if (test_and_clear_tsk_thread_flag(task, TIF_FLOATS_DEFERRED))
		floats_read(program_host_pid(task), task->thread.regs.regs.fp);
}

void float_registers_switch(struct task_struct *task)
{
	if (task->mm && atomic_read(&task->mm->mm_users) > 1)
		float_registers_read(task);
}
