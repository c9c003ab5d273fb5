/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory and faults of compiled BPF programs.
 */
#ifndef _HOURGLASS_BPF_JIT_H
#define _HOURGLASS_BPF_JIT_H

#include <linux/types.h>

struct uml_pt_regs;

/* Memory for code that calls the kernel. */
void *bpf_jit_alloc_near(unsigned long size);
void bpf_jit_free_near(void *address);

#ifdef CONFIG_BPF_JIT
/* Skips a load of a BPF program that faulted: its result is 0, as the verifier requires. `context`
 * is the signal's. Returns false if no BPF program faulted.
 */
bool bpf_fault(struct uml_pt_regs *regs, void *context);
#else
static inline bool bpf_fault(struct uml_pt_regs *regs, void *context)
{
	return false;
}
#endif

/* Copies our registers to those of the signal. The kernel's function, in os-Linux/mcontext.c. */
void get_mc_from_regs(struct uml_pt_regs *regs, void *context, int single_stepping);

#endif
