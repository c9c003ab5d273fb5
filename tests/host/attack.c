/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of a process that escaped the guest's kernel. Exit status 0: the attack succeeded; 1: it was refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int connects(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_port = htons(9);
	connect(fd, (struct sockaddr *)&to, sizeof(to));
	return errno == ECONNREFUSED ? 0 : -1;
}

static int binds(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof(at));
}

static int listing(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY);
}

static int reads_memory(void)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	return open(path, O_RDONLY);
}

static int clones(long flags)
{
	long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(0);
	return child < 0 ? -1 : 0;
}

/* Leave the group by which the engine ends the run: its leader cannot, its children can. */
static int leaves(int session)
{
	int status;

	if (!fork())
		_exit((session ? setsid() : setpgid(0, 0)) < 0 ? errno : 0);
	wait(&status);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static int through_link(const char *host)
{
	if (symlink(host, "link"))
		return -1;
	return open("link/by-link", O_CREAT | O_WRONLY, 0600);
}

static int try(const char *what, const char *host)
{
	char path[4096], byte;
	struct timespec epoch[2] = { { 0, 0 }, { 0, 0 } };
	struct rlimit limit;
	struct iovec here = { &byte, 1 }, there = { (void *)try, 1 };

#define HOST(name) (snprintf(path, sizeof(path), "%s/%s", host, name), path)
#define IS(name) (!strcmp(what, name))
	if (IS("own"))
		return open("own", O_CREAT | O_RDWR, 0600);
	if (IS("read"))
		return open(HOST("secret"), O_RDONLY);
	if (IS("list"))
		return listing(host);
	if (IS("write"))
		return open(HOST("secret"), O_WRONLY);
	if (IS("truncate"))
		return truncate(HOST("secret"), 0);
	if (IS("create"))
		return open(HOST("new"), O_CREAT | O_WRONLY, 0600);
	if (IS("mkdir"))
		return mkdir(HOST("folder"), 0700);
	if (IS("unlink"))
		return unlink(HOST("victim"));
	if (IS("rename"))
		return rename(HOST("victim"), "stolen");
	if (IS("link"))
		return link(HOST("victim"), "linked");
	if (IS("make-symlink"))
		return symlink(HOST("secret"), "run.json");
	if (IS("move-link"))
		return rename(".guest/root.cpio", "run.json");
	if (IS("symlink"))
		return through_link(host);
	if (IS("exec"))
		return execl("/bin/true", "true", NULL);
	if (IS("tcp-connect"))
		return connects();
	if (IS("tcp-bind"))
		return binds();
	if (IS("signal"))
		return kill(getppid(), 0);
	if (IS("ptrace"))
		return ptrace(PTRACE_ATTACH, getppid(), 0, 0);
	if (IS("memory"))
		return reads_memory();
	if (IS("vm-read"))
		return process_vm_readv(getppid(), &here, 1, &there, 1, 0);
	if (IS("socket"))
		return socket(AF_UNIX, SOCK_STREAM, 0);
	if (IS("netlink"))
		return socket(AF_NETLINK, SOCK_RAW, 0);
	if (IS("user-namespace"))
		return unshare(CLONE_NEWUSER);
	if (IS("mount"))
		return mount("none", "/proc", "tmpfs", 0, NULL);
	if (IS("clone-user-namespace"))
		return clones(CLONE_NEWUSER);
	if (IS("clone-namespaces"))
		return clones(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID);
	if (IS("seize"))
		return ptrace(PTRACE_SEIZE, getppid(), 0, 0);
	if (IS("limits"))
		return prlimit(getppid(), RLIMIT_CORE, NULL, &limit);
	if (IS("chmod"))
		return chmod(HOST("secret"), 0666);
	if (IS("fchmod"))
		return fchmod(open("own", O_CREAT | O_RDWR, 0600), 0666);
	if (IS("chown"))
		return chown(HOST("secret"), getuid(), getgid());
	if (IS("times"))
		return utimensat(AT_FDCWD, HOST("secret"), epoch, 0);
	if (IS("session"))
		return leaves(1);
	if (IS("process-group"))
		return leaves(0);
	if (IS("fifo"))
		return mknod("fifo", S_IFIFO | 0600, 0);
	if (IS("keys"))
		return syscall(SYS_add_key, "user", "a", "b", 1, -3) < 0 ? -1 : 0;
	if (IS("bpf"))
		return syscall(SYS_bpf, 0, NULL, 0);
	if (IS("io_uring"))
		return syscall(SYS_io_uring_setup, 1, NULL);
	if (IS("perf"))
		return syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0);
	if (IS("x32"))
		return syscall(0x40000000 + 39);
	errno = EINVAL;
	return -1;
}

int main(int argc, char **argv)
{
	int result = argc == 3 ? try(argv[1], argv[2]) : -1;

	if (result < 0)
		perror(argv[1]);
	return result < 0;
}
