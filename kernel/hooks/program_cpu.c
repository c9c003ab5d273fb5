// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU for each node: system calls of its programs take virtual time, if one says so.
 *
 *	program --call--> [ run queue, FIFO ] --> CPU --> the call itself, in no time
 *
 * One CPU for each network namespace that has been given one. Each call takes it for `syscall`,
 * and again, once it has copied data, for `byte` times their number; who comes while it is busy
 * waits for those who came before. A call that waits for the network or a timer does not hold
 * the CPU meanwhile. The sum of fractions of a ns is kept, so that nothing drifts. Who waits
 * without sleeping uses it up, and is not made to sleep beside that.
 *
 * Left out: a program's own computing between two calls, page faults, interrupts and softirqs
 * (receiving packets costs nothing), priorities and time slices, wake-up latency; and the bytes
 * of sendmmsg, recvmmsg and io_submit, which do not say how many they were.
 *
 * /proc/hourglass/cpu: "SYSCALL BYTE", ns and ps, written by a process of the namespace.
 *
 * parameter	unit	default	why
 * SYSCALL	ns	0	0: no time, as everywhere else in this kernel
 * BYTE		ps	0	a memory of 10 GB/s: 100
 */
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>

#define PS_PER_NS	1000

struct program_cpu {
	u32 syscall_ns;
	u32 byte_ps;
	u64 rest_ps;		/* of bytes, less than a ns */
	u64 free_ns;		/* when all are done that have come */
};

static unsigned int program_cpu_id __read_mostly;

static struct program_cpu *mine(void)
{
	return net_generic(current->nsproxy->net_ns, program_cpu_id);
}

/* That on which a task's calls take time; none if it is of no program. */
static struct program_cpu *cpu_of(const struct program_time *p)
{
	return p->app < PROGRAMS ? mine() : NULL;
}

static void take(struct program_cpu *cpu, u64 ns)
{
	ktime_t done;

	if (!ns)
		return;
	cpu->free_ns = max(cpu->free_ns, ktime_get_ns()) + ns;
	done = ns_to_ktime(cpu->free_ns);
	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&done, 0, HRTIMER_MODE_ABS);
}

bool program_cpu_costs(const struct program_time *p)
{
	const struct program_cpu *cpu = cpu_of(p);

	return cpu && cpu->syscall_ns;
}

void program_cpu_call(const struct program_time *p)
{
	struct program_cpu *cpu = cpu_of(p);

	if (cpu)
		take(cpu, cpu->syscall_ns);
}

static bool copies(int call)
{
	switch (call) {
	case __NR_read:
	case __NR_readv:
	case __NR_pread64:
	case __NR_preadv:
	case __NR_write:
	case __NR_writev:
	case __NR_pwrite64:
	case __NR_pwritev:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_getrandom:
		return true;
	default:
		return false;
	}
}

void program_cpu_copy(const struct program_time *p, int call, long result)
{
	struct program_cpu *cpu = cpu_of(p);
	u64 ns;
	u32 rest;

	if (!cpu || !cpu->byte_ps || result <= 0 || !copies(call))
		return;
	ns = div_u64_rem(cpu->rest_ps + (u64)result * cpu->byte_ps, PS_PER_NS, &rest);
	cpu->rest_ps = rest;
	take(cpu, ns);
}

static ssize_t cpu_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	struct program_cpu *cpu = mine();
	unsigned int syscall_ns, byte_ps;
	char text[32] = "";

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	if (sscanf(text, "%u %u", &syscall_ns, &byte_ps) != 2)
		return -EINVAL;
	cpu->syscall_ns = syscall_ns;
	cpu->byte_ps = byte_ps;
	return length;
}

static const struct proc_ops cpu_ops = {
	.proc_write = cpu_write,
};

static struct pernet_operations cpu_nets = {
	.id = &program_cpu_id,
	.size = sizeof(struct program_cpu),
};

static int __init program_cpu_init(void)
{
	int err = register_pernet_subsys(&cpu_nets);

	if (err)
		return err;
	return proc_create("hourglass/cpu", 0200, NULL, &cpu_ops) ? 0 : -ENOMEM;
}
late_initcall(program_cpu_init);
