// SPDX-License-Identifier: GPL-2.0-only
/*
 * The resources and waiting times of each program, summed over its tasks,
 * /proc/hourglass/programs:
 *
 *	N calls NUMBER		system calls, and clock reads without a call
 *	N host NS		time of the host's CPU
 *	N call CALL NS		virtual time in that system call, by its number
 *	N cpu NS		virtual time waiting for its node's CPU, and on it
 *	N spun NS		virtual time that it was put to sleep for spinning
 *	N stopped NS		virtual time outside of calls: a signal had stopped it
 *
 * N is the number in its control group's name, which the agent sets to app-N. Groups below it
 * belong to it. Virtual times of 0
 * are left out. Their sum is the lifetime of all its tasks.
 *
 * The host's CPU time has two parts: that of the process that runs the task's own code, and that
 * of the guest kernel while the task is current (system calls, page faults, and interrupts). It
 * is read when the CPU switches to or from a task of a program, and before an address space
 * ends. Virtual time does not advance by it. Left out is the time of a program before its first
 * call.
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

#define APP_LEVEL 2	/* of the groups ROOT/room-N/app-M */

struct account {
	u64 calls;
	u64 host_ns;
	u64 waits_ns[PROGRAM_WAITS];
};

static struct account *accounts[PROGRAMS];

/* CPU times at the last read, for the current task: of the guest kernel, and of the task's
 * process.
 */
static u64 kernel_cpu_ns, process_cpu_ns;
static int process_pid;

int program_host_pid(const struct task_struct *task)
{
	/* the context begins with the pid */
	return task->mm ? *(const int *)&task->mm->context.id : 0;
}

static struct account *account(const struct program_time *p)
{
	return p->app < PROGRAMS ? accounts[p->app] : NULL;
}

static void begin(const struct task_struct *task, u64 now_ns)
{
	kernel_cpu_ns = now_ns;
	process_pid = program_host_pid(task);
	process_cpu_ns = process_pid ? program_host_cpu_ns(process_pid) : 0;
}

static void end(const struct task_struct *task, const struct program_time *p, u64 now_ns)
{
	struct account *to = account(p);
	int pid = program_host_pid(task);

	if (!to)
		return;
	to->host_ns += now_ns - kernel_cpu_ns;
	if (pid)	/* all time of a new process is its own */
		to->host_ns += program_host_cpu_ns(pid) - (pid == process_pid ? process_cpu_ns : 0);
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
	struct cgroup *group;
	char name[16] = "";
	u64 id;

	rcu_read_lock();
	group = task_dfl_cgroup(current);
	id = cgroup_id(group);
	if (p->group != id) {
		p->group = id;
		/* a program may make groups of any name below its own */
		while (group->level > APP_LEVEL)
			group = cgroup_parent(group);
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

/* Returns whether a call may end the address space of its task. */
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

void program_account_polls(const struct program_time *p, unsigned int polls)
{
	if (account(p))
		account(p)->calls += polls;
}

void program_account_wait(struct program_time *p, int wait)
{
	struct account *to = account(p);
	u64 now = ktime_get_ns();

	if (to && wait >= 0 && wait < PROGRAM_WAITS)
		to->waits_ns[wait] += now - p->since;
	p->since = now;
}

/* Names of waits outside of calls. */
static const char *const names[] = {
	[PROGRAM_CPU - PROGRAM_CALLS] = "cpu",
	[PROGRAM_SPUN - PROGRAM_CALLS] = "spun",
	[PROGRAM_STOPPED - PROGRAM_CALLS] = "stopped",
};

static int show(struct seq_file *file, void *unused)
{
	unsigned int app, call;

	for (app = 0; app < PROGRAMS; app++) {
		const struct account *account = accounts[app];

		if (!account)
			continue;
		seq_printf(file, "%u calls %llu\n", app, account->calls);
		seq_printf(file, "%u host %llu\n", app, account->host_ns);
		for (call = 0; call < PROGRAM_CALLS; call++)
			if (account->waits_ns[call])
				seq_printf(file, "%u call %u %llu\n", app, call,
					   account->waits_ns[call]);
		for (; call < PROGRAM_WAITS; call++)
			if (account->waits_ns[call])
				seq_printf(file, "%u %s %llu\n", app,
					   names[call - PROGRAM_CALLS], account->waits_ns[call]);
	}
	return 0;
}

static int __init program_account_init(void)
{
	return proc_create_single("hourglass/programs", 0400, NULL, show) ? 0 : -ENOMEM;
}
late_initcall(program_account_init);
