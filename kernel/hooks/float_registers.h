/* SPDX-License-Identifier: GPL-2.0-only */
/* Floating-point registers of processes, read late: float_registers.c; float-registers.toml has
 * the host's side.
 */
#ifndef HOURGLASS_FLOAT_REGISTERS_H
#define HOURGLASS_FLOAT_REGISTERS_H

struct task_struct;

/* Whether a call of the current task can do without them: then they are still to be read. */
int float_registers_put_off(long call);

/* Whether they still were, so that the process has them as they are to be. */
int float_registers_are_there(void);

/* Reads those of a task now, if that was put off. */
void float_registers_read(struct task_struct *task);

/* The same where the CPU goes to another task, if that may run in the same process. */
void float_registers_leave(struct task_struct *task);

/* Reads those of a process of the host. */
int floats_read(int pid, unsigned long *regs);

#endif
