// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual time for programs that do not sleep.
 *
 * Time stands while a task runs. A task that waits without sleeping would wait for ever, so a
 * task that makes many calls at one instant sleeps for us, alone, while all others and all other
 * nodes run on:
 *
 *	what it did since it woke, or was last charged	it then sleeps
 *	LOOKS calls in a row that only looked		an eighth of the time it has only looked
 *	WORK calls of whatever kind			a quarter of the time it has not slept
 *
 * at least 1 us, at most 1 ms and 50 ms. So whoever spins for a time T sees its end with an
 * error of at most T / 8, after some ten rounds for each factor of three in T. To look is to ask
 * for the time, for what is ready, for one's turn or about a file; and every call that fails or
 * gives nothing. A fork or exec is as much work as 2,000 calls: it takes the host that long.
 * A task whose clock moved on between two of its calls has slept by itself, and begins anew.
 *
 * A child begins with what its parent did, so that a chain of forks is no way out. What spins on
 * memory and calls nothing is not seen here.
 *
 * Around that a call costs what a CPU of its node takes, if it has one (program_cpu.c), and is
 * counted (program_account.c).
 *
 * parameter	value	why
 * LOOKS	100	nobody else looks so often; a round costs the host less than 1 ms
 * WORK		10,000	starting Python is 3,000 calls; a round costs the host some 0.1 s
 */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>
#include <sysdep/ptrace.h>
#include <kern_util.h>

#define LOOKS		100U
#define WORK		10000U
#define FORK		2000
#define LEAST_NS	NSEC_PER_USEC
#define LOOKER_NS	NSEC_PER_MSEC
#define WORKER_NS	(50 * NSEC_PER_MSEC)

/* By pid. Two tasks in one slot take it from each other, and are then charged too late. */
static struct program_time times[4096];

struct program_time *program_time_slot(const struct task_struct *task)
{
	return &times[task->pid % ARRAY_SIZE(times)];
}

/* Of the calling task, if it is a program of a node, and not the agent or a tool of the set-up. */
static struct program_time *mine(void)
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

/* It slept by itself if time went on without a charge of ours. */
static void notice_sleep(struct program_time *p)
{
	u64 now = ktime_get_ns();

	if (p->at == now)
		return;
	p->at = now;
	p->awake = now;
	p->looking = now;
	p->looks = 0;
	p->work = 0;
}

static void charge(struct program_time *p, u64 share, u64 most)
{
	ktime_t wait = clamp_t(u64, share, LEAST_NS, most);

	p->looks = 0;
	p->work = 0;
	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&wait, 0, HRTIMER_MODE_REL);
	p->at = ktime_get_ns();
}

static void enter(struct program_time *p)
{
	notice_sleep(p);
	if (p->looks >= LOOKS)
		charge(p, (p->at - p->looking) / 8, LOOKER_NS);
	else if (p->work >= WORK)
		charge(p, (p->at - p->awake) / 4, WORKER_NS);
	program_account_wait(p, PROGRAM_SPUN);
}

/* Before a call, so that the call sees what came while its task slept. */
void program_time_enter(int call)
{
	struct program_time *p = mine();

	if (!p)
		return;
	program_account_call(p, call);
	program_account_wait(p, PROGRAM_STOPPED);
	program_cpu_call(p);
	program_account_wait(p, PROGRAM_CPU);
	enter(p);
}

/* The time can be read without a call: program_clock.c. A program's first call is one. */
unsigned int program_time_looks_left(void)
{
	struct program_time *p = program_time_slot(current);

	if (time_travel_mode != TT_MODE_INFCPU)
		return 0;
	if (!task_pid(current)->level)
		return LOOKS;
	if (p->pid != current->pid || program_cpu_costs(p))
		return 0;
	notice_sleep(p);
	return min(LOOKS - min(p->looks, LOOKS), WORK - min(p->work, WORK));
}

void program_time_looked(unsigned int looks)
{
	struct program_time *p = program_time_slot(current);

	if (!task_pid(current)->level)
		return;
	p->looks += looks;
	p->work += looks;
	program_account_looks(p, looks);
}

static bool looks(int call, long result)
{
	if (IS_ERR_VALUE(result))
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
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
#ifdef __NR_epoll_pwait2
	case __NR_epoll_pwait2:
#endif
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
	struct program_time *p = mine();

	if (!p)
		return;
	program_account_wait(p, call);
	program_cpu_copy(p, call, result);
	program_account_wait(p, PROGRAM_CPU);
	notice_sleep(p);
	p->work += work_of(call);
	if (looks(call, result)) {
		p->looks++;
	} else {
		p->looks = 0;
		p->looking = p->at;
	}
}

/* rdtsc is 0f 31, rdtscp 0f 01 f9. One tick of the counter is one ns since boot. */
bool program_time_read_tsc(struct uml_pt_regs *regs)
{
	void __user *at = (void __user *)UPT_IP(regs);
	u8 code[3] = {};
	struct program_time *task = mine();
	bool p;
	u64 now;

	if (UPT_FAULTINFO(regs)->trap_no != 13 || copy_from_user(code, at, 2) || code[0] != 0x0f)
		return false;
	p = code[1] == 0x01 && !copy_from_user(code + 2, at + 2, 1) && code[2] == 0xf9;
	if (code[1] != 0x31 && !p)
		return false;
	if (task) {
		program_account_wait(task, PROGRAM_STOPPED);
		enter(task);
	}
	now = ktime_get_ns();
	regs->gp[HOST_AX] = lower_32_bits(now);
	regs->gp[HOST_DX] = upper_32_bits(now);
	if (p)
		regs->gp[HOST_CX] = 0;	/* of CPU 0 */
	regs->gp[HOST_IP] += p ? 3 : 2;
	program_time_leave(__NR_clock_gettime, 0);
	return true;
}
