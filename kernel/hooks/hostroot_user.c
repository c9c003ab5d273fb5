// SPDX-License-Identifier: GPL-2.0-only
/* The part of hostroot.c that runs with the host's C library. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hostroot.h"

int hostroot_open_root(unsigned int number)
{
	char path[sizeof(".guest/root-4294967295")];
	int fd;

	snprintf(path, sizeof(path), ".guest/root-%u", number);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int hostroot_open_owners(unsigned int number, unsigned long long *size)
{
	char path[sizeof(".guest/owners-4294967295")];
	struct stat64 status;
	int fd;

	snprintf(path, sizeof(path), ".guest/owners-%u", number);
	fd = open64(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat64(fd, &status) < 0)
		return -errno;
	*size = status.st_size;
	return fd;
}

static enum hostroot_kind kind_of(unsigned int mode)
{
	if (S_ISREG(mode))
		return HOSTROOT_FILE;
	if (S_ISDIR(mode))
		return HOSTROOT_FOLDER;
	return S_ISLNK(mode) ? HOSTROOT_LINK : HOSTROOT_OTHER;
}

int hostroot_stat(int root, const char *path, struct hostroot_facts *facts)
{
	struct stat64 status;

	if (fstatat64(root, path, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return -errno;
	facts->kind = kind_of(status.st_mode);
	facts->mode = status.st_mode & 07777;
	facts->size = status.st_size;
	facts->device = status.st_dev;
	return 0;
}

int hostroot_open(int root, const char *path)
{
	int fd = openat64(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int hostroot_link(int root, const char *path, char *target, int size)
{
	int length = readlinkat(root, path, target, size - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	return length;
}

int hostroot_read(int fd, unsigned long long offset, char *to, int length)
{
	int done = 0, received;

	while (done < length) {
		received = pread64(fd, to + done, length - done, offset + done);
		if (received < 0 && errno != EINTR)
			return -errno;
		if (received == 0)
			break;
		if (received > 0)
			done += received;
	}
	return done;
}

void hostroot_close(int fd)
{
	close(fd);
}

int hostroot_list(int root, const char *path, int (*emit)(void *closure, const char *name),
		  void *closure)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, fd, result = 0;
	struct dirent64 *entry;
	DIR *folder;

	fd = openat64(root, *path ? path : ".", flags);
	if (fd < 0)
		return -errno;
	folder = fdopendir(fd);
	if (!folder) {
		result = -errno;
		close(fd);
		return result;
	}
	while (!result && (entry = readdir64(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			result = emit(closure, entry->d_name);
	closedir(folder);
	return result;
}
