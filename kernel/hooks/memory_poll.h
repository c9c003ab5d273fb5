/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prove that a process polls memory: the host's part of program_time.c, in process.c.
 *
 * The process is stepped by instructions. If its registers recur, and one period later its
 * registers, floating-point registers and writable memory are equal, it repeats this loop until
 * others change its memory. It is then stepped to the state of the period with the smallest
 * registers. So its state does not depend on the moment at which the host stopped it.
 */
#define POLL_FLOATS	(16 * 1024 / sizeof(unsigned long))

struct poll_state {
	unsigned long gp[MAX_REG_NR];
};

static int poll_read(int pid, struct poll_state *to)
{
	int err = ptrace(PTRACE_GETREGS, pid, 0, to->gp);

	to->gp[HOST_ORIG_AX] = -1;
	to->gp[HOST_EFLAGS] &= ~0x100UL;	/* set by the step */
	return err;
}

/* Executes one instruction. At a call or a fault the state is unchanged, and the result not 0. */
static int poll_step(int pid, struct poll_state *state)
{
	int status, err;

	do {
		if (ptrace(PTRACE_SYSEMU_SINGLESTEP, pid, 0, 0))
			return 1;
		CATCH_EINTR(err = waitpid(pid, &status, WUNTRACED | __WALL));
		if (err < 0 || !WIFSTOPPED(status))
			return 1;
	} while (WSTOPSIG(status) == SIGALRM);
	if (WSTOPSIG(status) == SIGTRAP)
		return poll_read(pid, state);
	ptrace(PTRACE_SETREGS, pid, 0, state->gp);
	return 1;
}

static int poll_steps(int pid, struct poll_state *state, unsigned int count)
{
	while (count--)
		if (poll_step(pid, state))
			return 1;
	return 0;
}

static int poll_equal(const struct poll_state *a, const struct poll_state *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static int poll_less(const struct poll_state *a, const struct poll_state *b)
{
	if (a->gp[HOST_IP] != b->gp[HOST_IP])
		return a->gp[HOST_IP] < b->gp[HOST_IP];
	return memcmp(a, b, sizeof(*a)) < 0;
}

/* Returns the number of steps after which the registers recur (Brent's method); 0: none within
 * @most.
 */
static unsigned int poll_period(int pid, struct poll_state *state, unsigned int most)
{
	struct poll_state before = *state;
	unsigned int period = 0, power = 1;

	while (most--) {
		if (poll_step(pid, state))
			return 0;
		period++;
		if (poll_equal(state, &before))
			return period;
		if (period == power) {
			before = *state;
			power *= 2;
			period = 0;
		}
	}
	return 0;
}

/* Steps to the state of a period with the smallest registers. */
static int poll_least(int pid, struct poll_state *state, unsigned int period)
{
	struct poll_state least = *state;
	unsigned int i;

	for (i = 0; i < period; i++) {
		if (poll_step(pid, state))
			return 1;
		if (poll_less(state, &least))
			least = *state;
	}
	for (i = 0; i < period && !poll_equal(state, &least); i++)
		if (poll_step(pid, state))
			return 1;
	return !poll_equal(state, &least);
}

static int poll_floats(int pid, unsigned long *to)
{
	memset(to, 0, POLL_FLOATS * sizeof(*to));
	return FLOATS_SIZE > POLL_FLOATS * sizeof(*to) || get_fp_registers(pid, to);
}

/* Returns the period of the loop in which a process polls memory; 0: it may not do so. */
static unsigned int poll_proof(int pid, unsigned int most)
{
	static unsigned long before[POLL_FLOATS], after[POLL_FLOATS];
	unsigned long long memory;
	unsigned int period;
	struct poll_state state, least;

	if (poll_read(pid, &state))
		return 0;
	period = poll_period(pid, &state, most);
	if (!period || poll_least(pid, &state, period) || poll_floats(pid, before))
		return 0;
	least = state;
	memory = program_memory();
	if (poll_steps(pid, &state, period) || !poll_equal(&state, &least))
		return 0;
	if (poll_floats(pid, after) || memcmp(before, after, sizeof(before)))
		return 0;
	return memory == program_memory() ? period : 0;
}

/* Looks for a poll if program_time.c requests it. program_time.c gets the result at the process's
 * next stop, before another instruction.
 */
static void memory_poll_look(int pid)
{
	unsigned int steps = program_poll_steps();

	if (!steps)
		return;
	if (program_poll_looked(poll_proof(pid, steps)))
		kill(pid, SIGALRM);
	floats_forget(pid);
}
