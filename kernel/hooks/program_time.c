// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual time for programs that do not sleep.
 *
 * Time does not advance while a task runs. So a task that waits without sleeping would wait
 * forever. A task that makes many calls at one instant is therefore put to sleep, while all
 * other tasks and nodes continue:
 *
 *	it has made					it then sleeps
 *	POLLS polling calls in a row			an eighth of the time of polling
 *	WORK calls since it woke, or was last charged	a quarter of the time without sleep
 *	more calls than time for them, by BURST	the same, at least 1 ms
 *
 * A sleep lasts at least 1 us. The limit of the first rule is 1 ms, that of the others 10 ms. So
 * a program that spins for a time T sees its end with an error of at most T / 8, after about ten
 * rounds for each factor of three in T.
 *
 * By the third rule a task makes at most BURST calls, and one more for each 100 ns of its life,
 * whatever calls it makes. Each call adds 100 ns to its debt, and time that passes pays it. A
 * child has the debt of its parent, so a chain of forks is charged too.
 *
 * Polling calls are those for the time, for readiness, for yielding or about a file, and every
 * call that fails or returns nothing. Calls that only change state of the caller (its signal mask,
 * a timer, an epoll set) do not interrupt a row of polling calls: event loops make them in each
 * round. Once a task was charged in a row, a call for readiness that returns nothing counts as
 * WAIT, because the task waits for an event. A fork or exec that succeeds counts as FORK calls, by
 * its cost for the host. A trapped read of the time stamp counter counts as a polling call. If the
 * clock advanced between two calls of a task, the task slept, and its counts restart. A child
 * starts with the counts of its parent.
 *
 * A program that polls memory makes no calls. The host's watchdog sends SIGALRM to its process
 * (src/hourglass/engine/watchdog.py) after seconds of the host's CPU time. The process is then
 * stepped for a while (memory_poll.h). If that proves that it polls, it sleeps like a program with
 * polling calls, always at the same instruction of its loop. So nothing depends on the host. After
 * the sleep it is stepped again. Otherwise the program computes, or it counts its rounds. If others
 * are ready to run, it sleeps for 1 ns, so that they run; another run may then differ.
 *
 * A read of a clock that the task has already read at this instant takes 1 ns (program_clock.c).
 *
 * On a node whose CPU takes time for each call (program_cpu.c), calls are not counted here: that
 * time passes instead. Each call is booked (program_account.c).
 *
 * parameter	value	why
 * POLLS	100	other programs poll less often; a round costs the host less than 1 ms
 * WORK		10,000	starting Python takes 3,000 calls; a round costs the host about 0.1 s
 * BURST	100,000	databases start with more than 20,000; these cost the host about 1 s
 * CALL_NS	100	the fastest calls of a machine take as long
 * FORK		2,000	calls that cost the host as much
 * WAIT		25	the waits of event loops for 1 ms cost a tenth; four rounds for each sleep
 * STEPS	32,768	a look takes the host 0.2 s; it proves loops of a third of that
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/threads.h>
#include <linux/timekeeping.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <asm/hourglass_program_time.h>
#include <sysdep/ptrace.h>
#include <kern_util.h>
#include "hourglass_program_calls.h"

#define POLLS		100U
#define WAIT		25U
#define WORK		10000U
#define FORK		2000U
#define CALL_NS		100U
#define BURST_NS	(100000 * CALL_NS)
#define STEPS		32768U
#define LEAST_NS	NSEC_PER_USEC
#define POLLER_NS	NSEC_PER_MSEC
#define WORKER_NS	(10 * NSEC_PER_MSEC)
#define DEBTOR_NS	NSEC_PER_MSEC

/* Indexed by pid. Pids are below its length: the kernel's default for their limit. */
static struct program_time times[PID_MAX_DEFAULT];

struct program_time *program_time_slot(const struct task_struct *task)
{
	return &times[task->pid % ARRAY_SIZE(times)];
}

/* Returns the calling task's state if it is a program of a node, not the agent or a set-up tool. */
static struct program_time *caller_state(void)
{
	struct program_time *p = program_time_slot(current);

	if (time_travel_mode != TT_MODE_INFCPU || !task_pid(current)->level)
		return NULL;
	if (p->pid == current->pid)
		return p;
	*p = (struct program_time){ .pid = current->pid, .app = PROGRAMS };
	p->since = ktime_get_ns();
	program_account_begin();
	return p;
}

static void count_calls(struct program_time *p, unsigned int calls)
{
	p->work += calls;
	p->debt_ns += (u64)calls * CALL_NS;
}

/* Gives a child the state of its parent, if that is a program. The call itself counts later. */
void program_time_fork(const struct task_struct *child)
{
	struct program_time *p = program_time_slot(current), *inherited = program_time_slot(child);

	inherited->pid = 0;
	if (!current->pid || p->pid != current->pid)
		return;
	if (!program_cpu_costs(p))
		count_calls(p, FORK - 1);
	*inherited = *p;
	inherited->pid = child->pid;
	inherited->since = ktime_get_ns();
	inherited->poll = PROGRAM_POLL_UNKNOWN;
}

/* Returns the time that passed since the last call or charge. It pays for calls. */
static u64 advance(struct program_time *p)
{
	u64 now = ktime_get_ns(), passed = now - p->at;

	p->debt_ns -= min(p->debt_ns, passed);
	p->at = now;
	return passed;
}

/* Detects a sleep of the task: time advanced without a charge. A sleep of 0 s until a time that was
 * just read lasts some ns, and a program may poll with it.
 */
static void notice_sleep(struct program_time *p)
{
	if (advance(p) < LEAST_NS)
		return;
	p->awake = p->at;
	p->polling_since = p->at;
	p->polls = 0;
	p->work = 0;
}

static void sleep_until(u64 ns)
{
	ktime_t end = ns_to_ktime(ns);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&end, 0, HRTIMER_MODE_ABS);
}

bool program_time_is_program(void)
{
	return task_pid(current)->level;
}

unsigned int program_time_ahead_ns(unsigned int clock)
{
	const struct program_time *p = program_time_slot(current);
	u64 now = ktime_get_ns();

	return p->read_ns[clock] < now ? 0 : p->read_ns[clock] - now + 1;
}

void program_time_was_read(unsigned int clock, unsigned int reads)
{
	if (reads)
		program_time_slot(current)->read_ns[clock] =
			ktime_get_ns() + program_time_ahead_ns(clock) + reads - 1;
}

/* Lets the kernel's time reach the times that the task has read, and pass them for a new read. */
static void catch_up(struct program_time *p, int call)
{
	u64 ns = max(p->read_ns[CLOCK_REALTIME], p->read_ns[CLOCK_MONOTONIC]) + reads_clock(call);

	if (ns <= p->at)
		return;
	sleep_until(ns);
	advance(p);
}

static void charge(struct program_time *p, u64 least, u64 share, u64 most)
{
	p->polls = 0;
	p->work = 0;
	sleep_until(ktime_get_ns() + clamp(share, least, most));
	advance(p);
}

static void enter(struct program_time *p, int call)
{
	notice_sleep(p);
	catch_up(p, call);
	if (p->debt_ns >= BURST_NS)
		charge(p, DEBTOR_NS, (p->at - p->awake) / 4, WORKER_NS);
	else if (p->polls >= POLLS)
		charge(p, LEAST_NS, (p->at - p->polling_since) / 8, POLLER_NS);
	else if (p->work >= WORK)
		charge(p, LEAST_NS, (p->at - p->awake) / 4, WORKER_NS);
	program_account_wait(p, PROGRAM_SPUN);
}

/* Runs before a call, so that the call sees events of the task's sleep. */
void program_time_enter(int call)
{
	struct program_time *p = caller_state();

	if (!p)
		return;
	program_account_call(p, call);
	program_account_wait(p, PROGRAM_STOPPED);
	program_cpu_call(p);
	program_account_wait(p, PROGRAM_CPU);
	enter(p, call);
}

/* Returns the allowed clock reads without a call (program_clock.c). A program's first read is a
 * call.
 */
unsigned int program_time_polls_left(void)
{
	struct program_time *p = program_time_slot(current);

	if (time_travel_mode != TT_MODE_INFCPU)
		return 0;
	if (!task_pid(current)->level)
		return POLLS;
	if (p->pid != current->pid || program_cpu_costs(p))
		return 0;
	notice_sleep(p);
	return min(POLLS - min(p->polls, POLLS), WORK - min(p->work, WORK));
}

void program_time_polled(unsigned int polls)
{
	struct program_time *p = program_time_slot(current);

	if (!task_pid(current)->level)
		return;
	p->polls += polls;
	p->work += polls;
	program_account_polls(p, polls);
}

static void let_others_run(struct program_time *p)
{
	if (nr_running() == 1)
		return;
	pr_warn("hourglass: %s, pid %d on %s, computed or polled memory for long while others waited, and slept for 1 ns; if it computes, another run may differ\n",
		current->comm, task_tgid_nr(current), utsname()->nodename);
	sleep_until(p->at + 1);
	advance(p);
}

void program_time_preempt(void)
{
	struct program_time *p = caller_state();
	enum program_poll poll;

	if (!p)
		return;
	poll = p->poll;
	p->poll = PROGRAM_POLL_UNKNOWN;
	if (poll == PROGRAM_POLL_UNKNOWN && !current->ptrace) {
		p->poll = PROGRAM_POLL_SUSPECTED;
		p->poll_steps = STEPS;
		return;
	}
	program_account_wait(p, PROGRAM_STOPPED);
	notice_sleep(p);
	catch_up(p, -1);
	if (poll == PROGRAM_POLL_PROVEN) {
		charge(p, LEAST_NS, (p->at - p->polling_since) / 8, POLLER_NS);
		p->poll = PROGRAM_POLL_SUSPECTED;
	} else {
		let_others_run(p);
	}
	program_account_wait(p, PROGRAM_SPUN);
}

unsigned int program_poll_steps(void)
{
	const struct program_time *p = program_time_slot(current);

	return p->pid == current->pid && p->poll == PROGRAM_POLL_SUSPECTED ? p->poll_steps : 0;
}

int program_poll_looked(unsigned int period)
{
	struct program_time *p = program_time_slot(current);
	bool again = p->poll_steps != STEPS;

	if (!period && again) {
		p->poll = PROGRAM_POLL_UNKNOWN;
		return false;
	}
	p->poll = period ? PROGRAM_POLL_PROVEN : PROGRAM_POLL_REFUTED;
	p->poll_steps = 4 * period;
	return true;
}

static void count(struct program_time *p, int call, long result)
{
	count_calls(p, is_exec(call) && !IS_ERR_VALUE(result) ? FORK : 1);
	if (is_poll(call, result)) {
		bool charged = p->at - p->polling_since >= LEAST_NS;

		p->polls += charged && !result && asks_for_readiness(call) ? WAIT : 1;
	} else if (!is_private(call)) {
		p->polls = 0;
		p->polling_since = p->at;
	}
}

static void read_clocks(struct program_time *p)
{
	p->read_ns[CLOCK_REALTIME] = p->at;
	p->read_ns[CLOCK_MONOTONIC] = p->at;
}

void program_time_leave(int call, long result)
{
	struct program_time *p = caller_state();

	if (!p)
		return;
	program_account_wait(p, call);
	program_cpu_copy(p, call, result);
	program_account_wait(p, PROGRAM_CPU);
	notice_sleep(p);
	if (reads_clock(call))
		read_clocks(p);
	if (!program_cpu_costs(p))
		count(p, call, result);
}

/* rdtsc is 0f 31, rdtscp 0f 01 f9. One tick of the counter is one ns since boot. */
bool program_time_read_tsc(struct uml_pt_regs *regs)
{
	void __user *at = (void __user *)UPT_IP(regs);
	u8 code[3] = {};
	struct program_time *task = caller_state();
	bool p;
	u64 now;

	if (UPT_FAULTINFO(regs)->trap_no != 13 || copy_from_user(code, at, 2) || code[0] != 0x0f)
		return false;
	p = code[1] == 0x01 && !copy_from_user(code + 2, at + 2, 1) && code[2] == 0xf9;
	if (code[1] != 0x31 && !p)
		return false;
	if (task) {
		program_account_wait(task, PROGRAM_STOPPED);
		enter(task, __NR_clock_gettime);
	}
	now = ktime_get_ns();
	regs->gp[HOST_AX] = lower_32_bits(now);
	regs->gp[HOST_DX] = upper_32_bits(now);
	if (p)
		regs->gp[HOST_CX] = 0;	/* number of CPU 0 */
	regs->gp[HOST_IP] += p ? 3 : 2;
	if (task) {
		read_clocks(task);
		if (!program_cpu_costs(task))
			count_calls(task, 1);	/* it costs the host as much */
		task->polls++;
	}
	return true;
}
