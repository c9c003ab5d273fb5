/* SPDX-License-Identifier: GPL-2.0-only */
/* The classes of system calls that program_time.c distinguishes. */
#ifndef HOURGLASS_PROGRAM_CALLS_H
#define HOURGLASS_PROGRAM_CALLS_H

#include <linux/err.h>
#include <linux/types.h>
#include <asm/unistd.h>

static bool reads_clock(int call)
{
	switch (call) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
		return true;
	default:
		return false;
	}
}

static bool asks_for_readiness(int call)
{
	switch (call) {
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
#ifdef __NR_epoll_pwait2
	case __NR_epoll_pwait2:
#endif
		return true;
	default:
		return false;
	}
}

static bool is_poll(int call, long result)
{
	if (IS_ERR_VALUE(result) || asks_for_readiness(call))
		return true;
	switch (call) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_time:
	case __NR_times:
	case __NR_getrusage:
	case __NR_sysinfo:
	case __NR_sched_yield:
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_io_getevents:
	case __NR_futex:
	case __NR_wait4:
	case __NR_waitid:
	case __NR_kill:
	case __NR_getpid:
	case __NR_gettid:
	case __NR_getppid:
	case __NR_getcpu:
	case __NR_getsockopt:
	case __NR_ioctl:
	case __NR_stat:
	case __NR_lstat:
	case __NR_fstat:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_access:
		return true;
	case __NR_read:
	case __NR_pread64:
	case __NR_recvfrom:
	case __NR_recvmsg:
		return result == 0;
	default:
		return false;
	}
}

/* Returns whether a call changes nothing that others see, and moves no bytes. */
static bool is_private(int call)
{
	switch (call) {
	case __NR_rt_sigaction:
	case __NR_rt_sigpending:
	case __NR_rt_sigprocmask:
	case __NR_rt_sigreturn:
	case __NR_sigaltstack:
	case __NR_alarm:
	case __NR_getitimer:
	case __NR_setitimer:
	case __NR_timer_gettime:
	case __NR_timer_settime:
	case __NR_timerfd_gettime:
	case __NR_timerfd_settime:
	case __NR_epoll_ctl:
	case __NR_fcntl:
	case __NR_lseek:
	case __NR_getpeername:
	case __NR_getsockname:
	case __NR_setsockopt:
	case __NR_capget:
	case __NR_getcwd:
	case __NR_getegid:
	case __NR_geteuid:
	case __NR_getgid:
	case __NR_getgroups:
	case __NR_getpgid:
	case __NR_getpgrp:
	case __NR_getpriority:
	case __NR_getresgid:
	case __NR_getresuid:
	case __NR_getrlimit:
	case __NR_getsid:
	case __NR_getuid:
	case __NR_prlimit64:
	case __NR_umask:
	case __NR_uname:
	case __NR_arch_prctl:
	case __NR_prctl:
	case __NR_clock_getres:
	case __NR_sched_getaffinity:
	case __NR_sched_getparam:
	case __NR_sched_getscheduler:
	case __NR_madvise:
	case __NR_membarrier:
	case __NR_rseq:
	case __NR_set_robust_list:
		return true;
	default:
		return false;
	}
}

static bool is_exec(int call)
{
	return call == __NR_execve || call == __NR_execveat;
}

#endif
