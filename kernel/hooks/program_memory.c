// SPDX-License-Identifier: GPL-2.0-only
/* The writable memory of a program, for the proof that it polls memory (memory_poll.h). */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/version.h>
#include <asm/hourglass_program_time.h>
#include <asm/pgtable.h>

static u64 hash_page(u64 hash, const void *page)
{
	const u64 *word = page, *end = page + PAGE_SIZE;

	for (; word < end; word++)
		hash = (hash ^ *word) * 0x9e3779b97f4a7c15ULL + (hash >> 47);
	return hash;
}

/* Only pages that are present and writable count: writing to another one is a fault. */
static u64 hash_area(u64 hash, struct vm_area_struct *area)
{
	unsigned long at;
	pte_t *pte;

	if (!(area->vm_flags & VM_WRITE) || area->vm_flags & VM_PFNMAP)
		return hash;
	for (at = area->vm_start; at < area->vm_end; at += PAGE_SIZE) {
		pte = virt_to_pte(area->vm_mm, at);
		if (!pte)
			at = (at & PMD_MASK) + PMD_SIZE - PAGE_SIZE;
		else if (pte_present(*pte) && pte_write(*pte))
			hash = hash_page(hash, __va(pte_val(*pte) & PAGE_MASK));
	}
	return hash;
}

/* Returns a hash of the memory that the calling task can write. */
unsigned long long program_memory(void)
{
	struct vm_area_struct *area;
	u64 hash = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
	VMA_ITERATOR(areas, current->mm, 0);

	for_each_vma(areas, area)
		hash = hash_area(hash, area);
#else
	for (area = current->mm->mmap; area; area = area->vm_next)
		hash = hash_area(hash, area);
#endif
	return hash;
}
