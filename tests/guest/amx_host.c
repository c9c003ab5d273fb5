// SPDX-License-Identifier: Apache-2.0
/*
 * A host whose CPU has AMX, or what comes after it: amx_host SIZE COMMAND...
 *
 * The command's ptrace(PTRACE_SETREGSET) calls are judged as xstateregs_set() of such a host's kernel judges them:
 * EFAULT for an area below SIZE bytes, EINVAL for a component that the process may not use (TILECFG, TILEDATA and all
 * after APX). The calls that pass are executed by the real host. Its seccomp filter notifies a child of this
 * process, which reads the area from the command's memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NT_X86_XSTATE	0x202
#define XSTATE_BV	512
#define FORBIDDEN	(~0UL << 20 | 3UL << 17)

static struct sock_filter steps[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ptrace, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_SETREGSET, 0, 2),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NT_X86_XSTATE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
};

static void copy(pid_t pid, void *to, unsigned long from, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)size) {
		perror("amx_host: process_vm_readv");
		_exit(1);
	}
}

static int verdict(const struct seccomp_notif *call, size_t size)
{
	struct iovec area;
	unsigned long components;

	copy(call->pid, &area, call->data.args[3], sizeof(area));
	if (area.iov_len < size)
		return -EFAULT;
	copy(call->pid, &components, (unsigned long)area.iov_base + XSTATE_BV, sizeof(components));
	return components & FORBIDDEN ? -EINVAL : 0;
}

static void judge(int listener, size_t size)
{
	for (;;) {
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { 0 };

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
			if (errno == EINTR)
				continue;
			_exit(0);	/* the command has ended */
		}
		answer.id = call.id;
		answer.error = verdict(&call, size);
		answer.flags = answer.error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { sizeof(steps) / sizeof(*steps), steps };
	int listener;

	if (argc < 3)
		return 2;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener < 0) {
		perror("amx_host: seccomp");
		return 1;
	}
	if (!fork()) {
		close(1);
		close(2);
		judge(listener, atol(argv[1]));
	}
	close(listener);
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
