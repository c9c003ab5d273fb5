// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF compiler of x86-64 in User Mode Linux. The machine code is the same, since a kernel that
 * is a process has the instructions and the calling convention of its CPU. The differences are in
 * this file:
 *
 *	code		is written like data
 *	CPU features	are not used, nor are mitigations: the code is the same on every host
 *	faults		their registers come from a signal
 *	addresses	those of the kernel are low
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/execmem.h>
#include <linux/extable.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/memory.h>
#include <linux/netdevice.h>
#include <linux/sort.h>
#include <asm/cfi.h>
#include <asm/cpufeature.h>
#include <asm/extable.h>
#include <asm/sections.h>
#include <asm/unwind.h>
#include <as-layout.h>
#include <os.h>
#include <asm/hourglass_bpf_jit.h>

/* Headers of a kernel on bare hardware, which the compiler includes and does not need here. */
#define _ASM_X86_NOSPEC_BRANCH_H_
#define _ASM_X86_SET_MEMORY_H
#define _ASM_X86_TEXT_PATCHING_H

#undef cpu_feature_enabled
#undef boot_cpu_has
#define cpu_feature_enabled(bit) false
#define boot_cpu_has(bit) false
#define cpu_wants_rethunk() false
#define cfi_mode CFI_OFF

static u8 *const x86_return_thunk;
static u8 *const __x86_indirect_thunk_array;
static u8 *const __x86_indirect_jump_thunk_array;

static inline void clear_bhb_loop(void)
{
}

/* The no-operations that Intel's manual recommends, by length. */
static const u8 nops_1[] = { 0x90 };
static const u8 nops_2[] = { 0x66, 0x90 };
static const u8 nops_3[] = { 0x0f, 0x1f, 0x00 };
static const u8 nops_4[] = { 0x0f, 0x1f, 0x40, 0x00 };
static const u8 nops_5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const u8 nops_6[] = { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const u8 nops_7[] = { 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 };
static const u8 nops_8[] = { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 };

#undef ASM_NOP_MAX
#define ASM_NOP_MAX 8
#define x86_nops nops

static const u8 *const nops[ASM_NOP_MAX + 1] = {
	NULL, nops_1, nops_2, nops_3, nops_4, nops_5, nops_6, nops_7, nops_8,
};

/* One CPU, no preemption: code does not run while it is written. */
static void *text_poke_copy(void *address, const void *code, size_t bytes)
{
	return memcpy(address, code, bytes);
}

static void *text_poke_set(void *address, int byte, size_t bytes)
{
	return memset(address, byte, bytes);
}

static void smp_text_poke_single(void *address, const void *code, size_t bytes, const void *emulate)
{
	memcpy(address, code, bytes);
}

/* Calls reach 2 GiB, and a guest may have more memory. So compiled code is among the kernel's
 * variables. One CPU and no preemption: no lock.
 */
#define JIT_PAGES (SZ_16M >> PAGE_SHIFT)

static u8 jit_memory[JIT_PAGES << PAGE_SHIFT] __aligned(PAGE_SIZE);
static DECLARE_BITMAP(jit_used, JIT_PAGES);
static unsigned int jit_sizes[JIT_PAGES];	/* in pages, by the first page */

void *bpf_jit_alloc_near(unsigned long size)
{
	unsigned int pages = PAGE_ALIGN(size) >> PAGE_SHIFT;
	unsigned long first = bitmap_find_next_zero_area(jit_used, JIT_PAGES, 0, pages, 0);

	if (first >= JIT_PAGES)
		return NULL;
	if (!bitmap_weight(jit_used, JIT_PAGES) &&
	    os_protect_memory(jit_memory, sizeof(jit_memory), 1, 1, 1))
		return NULL;
	bitmap_set(jit_used, first, pages);
	jit_sizes[first] = pages;
	return jit_memory + (first << PAGE_SHIFT);
}

void bpf_jit_free_near(void *address)
{
	unsigned long first = ((u8 *)address - jit_memory) >> PAGE_SHIFT;

	if (address)
		bitmap_clear(jit_used, first, jit_sizes[first]);
}

#define execmem_alloc(kind, bytes) bpf_jit_alloc_near(bytes)
#define execmem_free bpf_jit_free_near

/* A load through a pointer to a kernel's structure is safe from the start of physical memory to the
 * end of vmalloc's. The process's other mappings are outside, and differ from host to host.
 */
#undef VSYSCALL_ADDR
#undef TASK_SIZE_MAX
#define VSYSCALL_ADDR VMALLOC_END
#define TASK_SIZE_MAX (uml_physmem - PAGE_SIZE)

/* The order of a fault's registers is that of a kernel on bare hardware. */
struct jit_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip;
};

#define pt_regs jit_regs
#define ex_handler_bpf ex_handler_jit

static bool ex_handler_jit(const struct exception_table_entry *entry, struct jit_regs *regs);

#include "../net/bpf_jit_comp.c"

#undef pt_regs
#undef ex_handler_bpf

bool bpf_fault(struct uml_pt_regs *regs, void *context)
{
	const struct exception_table_entry *entry = search_bpf_extables(UPT_IP(regs));

	if (!entry || !context)
		return false;
	ex_handler_jit(entry, (struct jit_regs *)regs->gp);
	get_mc_from_regs(regs, context, 0);
	return true;
}
