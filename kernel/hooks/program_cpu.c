// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU for each node, on which packets and system calls of programs take virtual time, if
 * configured.
 *
 *	program --call--> [           ]         the call itself, in no time
 *	NIC -----frame--> [ FIFO, one ] --CPU-> the network stack
 *	qdisc ----skb---> [    CPU    ]         the NIC
 *
 * Each network namespace may have one CPU. Each call occupies it for `syscall`, and, after
 * copying data, for `byte` times the number of bytes. A call that arrives while the CPU is busy
 * waits for the earlier ones. A call that waits for the network or a timer does not occupy the
 * CPU. Fractions of a ns are summed, so no error accumulates. A program that waits without
 * sleeping occupies the CPU and is not put to sleep in addition.
 *
 * Each NIC has at most one received frame and one skb to send on the CPU or waiting for it
 * (kernel/drivers/), so neither direction starves the other. The stack gets a frame, and the NIC
 * an skb, when the CPU has completed it. Work of cost 0 does not wait.
 *
 * Timers of TCP's pacing and of qdiscs are late by `timer` (pacing-timer.toml). This is the
 * latency of an interrupt: it does not occupy the CPU.
 *
 * Left out: a program's own computing between two calls, page faults, priorities (softirqs
 * interrupt programs in a real machine), time slices, wake-up latency, devices without hardware
 * (veth, ifb, bridges), and the bytes of sendmmsg, recvmmsg and io_submit, whose results do not
 * contain them.
 *
 * /proc/hourglass/cpu: "SYSCALL BYTE RECEIVED SENT TIMER", BYTE in ps, the others in ns, written
 * by a process of the namespace. A file opened there reads "RECEIVED SENT CALLS PENDING": the ns of
 * all work so far, and how much of it is not complete. Without a configured CPU it is empty.
 *
 * parameter	unit	default	why
 * SYSCALL	ns	0	0: no time, as in the rest of this kernel
 * BYTE		ps	0	a memory of 10 GB/s: 100
 * RECEIVED	ns	0	includes a frame's path through the stack
 * SENT		ns	0	a TSO skb counts once
 * TIMER		ns	0	timers fire at their time
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
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <net/hourglass_cpu.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <asm/hourglass_program_time.h>
#include <asm/unistd.h>

#define PS_PER_NS	1000
#define CALLS		HOURGLASS_CPU_WORKS	/* further work: programs' calls */

struct program_cpu {
	bool configured;
	u32 syscall_ns;
	u32 byte_ps;
	u32 packet_ns[HOURGLASS_CPU_WORKS];
	u32 timer_ns;
	u64 rest_ps;		/* time of bytes below a ns */
	u64 free_ns;		/* when all earlier work is complete */
	u64 booked_ns[HOURGLASS_CPU_WORKS + 1];
};

static unsigned int program_cpu_id __read_mostly;
bool hourglass_cpu_packets __read_mostly;

static struct program_cpu *caller_cpu(void)
{
	return net_generic(current->nsproxy->net_ns, program_cpu_id);
}

/* Returns the CPU on which a task's calls take time, or NULL. */
static struct program_cpu *cpu_of(const struct program_time *p)
{
	return p->app < PROGRAMS ? caller_cpu() : NULL;
}

/* Returns when the CPU has completed @work of @ns. */
static u64 book(struct program_cpu *cpu, int work, u64 ns)
{
	cpu->booked_ns[work] += ns;
	cpu->free_ns = max(cpu->free_ns, ktime_get_ns()) + ns;
	return cpu->free_ns;
}

u64 __hourglass_cpu_book(const struct net *net, enum hourglass_cpu_work work, u32 packets)
{
	struct program_cpu *cpu = net_generic(net, program_cpu_id);
	u32 ns = cpu->packet_ns[work];

	return ns ? book(cpu, work, (u64)packets * ns) : 0;
}

u64 __hourglass_cpu_timer_ns(const struct net *net)
{
	return ((const struct program_cpu *)net_generic(net, program_cpu_id))->timer_ns;
}

static void take(struct program_cpu *cpu, u64 ns)
{
	ktime_t done;

	if (!ns)
		return;
	done = ns_to_ktime(book(cpu, CALLS, ns));
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
	struct program_cpu *cpu = caller_cpu();
	unsigned int syscall_ns, byte_ps, received_ns, sent_ns, timer_ns;
	char text[64] = "";

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	if (sscanf(text, "%u %u %u %u %u", &syscall_ns, &byte_ps, &received_ns, &sent_ns,
		   &timer_ns) != 5)
		return -EINVAL;
	cpu->configured = true;
	cpu->syscall_ns = syscall_ns;
	cpu->byte_ps = byte_ps;
	cpu->packet_ns[HOURGLASS_CPU_RECEIVED] = received_ns;
	cpu->packet_ns[HOURGLASS_CPU_SENT] = sent_ns;
	cpu->timer_ns = timer_ns;
	hourglass_cpu_packets |= received_ns || sent_ns || timer_ns;
	return length;
}

static int cpu_show(struct seq_file *file, void *unused)
{
	const struct program_cpu *cpu = net_generic(file->private, program_cpu_id);
	u64 now_ns = ktime_get_ns();

	if (cpu->configured)
		seq_printf(file, "%llu %llu %llu %llu\n",
			   cpu->booked_ns[HOURGLASS_CPU_RECEIVED],
			   cpu->booked_ns[HOURGLASS_CPU_SENT], cpu->booked_ns[CALLS],
			   max(cpu->free_ns, now_ns) - now_ns);
	return 0;
}

static int cpu_open(struct inode *inode, struct file *file)
{
	struct net *net = get_net(current->nsproxy->net_ns);
	int err = single_open(file, cpu_show, net);

	if (err)
		put_net(net);
	return err;
}

static int cpu_release(struct inode *inode, struct file *file)
{
	put_net(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct proc_ops cpu_ops = {
	.proc_open = cpu_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_write = cpu_write,
	.proc_release = cpu_release,
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
	return proc_create("hourglass/cpu", 0600, NULL, &cpu_ops) ? 0 : -ENOMEM;
}
late_initcall(program_cpu_init);
