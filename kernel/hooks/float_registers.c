// SPDX-License-Identifier: GPL-2.0-only
/*
 * Floating-point registers are read from the host's process when somebody wants to know them.
 *
 *	stop of a process	its floating-point registers
 *	a system call		stay there; are read before a signal is looked for (its frame, a
 *				core dump, a debugger), and where another task of the same memory
 *				may come to run in that process
 *	one of COPYING		are read at once, for the new task's or the old one's sake
 *	a fault, a signal	are read at once, since what handles a fault there changes them
 *
 * While they wait, nobody but their task runs in the process: its memory has no other user, or
 * they had been read when the CPU went on. A flag of the task says that they wait.
 */
#include <linux/kernel.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/thread_info.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>
#include <hourglass_float_registers.h>

#define TIF_FLOATS_WAIT		30	/* a number that User Mode Linux has no flag for */

int float_registers_put_off(long call)
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
		set_thread_flag(TIF_FLOATS_WAIT);
		return true;
	}
}

int float_registers_are_there(void)
{
	return test_and_clear_thread_flag(TIF_FLOATS_WAIT);
}

void float_registers_read(struct task_struct *task)
{
	/* of a process that is no more there is nothing to read; who would go on in it is told */
	if (test_and_clear_tsk_thread_flag(task, TIF_FLOATS_WAIT))
		floats_read(program_host_pid(task), task->thread.regs.regs.fp);
}

void float_registers_leave(struct task_struct *task)
{
	if (task->mm && atomic_read(&task->mm->mm_users) > 1)
		float_registers_read(task);
}
