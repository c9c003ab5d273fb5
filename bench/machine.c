// SPDX-License-Identifier: Apache-2.0
/* Properties of this machine; machine.py describes the calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define LINE 64
#define LOADS 4000000
#define COPIED (64 << 20)
#define COPIES 8
#define LEAST_GAP_NS 300	/* reading the clock takes a tenth of that */

static uint64_t now(void)
{
	struct timespec moment;

	clock_gettime(CLOCK_MONOTONIC, &moment);
	return moment.tv_sec * 1000000000ULL + moment.tv_nsec;
}

/* In pages of 4 KB, as a guest's memory is. */
static void *memory(size_t bytes)
{
	void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		exit(1);
	madvise(made, bytes, MADV_NOHUGEPAGE);	/* a kernel without huge pages refuses */
	return memset(made, 1, bytes);
}

/* Return the ns of a load whose address is the previous load's result. The cache lines form one random cycle. */
static void latency(size_t bytes)
{
	size_t lines = bytes / LINE, i, j;
	char *block = memory(bytes);
	size_t *order = memory(lines * sizeof(*order));
	uint64_t begun;
	void **at;

	for (i = 0; i < lines; i++)
		order[i] = i;
	srandom(1);
	for (i = lines - 1; i > 0; i--) {	/* Sattolo: one cycle */
		size_t other;

		j = random() % i;
		other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	for (i = 0; i < lines; i++)
		*(void **)(block + i * LINE) = block + order[i] * LINE;
	at = (void **)block;
	for (i = 0; i < lines; i++)
		at = *at;
	begun = now();
	for (i = 0; i < LOADS; i++)
		at = *at;
	printf("%f\n", (double)(now() - begun) / LOADS + (at == NULL));
}

/* Return the bytes per ns that memcpy() copies, for blocks larger than the caches. */
static void copy(void)
{
	char *from = memory(COPIED), *to = memory(COPIED);
	uint64_t begun;
	int i;

	memcpy(to, from, COPIED);
	begun = now();
	for (i = 0; i < COPIES; i++) {
		memcpy(to, from, COPIED);
		asm volatile("" :: "r" (to) : "memory");
	}
	printf("%f\n", (double)COPIED * COPIES / (now() - begun));
}

/* Count the ns in which other work has the CPU: the gaps in a loop with the lowest priority. */
static void idle(const char *file, int cpu)
{
	struct sched_param none = { 0 };
	volatile uint64_t *busy_ns;
	uint64_t last, next;
	cpu_set_t own;

	busy_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(file, O_RDWR), 0);
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	if (busy_ns == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL) || sched_setaffinity(0, sizeof(own), &own) ||
	    sched_setscheduler(0, SCHED_IDLE, &none))
		exit(1);
	for (last = now();; last = next) {
		next = now();
		if (next - last > LEAST_GAP_NS)
			*busy_ns += next - last;
	}
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "latency"))
		latency(strtoul(words[2], NULL, 10));
	else if (count == 2 && !strcmp(words[1], "copy"))
		copy();
	else if (count == 4 && !strcmp(words[1], "idle"))
		idle(words[2], atoi(words[3]));
	else
		return 2;
	return 0;
}
