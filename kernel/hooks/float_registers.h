/* SPDX-License-Identifier: GPL-2.0-only */
/* Floating-point registers of processes, read late: float_registers.c; float-registers.toml has
 * the host's side.
 */
#ifndef HOURGLASS_FLOAT_REGISTERS_H
#define HOURGLASS_FLOAT_REGISTERS_H

struct task_struct;

/* Whether a call of the current task can do without them. */
int float_registers_can_wait(long call);

/* Reads them now, if that was put off. */
void float_registers_read(const struct task_struct *task);

/* The same where the CPU goes to another task, if that may run in the same process. */
void float_registers_leave(const struct task_struct *task);

/* The same, of the host's process, to where they belong. */
void floats_read(int pid, unsigned long *regs);

#endif
