// SPDX-License-Identifier: Apache-2.0
/* Programs that wait without sleeping, by name: tests compare their time with the law of program_time.c. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHAIN 40
#define CALLS_EACH 6000

static const char self[] = "/waits";

static struct {
	int epoll, timer, program, event, log;
	struct pollfd pipe;
} files;

static int open_files(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2];

	files.epoll = epoll_create1(0);
	files.timer = timerfd_create(CLOCK_MONOTONIC, 0);
	files.program = open(self, O_RDONLY);
	files.event = eventfd(0, 0);
	files.log = open("/tmp/log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (files.program < 0 || files.event < 0 || files.log < 0 || pipe(ends))
		return 1;
	files.pipe = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	return epoll_ctl(files.epoll, EPOLL_CTL_ADD, files.timer, &event);
}

static void poll_masked(void)
{
	sigset_t usual, blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &usual);
	poll(&files.pipe, 1, 0);
	sigprocmask(SIG_SETMASK, &usual, NULL);
}

static void arm_timer(void)
{
	static const struct itimerspec hour = { .it_value.tv_sec = 3600 };
	struct epoll_event event;

	timerfd_settime(files.timer, 0, &hour, NULL);
	epoll_wait(files.epoll, &event, 1, 0);
}

static void change_set(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(files.epoll, EPOLL_CTL_MOD, files.timer, &event);
	epoll_wait(files.epoll, &event, 1, 0);
}

static void seek(void)
{
	lseek(files.program, 0, SEEK_SET);
	poll(&files.pipe, 1, 0);
}

static void read_user(void)
{
	getuid();
}

static void set_flags(void)
{
	fcntl(files.pipe.fd, F_SETFL, O_NONBLOCK);
	poll(&files.pipe, 1, 0);
}

static void only_poll(void)
{
	poll(&files.pipe, 1, 0);
}

static void add_event(void)
{
	static const unsigned long number = 1;

	if (write(files.event, &number, sizeof(number)) != sizeof(number))
		_exit(1);
}

static void wake_self(void)
{
	struct epoll_event event;
	unsigned long number;

	add_event();
	if (read(files.event, &number, sizeof(number)) != sizeof(number))
		_exit(1);
	epoll_wait(files.epoll, &event, 1, 0);
}

static void open_file(void)
{
	close(open(self, O_RDONLY));
	poll(&files.pipe, 1, 0);
}

static void write_line(void)
{
	if (write(files.log, "nothing\n", 8) != 8)
		_exit(1);
	poll(&files.pipe, 1, 0);
}

static void map_page(void)
{
	munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

static void read_counter(void)
{
	__builtin_ia32_rdtsc();
	add_event();
}

static void exec_nothing(void)
{
	execl("/none", "none", NULL);
}

/* Rounds of event loops that do no work, and of such that work without end. */
static const struct {
	const char *name;
	void (*once)(void);
} rounds[] = {
	{ "signal mask", poll_masked }, { "timer", arm_timer }, { "epoll set", change_set }, { "seek", seek },
	{ "user", read_user }, { "flags", set_flags }, { "poll", only_poll }, { "own event", wake_self },
	{ "file", open_file }, { "log", write_line }, { "page", map_page }, { "counter", read_counter },
	{ "no program", exec_nothing },
};

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Repeat each round, and a read of the clock, until 1 ms has passed. Print the numbers of rounds. The sleep before pays
 * for all earlier calls. */
static int event_loops(void)
{
	struct timespec moment = { 0, 50000000 };
	long count, end_ns;
	size_t i;

	if (!files.epoll && open_files())
		return 1;
	for (i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		count = 0;
		nanosleep(&moment, NULL);
		close(dup(files.epoll));	/* not polling: a row of polling calls begins */
		end_ns = now_ns() + 1000000;
		do {
			rounds[i].once();
			count++;
		} while (now_ns() < end_ns);
		printf("%s: %ld\n", rounds[i].name, count);
		fflush(stdout);
	}
	return 0;
}

/* Memory that a child writes after 500 us, and the ways in which its parent polls it. */
static volatile int *shared;

static void poll_plainly(void)
{
	while (!shared[0])
		;
}

static void poll_with_pause(void)
{
	while (!shared[0])
		__builtin_ia32_pause();
}

static void poll_locked(void)
{
	int seen;

	do {
		while (__atomic_exchange_n(&shared[1], 1, __ATOMIC_ACQUIRE))
			;
		seen = shared[0];
		__atomic_store_n(&shared[1], 0, __ATOMIC_RELEASE);
	} while (!seen);
}

static int memory_poll(void)
{
	static void (*const ways[])(void) = { poll_plainly, poll_with_pause, poll_locked };
	struct timespec delay = { 0, 500000 };
	long begin_ns;
	size_t i;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || prctl(PR_SET_TIMERSLACK, 1))
		return 1;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		shared[0] = 0;
		begin_ns = now_ns();
		if (!fork()) {
			nanosleep(&delay, NULL);
			while (__atomic_exchange_n(&shared[1], 1, __ATOMIC_ACQUIRE))
				;
			shared[0] = 1;
			__atomic_store_n(&shared[1], 0, __ATOMIC_RELEASE);
			_exit(0);
		}
		ways[i]();
		printf("%ld\n", now_ns() - begin_ns);
		fflush(stdout);
		wait(NULL);
	}
	return 0;
}

/* Add numbers for seconds: neither the memory changes nor a register of integers. */
static int add_floats(void)
{
	double sum = 0;

	while (sum < 3e9)
		sum += 1;
	return sum != 3e9;
}

/* Make calls, and continue in a child, CHAIN times. The last child prints the time. */
static int chain(void)
{
	struct timespec moment = { 0, 50000000 };
	long begin_ns;
	int process, left;

	if (!files.epoll && open_files())
		return 1;
	nanosleep(&moment, NULL);
	begin_ns = now_ns();
	for (process = 0; process < CHAIN; process++) {
		for (left = CALLS_EACH; left > 0; left--)
			add_event();
		if (process < CHAIN - 1 && syscall(SYS_fork))
			return wait(NULL) < 0;
	}
	printf("%ld\n", now_ns() - begin_ns);
	return 0;
}

static const struct {
	const char *name;
	int (*once)(void);
} all[] = {
	{ "event-loops", event_loops }, { "chain", chain }, { "memory-poll", memory_poll }, { "add-floats", add_floats },
};

int main(int count, char **words)
{
	size_t i;

	for (i = 0; count > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(words[1], all[i].name))
			return all[i].once();
	return 1;
}
