/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs in nodes: virtual time for those that do not sleep (program_time.c), what a CPU of their
 * node costs them (program_cpu.c), and what each used and waited for (program_account.c).
 */
#ifndef HOURGLASS_PROGRAM_TIME_H
#define HOURGLASS_PROGRAM_TIME_H

#include <linux/types.h>

struct task_struct;
struct uml_pt_regs;

/* What a task did at one instant. */
struct program_time {
	pid_t pid;		/* whose it is */
	unsigned int looks;	/* calls in a row that only looked */
	unsigned int work;	/* done since it woke or was charged, in calls */
	u64 at;			/* when it last called, or our charge ended, ns */
	u64 awake;		/* since when it has not slept by itself, ns */
	u64 looking;		/* since when it has only looked, ns */
	u64 since;		/* until when it is told what it waited for, ns */
	u64 group;		/* its control group's, when it last called */
	unsigned int app;	/* that of it; PROGRAMS: of none */
};

void program_time_enter(int call);
void program_time_leave(int call, long result);

/* How often the calling task may look without a call, and how often it did. */
unsigned int program_time_looks_left(void);
void program_time_looked(unsigned int looks);

/* Where a task has its place, which is another's if the pid there is. */
struct program_time *program_time_slot(const struct task_struct *task);

/* Whether what trapped was a read of the time stamp counter; it is carried out then. */
bool program_time_read_tsc(struct uml_pt_regs *regs);

/* A call, and the bytes it copied, on the CPU of the calling task's node: sleeps until done. */
bool program_cpu_costs(const struct program_time *p);
void program_cpu_call(const struct program_time *p);
void program_cpu_copy(const struct program_time *p, int call, long result);

/* What virtual time goes by with: calls, by their numbers, and besides */
enum {
	PROGRAM_CALLS = 1024,
	PROGRAM_CPU = PROGRAM_CALLS,	/* of its node: until it is free, and in use */
	PROGRAM_SPUN,			/* made to sleep, because it asked without sleeping */
	PROGRAM_STOPPED,		/* in no call: a signal has stopped it */
	PROGRAM_WAITS
};

#define PROGRAMS		4096

void program_account_begin(void);
void program_account_call(struct program_time *p, int call);
void program_account_looks(const struct program_time *p, unsigned int looks);

/* All the time since it was last told went by with this. */
void program_account_wait(struct program_time *p, int what);
void program_account_switch(struct task_struct *from, struct task_struct *to);

/* The host's process that runs a task's own code; 0: none. */
int program_host_pid(const struct task_struct *task);

/* CPU time that a process of the host has used, ns; 0: we. */
long long program_host_cpu_ns(int pid);

#endif
