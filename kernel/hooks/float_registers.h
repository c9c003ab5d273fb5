/* SPDX-License-Identifier: GPL-2.0-only */
/* Deferred reads of floating-point registers: float_registers.c. float-registers.toml has the
 * host's side.
 */
#ifndef HOURGLASS_FLOAT_REGISTERS_H
#define HOURGLASS_FLOAT_REGISTERS_H

struct task_struct;

/* Defers the read if the current task can make @call without it. Returns whether it did. */
int float_registers_defer(long call);

/* Returns whether the read was deferred, so the process still has the current values. */
int float_registers_are_current(void);

/* Reads the registers of a task if that was deferred. */
void float_registers_read(struct task_struct *task);

/* The same, before the CPU switches to another task that may run in the same process. */
void float_registers_switch(struct task_struct *task);

/* Reads the registers of a process of the host. */
int floats_read(int pid, unsigned long *regs);

#endif
