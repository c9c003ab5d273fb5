// SPDX-License-Identifier: Apache-2.0
/* What programs ask of a kernel, so many times over: programs.py counts what that costs a guest. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char self[] = "/programs", nothing[] = "nothing";

static int call(void)
{
	return getppid() < 0;
}

static int fault(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 1;
	page[0] = 1;
	return munmap(page, 4096);
}

/* By the vDSO, and by a call. */
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

/* A moment later both are the same, of each clock. */
static int clocks_agree(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct timespec moment = { 0, 123456789 }, read, asked;
	struct timeval day_read, day_asked;
	size_t i;

	nanosleep(&moment, NULL);
	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (clock_gettime(clocks[i], &read) || syscall(SYS_clock_gettime, clocks[i], &asked) ||
		    read.tv_sec != asked.tv_sec || read.tv_nsec != asked.tv_nsec)
			return 1;
	}
	if (gettimeofday(&day_read, NULL) || syscall(SYS_gettimeofday, &day_asked, NULL) ||
	    day_read.tv_sec != day_asked.tv_sec || day_read.tv_usec != day_asked.tv_usec)
		return 1;
	return time(NULL) != syscall(SYS_time, NULL);
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
	{ "fault", fault }, { "fork", forked }, { "exec", executed },
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
