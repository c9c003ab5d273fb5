/* SPDX-License-Identifier: Apache-2.0 */
/* Random system calls with plausible arguments, for a program of a node: calls SEED ROUNDS. Each round is a process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_PER_ROUND 60
#define LAST_CALL 475

static uint64_t state;
static char *pages;	/* two pages that can be written, one that can be read, one without access */

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below ? (state >> 11) % below : state;
}

static const char *const paths[] = {
	"/", "/proc", "/proc/self", "/proc/self/mem", "/proc/self/ns/mnt", "/proc/self/ns/pid", "/proc/self/ns/user",
	"/proc/self/uid_map", "/proc/self/fd/0", "/proc/self/exe", "/proc/1/root", "/proc/1/mem", "/proc/1/ns/mnt",
	"/proc/sys/kernel/printk", "/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/proc/hourglass",
	"/proc/hourglass/radio", "/proc/hourglass/load", "/sys", "/sys/class/net/eth0", "/sys/class/net/eth0/wire/rate_bps",
	"/sys/class/net/eth0/mtu", "/dev", "/dev/null", "/dev/zero", "/dev/ptmx", "/dev/net/tun", "/dev/shm", "/dev/tty",
	"/tmp", "/tmp/file", "/tmp/folder", "/tmp/link", "/etc/passwd", "/usr/bin/env", "..", "../../../../..", ".", "",
	"/out", "/room", "/proc/self/cwd/../../..", "/dev/console", "/dev/mqueue", "/run",
};
static const char *const kinds[] = {
	"hostfs", "hourglass", "devtmpfs", "cgroup", "cgroup2", "proc", "sysfs", "tmpfs", "ramfs", "overlay", "bpf",
	"devpts", "mqueue", "nsfs", "rootfs", "binfmt_misc", "debugfs", "tracefs", "securityfs", "pipefs", "",
};
static const char *const options[] = {
	"/", "/../../../..", "none,name=x", "release_agent=/tmp/file", "lowerdir=/,upperdir=/tmp,workdir=/tmp", "size=1m",
	"newinstance", "0", "nsdelegate", "rw", "hostfs", "source", "all",
};

#define ONE_OF(list) ((uint64_t)(list)[draw(sizeof(list) / sizeof((list)[0]))])

static uint64_t address(void)
{
	static const uint64_t odd[] = {
		0, 1, 0x100000, 0x101000, 0x7fffffffd000, 0x7fffffffe000, 0x7ffffffff000, 0xffffffffff600000,
		0xffff800000000000, 0xffffffffffffffff, 0x60000000, 0x10000,
	};

	switch (draw(8)) {
	case 0:
		return ONE_OF(odd);
	case 1:
		return (uint64_t)pages + 2 * 4096 - draw(64);
	case 2:
		return (uint64_t)pages + draw(4 * 4096);
	default:
		return (uint64_t)pages + 8 * draw(512);
	}
}

static uint64_t argument(void)
{
	static const uint64_t flags[] = {
		CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWUSER | CLONE_NEWNS, MS_SYNC,
		0x1000, 0x2000, 0x4000, 0x80000, 0x200000, 32, 2, 0x40, SIGCHLD, 0x8000, 0x400, AF_UNIX, AF_INET, AF_NETLINK,
		AF_PACKET, 0x541d, 0x5412, 0xb701, 0xb702, 0x4206, 0x1002, 0x1012,
	};

	switch (draw(12)) {
	case 0:
	case 1:
		return draw(24);
	case 2:
		return draw(4096);
	case 3:
		return -draw(130);
	case 4:
		return ONE_OF(flags);
	case 5:
		return (uint64_t)1 << draw(64);
	case 6:
		return ONE_OF(paths);
	case 7:
		return draw(2) ? ONE_OF(kinds) : ONE_OF(options);
	default:
		return address();
	}
}

static void fill(void)
{
	int i;

	for (i = 0; i < 256; i++)
		((uint64_t *)pages)[draw(1024)] = argument();
}

static void open_some(void)
{
	int i;

	for (i = 0; i < 12; i++)
		open(paths[draw(sizeof(paths) / sizeof(paths[0]))], draw(2) ? O_RDWR | O_NONBLOCK : O_RDONLY | O_NONBLOCK);
	socket(draw(46), draw(6), draw(3));
	socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0 });
}

static void call(void)
{
	uint64_t a[6], number = draw(16) ? draw(LAST_CALL) : draw(1 << 10) | (draw(2) ? 0x40000000 : 0);
	int i;

	for (i = 0; i < 6; i++)
		a[i] = argument();
	switch (number) {
	case SYS_kill:	/* only of this process, or the first round would be the last */
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
		a[0] = getpid();
		a[1] = number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo ? (uint64_t)getpid() : draw(65);
		break;
	case SYS_mount:
		a[0] = ONE_OF(paths);
		a[1] = ONE_OF(paths);
		a[2] = ONE_OF(kinds);
		a[4] = ONE_OF(options);
		break;
	case SYS_setpriority:
		return;
	}
	syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Actions that no call of the C library has: other entries to the kernel, flags, addresses of User Mode Linux. */
static void odd(void)
{
	uint64_t number = draw(500), where = address();

	switch (draw(8)) {
	case 0:
		__asm__ volatile("int $0x80" : "+a"(number) : "b"(where), "c"(draw(99)), "d"(draw(99)) : "memory");
		break;
	case 1:	/* a step after the call */
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; syscall" : "+a"(number)
				 : "D"(argument()), "S"(argument()) : "rcx", "r11", "memory", "cc");
		break;
	case 2:
		((void (*)(uint64_t))where)(argument());
		break;
	case 3:
		((long (*)(void *, void *))(0xffffffffff600000 + 0x400 * draw(3)))(NULL, NULL);
		break;
	case 4:
		*(volatile uint64_t *)where = argument();
		break;
	case 5:	/* the registers of a signal's frame */
		memcpy(__builtin_frame_address(0), pages, 256);
		syscall(SYS_rt_sigreturn);
		break;
	case 6:
		syscall(SYS_modify_ldt, 1, pages, 16);
		__asm__ volatile("mov %0, %%gs" : : "r"((uint32_t)draw(64)));
		break;
	case 7:
		munmap((void *)(address() & ~0xfffUL), 4096 * (1 + draw(1 << 20)));
		break;
	}
}

static void round_of_calls(uint64_t seed)
{
	const struct rlimit cpu = { 2, 3 }, memory = { 256 << 20, 256 << 20 };
	int i;

	state = seed * 0x9e3779b97f4a7c15 + 1;
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_AS, &memory);
	pages = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + 2 * 4096, 4096, PROT_READ);
	mprotect(pages + 3 * 4096, 4096, PROT_NONE);
	fill();
	unshare(draw(4) ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID);
	open_some();
	alarm(1);
	for (i = 0; i < CALLS_PER_ROUND; i++)
		call();
	odd();
	_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t seed;
	long rounds, i, waited, children = 0;

	if (argc != 3)	/* a round executed this file */
		return 1;
	seed = strtoull(argv[1], NULL, 0);
	rounds = atol(argv[2]);
	mkdir("/tmp/folder", 0777);
	close(open("/tmp/file", O_CREAT | O_RDWR, 0666));
	symlink("/proc/1/root", "/tmp/link");
	for (i = 0; i < rounds; i++) {
		pid_t child = fork();

		if (!child) {
			setsid();
			round_of_calls(seed * 1000003 + i);
		}
		children += child > 0;
		for (waited = 0; child > 0 && waited < 2000 && waitpid(child, NULL, WNOHANG) != child; waited++)
			usleep(1000);
		kill(-1, SIGKILL);	/* processes that the round left */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	printf("%ld rounds\n", children);
	return 0;
}
