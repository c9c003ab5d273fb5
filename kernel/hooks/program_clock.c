// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs read clocks without a call.
 *
 * Time stands while a program's own code runs, so what time it is can be written down for it
 * whenever it goes on. A page that all processes share, right below the vDSO, has it, and the
 * vDSO's functions read it there. A call costs the host some 10 us, and programs ask for the time
 * more often than for anything else.
 *
 * It is the same as if they had called: a task may read so often as is left until it is made to
 * sleep for asking without end (program_time.c), and its next reading is a call. What it has read
 * is counted once it stops. Tasks whose calls take time (program_cpu.c) are left none, and so is
 * who runs outside virtual time. The agent and the set-up's tools, which nobody makes sleep, may
 * read as often between two calls.
 *
 * The page can be written, as the vDSO counts in it. Whoever writes there cheats only himself: it
 * is written anew whenever a task goes on.
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
static unsigned int given;

/* Called where a task's own code goes on, */
void program_clock_give(void)
{
	struct timespec64 real, mono;

	given = program_time_looks_left();
	page->reads = given;
	if (!given)
		return;
	ktime_get_real_ts64(&real);
	ktime_get_ts64(&mono);
	timens_add_monotonic(&mono);
	page->s = ktime_get_real_seconds();
	page->clocks[CLOCK_REALTIME].s = real.tv_sec;
	page->clocks[CLOCK_REALTIME].ns = real.tv_nsec;
	page->clocks[CLOCK_MONOTONIC].s = mono.tv_sec;
	page->clocks[CLOCK_MONOTONIC].ns = mono.tv_nsec;
}

/* and where it has stopped. */
void program_clock_take(void)
{
	unsigned int reads = given - min(page->reads, given);

	given = 0;
	if (reads)
		program_time_looked(reads);
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
