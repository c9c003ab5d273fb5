// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual time for programs that do not sleep.
 *
 * Time does not advance while a task runs. So a task that waits without sleeping would wait
 * forever. A task that makes many calls at one instant is therefore put to sleep, while all
 * other tasks and nodes continue:
 *
 *	calls since it woke, or was last charged	it then sleeps
 *	POLLS polling calls in a row			an eighth of the time of polling
 *	WORK calls of any kind				a quarter of the time without sleep
 *
 * A sleep lasts at least 1 us. The limit of the first rule is 1 ms, that of the second 50 ms. So
 * a program that spins for a time T sees its end with an error of at most T / 8, after about ten
 * rounds for each factor of three in T. Polling calls are those for the time, for readiness, for
 * yielding or about a file, and every call that fails or returns nothing. Calls that only change
 * state of the caller (its signal mask, a timer, an epoll set) do not interrupt a row of polling
 * calls: event loops make them in each round. Once a task was charged in a row, a call for
 * readiness that returns nothing counts as WAIT, because the task waits for an event. A fork or
 * exec counts as 2,000 calls, by its cost for the host.
 * If the clock advanced between two calls of a task, the task slept, and its counts restart. A
 * child starts with the counts of its parent, so a chain of forks is charged too.
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
 * In addition a call takes the time of its node's CPU, if that has one (program_cpu.c), and is
 * counted (program_account.c).
 *
 * parameter	value	why
 * POLLS	100	other programs poll less often; a round costs the host less than 1 ms
 * WORK		10,000	starting Python takes 3,000 calls; a round costs the host about 0.1 s
 * WAIT		25	the waits of event loops for 1 ms cost a tenth; four rounds for each sleep
 * STEPS	32,768	a look takes the host 0.2 s; it proves loops of a third of that
 */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/timekeeping.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>
#include <sysdep/ptrace.h>
#include <kern_util.h>

#define POLLS		100U
#define WAIT		25U
#define WORK		10000U
#define FORK		2000
#define STEPS		32768U
#define LEAST_NS	NSEC_PER_USEC
#define POLLER_NS	NSEC_PER_MSEC
#define WORKER_NS	(50 * NSEC_PER_MSEC)

/* Indexed by pid. Tasks that share a slot replace each other's state and are charged late. */
static struct program_time times[4096];

struct program_time *program_time_slot(const struct task_struct *task)
{
	return &times[task->pid % ARRAY_SIZE(times)];
}

/* Returns the calling task's state if it is a program of a node, not the agent or a set-up tool. */
static struct program_time *caller_state(void)
{
	struct program_time *p = program_time_slot(current), *parents;
	const struct task_struct *parent;

	if (time_travel_mode != TT_MODE_INFCPU || !task_pid(current)->level)
		return NULL;
	if (p->pid == current->pid)
		return p;
	rcu_read_lock();
	parent = rcu_dereference(current->real_parent);
	parents = program_time_slot(parent);
	if (parents->pid == parent->pid)
		*p = *parents;
	else
		*p = (struct program_time){ .app = PROGRAMS };
	rcu_read_unlock();
	p->pid = current->pid;
	p->since = ktime_get_ns();
	program_account_begin();
	return p;
}

/* Detects a sleep of the task: time advanced without a charge. A sleep of 0 s until a time that was
 * just read lasts some ns, and a program may poll with it.
 */
static void notice_sleep(struct program_time *p)
{
	u64 now = ktime_get_ns();
	bool slept = now - p->at >= LEAST_NS;

	p->at = now;
	if (!slept)
		return;
	p->awake = now;
	p->polling_since = now;
	p->polls = 0;
	p->work = 0;
}

static void sleep_until(u64 ns)
{
	ktime_t end = ns_to_ktime(ns);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&end, 0, HRTIMER_MODE_ABS);
}

static bool reads_clock(int call)
{
	switch (call) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
		return true;
	default:
		return false;
	}
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
	p->at = ktime_get_ns();
}

static void charge(struct program_time *p, u64 share, u64 most)
{
	p->polls = 0;
	p->work = 0;
	sleep_until(ktime_get_ns() + clamp_t(u64, share, LEAST_NS, most));
	p->at = ktime_get_ns();
}

static void enter(struct program_time *p, int call)
{
	notice_sleep(p);
	catch_up(p, call);
	if (p->polls >= POLLS)
		charge(p, (p->at - p->polling_since) / 8, POLLER_NS);
	else if (p->work >= WORK)
		charge(p, (p->at - p->awake) / 4, WORKER_NS);
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
	p->at = ktime_get_ns();
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
		charge(p, (p->at - p->polling_since) / 8, POLLER_NS);
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

static bool asks_for_readiness(int call)
{
	switch (call) {
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
#ifdef __NR_epoll_pwait2
	case __NR_epoll_pwait2:
#endif
		return true;
	default:
		return false;
	}
}

static bool is_poll(int call, long result)
{
	if (IS_ERR_VALUE(result) || asks_for_readiness(call))
		return true;
	switch (call) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_time:
	case __NR_times:
	case __NR_getrusage:
	case __NR_sysinfo:
	case __NR_sched_yield:
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_io_getevents:
	case __NR_futex:
	case __NR_wait4:
	case __NR_waitid:
	case __NR_kill:
	case __NR_getpid:
	case __NR_gettid:
	case __NR_getppid:
	case __NR_getcpu:
	case __NR_getsockopt:
	case __NR_ioctl:
	case __NR_stat:
	case __NR_lstat:
	case __NR_fstat:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_access:
		return true;
	case __NR_read:
	case __NR_pread64:
	case __NR_recvfrom:
	case __NR_recvmsg:
		return result == 0;
	default:
		return false;
	}
}

/* Returns whether a call changes nothing that others see, and moves no bytes. */
static bool is_private(int call)
{
	switch (call) {
	case __NR_rt_sigaction:
	case __NR_rt_sigpending:
	case __NR_rt_sigprocmask:
	case __NR_rt_sigreturn:
	case __NR_sigaltstack:
	case __NR_alarm:
	case __NR_getitimer:
	case __NR_setitimer:
	case __NR_timer_gettime:
	case __NR_timer_settime:
	case __NR_timerfd_gettime:
	case __NR_timerfd_settime:
	case __NR_epoll_ctl:
	case __NR_fcntl:
	case __NR_lseek:
	case __NR_getpeername:
	case __NR_getsockname:
	case __NR_setsockopt:
	case __NR_capget:
	case __NR_getcwd:
	case __NR_getegid:
	case __NR_geteuid:
	case __NR_getgid:
	case __NR_getgroups:
	case __NR_getpgid:
	case __NR_getpgrp:
	case __NR_getpriority:
	case __NR_getresgid:
	case __NR_getresuid:
	case __NR_getrlimit:
	case __NR_getsid:
	case __NR_getuid:
	case __NR_prlimit64:
	case __NR_umask:
	case __NR_uname:
	case __NR_arch_prctl:
	case __NR_prctl:
	case __NR_clock_getres:
	case __NR_sched_getaffinity:
	case __NR_sched_getparam:
	case __NR_sched_getscheduler:
	case __NR_madvise:
	case __NR_membarrier:
	case __NR_rseq:
	case __NR_set_robust_list:
		return true;
	default:
		return false;
	}
}

static unsigned int work_of(int call)
{
	switch (call) {
	case __NR_fork:
	case __NR_vfork:
	case __NR_clone:
	case __NR_clone3:
	case __NR_execve:
	case __NR_execveat:
		return FORK;
	default:
		return 1;
	}
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
	p->work += work_of(call);
	if (reads_clock(call)) {
		p->read_ns[CLOCK_REALTIME] = p->at;
		p->read_ns[CLOCK_MONOTONIC] = p->at;
	}
	if (is_poll(call, result)) {
		bool charged = p->at - p->polling_since >= LEAST_NS;

		p->polls += charged && !result && asks_for_readiness(call) ? WAIT : 1;
	} else if (!is_private(call)) {
		p->polls = 0;
		p->polling_since = p->at;
	}
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
	program_time_leave(__NR_clock_gettime, 0);
	return true;
}
