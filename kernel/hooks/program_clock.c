// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs read clocks without a system call.
 *
 * Time does not advance while a program's own code runs. So the kernel writes the time whenever
 * the program continues. It writes into a page that all processes share, directly below the
 * vDSO, whose functions read it there. A call costs the host about 10 us, and reading the time
 * is the most frequent call.
 *
 * No two reads of a clock give a task the same time, as on a real machine: programs divide by
 * the difference. A task's first read of a clock at an instant gives the kernel's time, and each
 * further read one ns more. At its next call the task sleeps until the last time that it read
 * (program_time.c). So a further read takes 1 ns.
 *
 * A read counts like a call. After a number of calls a task is put to sleep for spinning
 * (program_time.c). It may read the clock here until that number is reached; its next read is a
 * call. Its reads are counted when it stops. Tasks whose calls take time (program_cpu.c) and
 * tasks outside virtual time always make calls. The agent and the set-up's tools are never put
 * to sleep, and have the full number of reads between two calls.
 *
 * The page is writable, since the vDSO counts reads in it. A program that writes there affects
 * only itself: the page is rewritten whenever a task continues.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <asm/hourglass_program_clock.h>
#include <asm/hourglass_program_time.h>
#include <asm/page.h>

static struct program_clock *page;
static unsigned int granted_reads;
static s64 granted_ns[2];		/* the next read of each clock */

/* Writes the time. Called before a task's own code continues. */
void program_clock_give(void)
{
	struct timespec64 real, mono;
	int clock;

	granted_reads = program_time_polls_left();
	page->reads = granted_reads;
	if (!granted_reads)
		return;
	ktime_get_real_ts64(&real);
	ktime_get_ts64(&mono);
	timens_add_monotonic(&mono);
	page->s = ktime_get_real_seconds();
	page->clocks[CLOCK_REALTIME].s = real.tv_sec;
	page->clocks[CLOCK_REALTIME].ns = real.tv_nsec;
	page->clocks[CLOCK_MONOTONIC].s = mono.tv_sec;
	page->clocks[CLOCK_MONOTONIC].ns = mono.tv_nsec;
	page->step_ns = program_time_is_program();
	for (clock = 0; clock < ARRAY_SIZE(page->clocks) && page->step_ns; clock++) {
		page->clocks[clock].ns += program_time_ahead_ns(clock);
		granted_ns[clock] = page->clocks[clock].ns;
	}
}

/* Counts the task's reads. Called after its own code has stopped. */
void program_clock_take(void)
{
	unsigned int reads = granted_reads - min(page->reads, granted_reads), clock;

	granted_reads = 0;
	if (!reads)
		return;
	program_time_polled(reads);
	for (clock = 0; clock < ARRAY_SIZE(page->clocks) && page->step_ns; clock++)
		program_time_was_read(clock, min_t(u64, reads, page->clocks[clock].ns -
								   granted_ns[clock]));
}

static vm_fault_t fault(const struct vm_special_mapping *mapping, struct vm_area_struct *vma,
			struct vm_fault *vmf)
{
	return vmf_insert_pfn(vma, vmf->address, __pa(page) >> PAGE_SHIFT);
}

static const struct vm_special_mapping mapping = {
	.name = "[vvar]",
	.fault = fault,
};

int program_clock_map(struct mm_struct *mm, unsigned long vdso)
{
	unsigned long flags = VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE | VM_SHARED |
			      VM_MAYSHARE | VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;

	BUILD_BUG_ON(sizeof(*page) > PROGRAM_CLOCK_PAGE);
	return PTR_ERR_OR_ZERO(_install_special_mapping(mm, vdso - PROGRAM_CLOCK_PAGE,
							PROGRAM_CLOCK_PAGE, flags, &mapping));
}

static int __init program_clock_init(void)
{
	page = (struct program_clock *)get_zeroed_page(GFP_KERNEL);
	return page ? 0 : -ENOMEM;
}
pure_initcall(program_clock_init);
