/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs in nodes: virtual time for those that do not sleep (program_time.c), the costs of
 * their node's CPU (program_cpu.c), and their resources and waits (program_account.c).
 */
#ifndef HOURGLASS_PROGRAM_TIME_H
#define HOURGLASS_PROGRAM_TIME_H

#include <linux/types.h>

struct task_struct;
struct uml_pt_regs;

/* The evidence that a task polls memory. */
enum program_poll {
	PROGRAM_POLL_UNKNOWN,
	PROGRAM_POLL_SUSPECTED,		/* memory_poll.h will look */
	PROGRAM_POLL_REFUTED,
	PROGRAM_POLL_PROVEN,
};

/* The activity of a task at one instant. */
struct program_time {
	pid_t pid;		/* of the task */
	unsigned int polls;	/* polling calls in a row */
	unsigned int work;	/* calls since it woke or was charged */
	u64 at;			/* the last call, or the end of our charge, ns */
	u64 debt_ns;		/* the time of its calls that has not passed */
	u64 awake;		/* the last sleep without a charge, ns */
	u64 polling_since;		/* start of the polling, ns */
	u64 read_ns[2];		/* last reads of the clocks, CLOCK_REALTIME first; since boot */
	u64 since;		/* end of the last accounted wait, ns */
	u64 group;		/* id of its control group at the last call */
	unsigned int app;	/* number of that group's program; PROGRAMS: none */
	enum program_poll poll;
	unsigned int poll_steps;	/* instructions to step in a look */
};

void program_time_enter(int call);
void program_time_leave(int call, long result);

/* Starts the state of a new task, before it runs. */
void program_time_fork(const struct task_struct *child);

/* The number of polls that the calling task may make without a call, and that it has made. */
unsigned int program_time_polls_left(void);
void program_time_polled(unsigned int polls);

/* The reads of a clock without a call by the calling task (program_clock.c): how far the next one
 * is ahead of the kernel's time, and the number of those that it has made.
 */
bool program_time_is_program(void);
unsigned int program_time_ahead_ns(unsigned int clock);
void program_time_was_read(unsigned int clock, unsigned int reads);

/* Judges a task that has made no call for long: called when its process gets SIGALRM. */
void program_time_preempt(void);

/* Returns the instructions within which memory_poll.h looks for a poll of memory; 0: not at all. */
unsigned int program_poll_steps(void);

/* Takes the result, the period of the loop or 0. Returns whether the process needs SIGALRM. */
int program_poll_looked(unsigned int period);

/* Returns a hash of the memory that the calling task can write (program_memory.c). */
unsigned long long program_memory(void);

/* Returns the slot of a task, which may hold another pid. */
struct program_time *program_time_slot(const struct task_struct *task);

/* Executes a trapped read of the time stamp counter. Returns false for any other trap. */
bool program_time_read_tsc(struct uml_pt_regs *regs);

/* Books a call, and the bytes that it copied, on the CPU of the calling task's node. Sleeps until
 * the CPU has completed it.
 */
bool program_cpu_costs(const struct program_time *p);
void program_cpu_call(const struct program_time *p);
void program_cpu_copy(const struct program_time *p, int call, long result);

/* Causes of virtual time: calls by their numbers, and these: */
enum {
	PROGRAM_CALLS = 1024,
	PROGRAM_CPU = PROGRAM_CALLS,	/* its node's CPU: waiting for it, and using it */
	PROGRAM_SPUN,			/* put to sleep for spinning */
	PROGRAM_STOPPED,		/* outside of calls: stopped by a signal */
	PROGRAM_WAITS
};

#define PROGRAMS		4096

void program_account_begin(void);
void program_account_call(struct program_time *p, int call);
void program_account_polls(const struct program_time *p, unsigned int polls);

/* Books the time since the last booking on a cause. */
void program_account_wait(struct program_time *p, int cause);
void program_account_switch(struct task_struct *from, struct task_struct *to);

/* Returns the pid of the host's process that runs a task's own code; 0: none. */
int program_host_pid(const struct task_struct *task);

/* Returns the CPU time of a process of the host, in ns; 0: of the guest kernel. */
long long program_host_cpu_ns(int pid);

#endif
