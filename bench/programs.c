// SPDX-License-Identifier: Apache-2.0
/* What programs ask of a kernel, so many times over: programs.py counts what that costs a guest. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
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

int main(int count, char **words)
{
	long left = count > 2 ? strtol(words[2], NULL, 10) : 0;
	const char *what = count > 1 ? words[1] : nothing;

	for (; left > 0; left--) {
		if (!strcmp(what, "call") ? call() :
		    !strcmp(what, "fault") ? fault() : child(!strcmp(what, "exec")))
			return 1;
	}
	return 0;
}
