// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each program used and waited for, of all its tasks together, /proc/hourglass/programs:
 *
 *	N calls NUMBER		system calls, and readings of a clock without one
 *	N host NS		time of the host's CPU
 *	N call CALL NS		virtual time in that system call, by its number
 *	N cpu NS		virtual time until its node's CPU was free, and on it
 *	N spun NS		virtual time that it was made to sleep, as it asked without end
 *	N stopped NS		virtual time in no call: a signal had stopped it
 *
 * N is of its control group, which the agent names app-N. Virtual times of 0 are left out; they
 * are together the lives of all its tasks.
 *
 * The host's CPU time is that of the process that runs a task's own code, and ours while the
 * task is the one that runs: its system calls, its page faults, and the interrupts that come
 * meanwhile. It is looked at where the CPU goes from one task to another, if one of them is of a
 * program, and before an address space is given up. Virtual time does not move by it. Left out is
 * what a task does between its fork and its first call.
 */
#include <linux/cgroup.h>
#include <linux/kernel.h>
#include <linux/mm_types.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>

struct account {
	u64 calls;
	u64 host_ns;
	u64 waits_ns[PROGRAM_WAITS];
};

static struct account *accounts[PROGRAMS];

/* Since when it is counted for the task that runs: our CPU time, and that of its process. */
static u64 our_ns, its_ns;
static int its_pid;

int program_host_pid(const struct task_struct *task)
{
	/* the context begins with it */
	return task->mm ? *(const int *)&task->mm->context.id : 0;
}

static struct account *account(const struct program_time *p)
{
	return p->app < PROGRAMS ? accounts[p->app] : NULL;
}

static void begin(const struct task_struct *task, u64 now_ns)
{
	our_ns = now_ns;
	its_pid = program_host_pid(task);
	its_ns = its_pid ? program_host_cpu_ns(its_pid) : 0;
}

static void end(const struct task_struct *task, const struct program_time *p, u64 now_ns)
{
	struct account *to = account(p);
	int pid = program_host_pid(task);

	if (!to)
		return;
	to->host_ns += now_ns - our_ns;
	if (pid)	/* of a new one all is its own */
		to->host_ns += program_host_cpu_ns(pid) - (pid == its_pid ? its_ns : 0);
}

void program_account_begin(void)
{
	begin(current, program_host_cpu_ns(0));
}

static bool is_program(const struct task_struct *task)
{
	return task->pid && program_time_slot(task)->pid == task->pid;
}

void program_account_switch(struct task_struct *from, struct task_struct *to)
{
	bool leaves = is_program(from), comes = is_program(to);
	u64 now_ns;

	if (!leaves && !comes)
		return;
	now_ns = program_host_cpu_ns(0);
	if (leaves)
		end(from, program_time_slot(from), now_ns);
	if (comes)
		begin(to, now_ns);
}

#ifdef CONFIG_CGROUPS
static void find(struct program_time *p)
{
	const struct cgroup *group;
	char name[16] = "";
	u64 id;

	rcu_read_lock();
	group = task_dfl_cgroup(current);
	id = cgroup_id(group);
	if (p->group != id) {
		p->group = id;
		kernfs_name(group->kn, name, sizeof(name));
		if (sscanf(name, "app-%u", &p->app) != 1 || p->app >= PROGRAMS)
			p->app = PROGRAMS;
	}
	rcu_read_unlock();
	if (p->app < PROGRAMS && !accounts[p->app])
		accounts[p->app] = kzalloc(sizeof(*accounts[p->app]), GFP_KERNEL);
}
#else
static void find(struct program_time *p)
{
	p->app = PROGRAMS;
}
#endif

/* Whether a call may end the address space of its task. */
static bool gives_up(int call)
{
	switch (call) {
	case __NR_exit:
	case __NR_exit_group:
	case __NR_execve:
	case __NR_execveat:
		return true;
	default:
		return false;
	}
}

void program_account_call(struct program_time *p, int call)
{
	u64 now_ns;

	find(p);
	if (!account(p))
		return;
	account(p)->calls++;
	if (!gives_up(call))
		return;
	now_ns = program_host_cpu_ns(0);
	end(current, p, now_ns);
	begin(current, now_ns);
}

void program_account_looks(const struct program_time *p, unsigned int looks)
{
	if (account(p))
		account(p)->calls += looks;
}

void program_account_wait(struct program_time *p, int what)
{
	struct account *to = account(p);
	u64 now = ktime_get_ns();

	if (to && what >= 0 && what < PROGRAM_WAITS)
		to->waits_ns[what] += now - p->since;
	p->since = now;
}

/* What went by beside calls. */
static const char *const beside[] = {
	[PROGRAM_CPU - PROGRAM_CALLS] = "cpu",
	[PROGRAM_SPUN - PROGRAM_CALLS] = "spun",
	[PROGRAM_STOPPED - PROGRAM_CALLS] = "stopped",
};

static int show(struct seq_file *file, void *unused)
{
	unsigned int app, call;

	for (app = 0; app < PROGRAMS; app++) {
		const struct account *one = accounts[app];

		if (!one)
			continue;
		seq_printf(file, "%u calls %llu\n", app, one->calls);
		seq_printf(file, "%u host %llu\n", app, one->host_ns);
		for (call = 0; call < PROGRAM_CALLS; call++)
			if (one->waits_ns[call])
				seq_printf(file, "%u call %u %llu\n", app, call,
					   one->waits_ns[call]);
		for (; call < PROGRAM_WAITS; call++)
			if (one->waits_ns[call])
				seq_printf(file, "%u %s %llu\n", app,
					   beside[call - PROGRAM_CALLS], one->waits_ns[call]);
	}
	return 0;
}

static int __init program_account_init(void)
{
	return proc_create_single("hourglass/programs", 0400, NULL, show) ? 0 : -ENOMEM;
}
late_initcall(program_account_init);
