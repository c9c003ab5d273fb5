/* SPDX-License-Identifier: Apache-2.0 */
/* A call under the filter of the processes that carry out programs (kernel/hooks/program_filter.h). Exit status 0: it
   succeeded; 1: it failed; SIGSYS: the filter. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "program_filter.h"

int main(int argc, char **argv)
{
	struct sock_fprog program = {
		.len = sizeof(program_filter) / sizeof(program_filter[0]),
		.filter = (struct sock_filter *)program_filter,
	};
	long words[4] = { 0 }, result;
	int i;

	for (i = 1; i < argc && i < 5; i++)
		words[i - 1] = strtol(argv[i], NULL, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, PROGRAM_FILTER_FLAGS, &program))
		return 2;
	if (words[0] == -1)
		result = ((long (*)(long *))0xffffffffff600400)(NULL);
	else
		result = syscall(words[0], words[1], words[2], words[3], 0);
	syscall(SYS_exit, result < 0);
}
