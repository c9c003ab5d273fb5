/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seccomp filter of the host's processes that run programs (program-filter.toml). It is
 * compiled both without a C library (stub_exe.c) and with the host's.
 */
#ifndef HOURGLASS_PROGRAM_FILTER_H
#define HOURGLASS_PROGRAM_FILTER_H

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS	0x80000000U
#endif

/* Without it, hosts before 5.16 disable speculative store bypass for the process. */
#define PROGRAM_FILTER_FLAGS	4	/* SECCOMP_FILTER_FLAG_SPEC_ALLOW */

#define PROGRAM_FILTER_LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define PROGRAM_FILTER_UPPER(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + 4)
#define PROGRAM_FILTER_RETURN(action)	BPF_STMT(BPF_RET | BPF_K, action)
#define PROGRAM_FILTER_IF(value, steps)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, steps, 0)
#define PROGRAM_FILTER_UNLESS(value, steps) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps)
/* The lower half of an argument, which is all that these calls read. */
#define PROGRAM_FILTER_ARGUMENT(number)	PROGRAM_FILTER_LOAD(args[number])

#define PROGRAM_FILTER_NAMESPACES	0x7e020000U	/* all CLONE_NEW* of clone(2) */
#define PROGRAM_FILTER_TRACEME	0	/* PTRACE_TRACEME */
#define PROGRAM_FILTER_PDEATHSIG	1	/* PR_SET_PDEATHSIG */
#define PROGRAM_FILTER_SIGSTOP	19	/* SIGSTOP */

/* Jumps count from the next statement. [n] is the number of a statement. */
static const struct sock_filter program_filter[] = {
	PROGRAM_FILTER_LOAD(arch),	/* [0] */
	PROGRAM_FILTER_UNLESS(AUDIT_ARCH_X86_64, 29),	/* [1] */
	PROGRAM_FILTER_LOAD(nr),	/* [2] */
	/* calls of User Mode Linux in the process: [32] */
	PROGRAM_FILTER_IF(__NR_mmap, 28),	/* [3] */
	PROGRAM_FILTER_IF(__NR_munmap, 27),	/* [4] */
	PROGRAM_FILTER_IF(__NR_mprotect, 26),	/* [5] */
	PROGRAM_FILTER_IF(__NR_getpid, 25),	/* [6] */
	PROGRAM_FILTER_IF(__NR_getppid, 24),	/* [7] */
	PROGRAM_FILTER_IF(__NR_rt_sigreturn, 23),	/* [8] */
	PROGRAM_FILTER_IF(__NR_exit, 22),	/* [9] */
	PROGRAM_FILTER_IF(__NR_modify_ldt, 21),	/* [10] */
	/* a copy of itself, without new namespaces */
	PROGRAM_FILTER_UNLESS(__NR_clone, 2),	/* [11] */
	PROGRAM_FILTER_ARGUMENT(0),	/* [12] */
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROGRAM_FILTER_NAMESPACES, 17, 18),	/* [13] */
	/* to be traced, not to trace */
	PROGRAM_FILTER_UNLESS(__NR_ptrace, 2),	/* [14] */
	PROGRAM_FILTER_ARGUMENT(0),	/* [15] */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROGRAM_FILTER_TRACEME, 15, 14),	/* [16] */
	/* to die with its parent */
	PROGRAM_FILTER_UNLESS(__NR_prctl, 2),	/* [17] */
	PROGRAM_FILTER_ARGUMENT(0),	/* [18] */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROGRAM_FILTER_PDEATHSIG, 12, 11),	/* [19] */
	/* its own stop, after which it runs a program */
	PROGRAM_FILTER_UNLESS(__NR_kill, 2),	/* [20] */
	PROGRAM_FILTER_ARGUMENT(1),	/* [21] */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROGRAM_FILTER_SIGSTOP, 9, 8),	/* [22] */
	/* the three calls of the vsyscall page: [26] */
	PROGRAM_FILTER_IF(__NR_gettimeofday, 2),	/* [23] */
	PROGRAM_FILTER_IF(__NR_time, 1),	/* [24] */
	PROGRAM_FILTER_UNLESS(__NR_getcpu, 5),	/* [25] */
	PROGRAM_FILTER_UPPER(instruction_pointer),	/* [26] */
	PROGRAM_FILTER_UNLESS(0xffffffff, 3),	/* [27] */
	PROGRAM_FILTER_LOAD(instruction_pointer),	/* [28] */
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0xff600000, 0, 1),	/* [29] */
	PROGRAM_FILTER_RETURN(SECCOMP_RET_TRAP),	/* [30] */
	PROGRAM_FILTER_RETURN(SECCOMP_RET_KILL_PROCESS),	/* [31] */
	PROGRAM_FILTER_RETURN(SECCOMP_RET_ALLOW),	/* [32] */
};

#endif
