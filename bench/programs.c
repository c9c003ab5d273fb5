// SPDX-License-Identifier: Apache-2.0
/* Operations of programs, repeated N times: programs.py measures their cost in a guest. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CROWD 200

/* The offset of the mask of registers in use, and the bits that kernel/hooks/xsave_area.c passes to the host. */
#define XSTATE_BV 512
#define GUEST_COMPONENTS 0x802ffUL

static char self[] = "/programs", nothing[] = "nothing";

static int call(void)
{
	return getppid() < 0;
}

static char *new_page(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int fault(void)
{
	char *page = new_page();

	if (page == MAP_FAILED)
		return 1;
	page[0] = 1;
	return munmap(page, 4096);
}

/* Read a clock by the vDSO, and by a call. */
static int clock_read(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_MONOTONIC, &now);
}

static int clock_asked(void)
{
	struct timespec now;

	return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
}

/* Check that both give the same times, for each clock: a further read takes 1 ns. */
static int clocks_agree(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct timespec moment = { 0, 123456789 }, read, asked;
	struct timeval day_read, day_asked;
	size_t i;

	nanosleep(&moment, NULL);
	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (clock_gettime(clocks[i], &read) || syscall(SYS_clock_gettime, clocks[i], &asked) ||
		    read.tv_sec != asked.tv_sec || read.tv_nsec + 1 != asked.tv_nsec)
			return 1;
	}
	if (gettimeofday(&day_read, NULL) || syscall(SYS_gettimeofday, &day_asked, NULL) ||
	    day_read.tv_sec != day_asked.tv_sec || day_read.tv_usec != day_asked.tv_usec)
		return 1;
	return time(NULL) != syscall(SYS_time, NULL);
}

/* Check that a floating-point register survives a call and a page fault. Return the call's result. */
static long keeps_float(unsigned long value, long number, long one, long two, void *four, int *kept)
{
	char *page = new_page();
	register void *last asm("r10") = four;	/* from here on no function is called */
	unsigned long after;
	long result;

	asm volatile("movq %[value], %%xmm8\n\tsyscall\n\tmovb $1, (%[page])\n\tmovq %%xmm8, %[after]"
		     : [after] "=&r" (after), "=a" (result)
		     : [value] "r" (value), "a" (number), "D" (one), "S" (two), "r" (last), [page] "r" (page)
		     : "rcx", "r11", "xmm8", "memory");
	*kept = after == value;
	munmap(page, 4096);
	return result;
}

static void change_float(int signal)
{
	asm volatile("movq %0, %%xmm8" :: "r" (~0UL - signal) : "xmm8");
}

static void *by_turns(void *value)
{
	int i, kept = 1;

	for (i = 0; i < 50 && kept; i++)
		keeps_float((unsigned long)value + i, SYS_sched_yield, 0, 0, NULL, &kept);
	return (void *)(long)kept;
}

/* Start a child in the same memory that changes the registers and ends, by raw calls without other code between. */
static int vforked(void)
{
	unsigned long after;
	long made;
	int status = 1;

	asm volatile("movq %[mine], %%xmm8\n\tmov %[vfork], %%eax\n\tsyscall\n\t"
		     "test %%eax, %%eax\n\tjnz 1f\n\t"
		     "movq %[its], %%xmm8\n\tmov %[exit], %%eax\n\txor %%edi, %%edi\n\tsyscall\n"
		     "1:\tmovq %%xmm8, %[after]"
		     : [after] "=&r" (after), "=&a" (made)
		     : [mine] "r" (6000000UL), [its] "r" (7000000UL), [vfork] "i" (SYS_vfork), [exit] "i" (SYS_exit)
		     : "rcx", "r11", "rdi", "xmm8", "memory");
	return made < 0 || after != 6000000 || waitpid(made, &status, 0) != made || status;
}

/* A debugger changes the registers of its child, and keeps its own. */
static int debugged(void)
{
	struct user_fpregs_struct regs;
	pid_t made = fork();
	int kept, status;

	if (made == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		keeps_float(8000000, SYS_kill, getpid(), SIGSTOP, NULL, &kept);
		_exit(kept);	/* the child's registers differ */
	}
	if (made < 0 || waitpid(made, &status, 0) != made || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETFPREGS, made, NULL, &regs) || regs.xmm_space[32] != 8000000)
		return 1;
	regs.xmm_space[32] = 9000000;
	if (keeps_float(1000001, SYS_ptrace, PTRACE_SETFPREGS, made, &regs, &kept) || !kept ||
	    ptrace(PTRACE_CONT, made, NULL, NULL))
		return 1;
	return waitpid(made, &status, 0) != made || status;
}

/* Check the registers in many processes that sleep at the same time. */
static int crowd(void)
{
	struct timespec moment = { 0, 1000000 };
	int i, kept, status, wrong = 0;

	for (i = 0; i < CROWD; i++) {
		if (fork() == 0) {
			keeps_float(5000000 + i, SYS_nanosleep, (long)&moment, 0, NULL, &kept);
			_exit(!kept);
		}
	}
	while (i--)
		wrong |= wait(&status) < 0 || status;
	return wrong;
}

/* Check the registers in two threads in turn, across a signal handler, in children and in many processes. */
static int floats(void)
{
	int mine, kept, status = 1;
	void *others = NULL;
	pthread_t other;
	long made;

	signal(SIGUSR1, change_float);
	if (pthread_create(&other, NULL, by_turns, (void *)1000000))
		return 1;
	mine = by_turns((void *)2000000) != NULL;
	if (pthread_join(other, &others) || !others || !mine)
		return 1;
	keeps_float(3000000, SYS_kill, getpid(), SIGUSR1, NULL, &kept);
	if (!kept)
		return 1;
	made = keeps_float(4000000, SYS_fork, 0, 0, NULL, &kept);
	if (made == 0)
		_exit(!kept);
	return made < 0 || !kept || waitpid(made, &status, 0) != made || status || vforked() || debugged() || crowd();
}

/* Claim, in the frame of the signal, the registers for which a guest has no room: AMX's, and those yet to come. */
static void claim_registers(int signal, siginfo_t *info, void *frame)
{
	unsigned long *registers = (unsigned long *)((ucontext_t *)frame)->uc_mcontext.fpregs;

	registers[XSTATE_BV / sizeof(long)] |= ~GUEST_COMPONENTS;
}

/* Check that such a handler returns, and that the other registers survive it. */
static int claims(void)
{
	struct sigaction action = { .sa_sigaction = claim_registers, .sa_flags = SA_SIGINFO };
	int kept;

	sigaction(SIGUSR2, &action, NULL);
	keeps_float(10000000, SYS_kill, getpid(), SIGUSR2, NULL, &kept);
	return !kept;
}

static int child(int with_exec)
{
	char *words[] = { self, nothing, NULL };
	int status = 1;
	pid_t made = fork();

	if (made == 0) {
		if (with_exec)
			execv(self, words);
		_exit(with_exec);
	}
	return made < 0 || waitpid(made, &status, 0) != made || status;
}

static int forked(void)
{
	return child(0);
}

static int executed(void)
{
	return child(1);
}

static const struct {
	const char *name;
	int (*once)(void);
} all[] = {
	{ "call", call }, { "clock", clock_read }, { "clock-asked", clock_asked }, { "clocks-agree", clocks_agree },
	{ "fault", fault }, { "floats", floats }, { "fork", forked }, { "exec", executed },
	{ "claims", claims },
};

int main(int count, char **words)
{
	long left = count > 2 ? strtol(words[2], NULL, 10) : 0;
	size_t i = 0;

	if (!left)
		return 0;
	while (strcmp(words[1], all[i].name))
		if (++i == sizeof(all) / sizeof(all[0]))
			return 1;
	for (; left > 0; left--)
		if (all[i].once())
			return 1;
	return 0;
}
